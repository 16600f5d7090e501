//! Extractors for JSON bodies, queries and path parameters, whose errors are problem details.

use crate::App;
use crate::auth::{Caller, Viewer};
use crate::bodies::{is_timeout, timeout_error};
use crate::problem::ApiError;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use utoipa::IntoResponses;
use uuid::Uuid;
use windlass_core::problem::Code;
use windlass_core::{Job, Problem};

/// The request body: a JSON object.
pub(crate) struct JsonBody<T>(pub(crate) T);
/// The request of a job, or the payload of another program that the job type renames to one.
pub(crate) struct JobRequest(pub(crate) windlass_core::Request);
/// The query string.
pub(crate) struct Query<T>(pub(crate) T);
/// The UUID in the path.
pub(crate) struct PathId(pub(crate) Uuid);
/// The name in the path.
pub(crate) struct PathName(pub(crate) String);

/// The job in the path, which the caller may see.
pub(crate) struct VisibleJob {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    /// The job without its counts.
    pub(crate) job: Job,
}

/// The errors of [`VisibleJob`].
#[derive(IntoResponses)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) enum NoSuchJob {
    #[response(status = 400, description = "The id is not a UUID")]
    NotAUuid,
    #[response(status = 404, description = "No such job")]
    Unknown,
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        parse_body(&object_bytes(request, state).await?).map(JsonBody)
    }
}

impl FromRequest<Arc<App>> for JobRequest {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let bytes = object_bytes(request, app).await?;
        let named: Named = parse_body(&bytes)?;
        let job_type = named.job_type.as_ref().and_then(|name| app.engine.config().jobs.get(name));
        // Only payloads lose the place of an error in the text.
        match job_type.filter(|job_type| !job_type.source.rename.is_empty()) {
            None => parse_body(&bytes).map(JobRequest),
            some => {
                let payload = parse_body(&bytes)?;
                Ok(JobRequest(windlass_core::Request::from_payload(payload, some)?))
            }
        }
    }
}

/// The job type of a request whose other fields are not known yet.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    job_type: Option<String>,
}

/// The body, if it may be a JSON object.
async fn object_bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    if !is_json(request.headers()) {
        let detail = "the content-type must be application/json";
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let bytes = Bytes::from_request(request, state).await.map_err(read_error)?;
    // PostgreSQL cannot store this character in a text.
    if bytes.windows(6).any(|window| window == b"\\u0000") {
        return Err(bad_request("the body", "contains \\u0000, which is not allowed"));
    }
    // serde would also accept an array with the fields in order.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(bad_request("the body", "must be a JSON object"));
    }
    Ok(bytes)
}

fn parse_body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| bad_request("the body", error))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn read_error(rejection: BytesRejection) -> ApiError {
    if is_timeout(&rejection) {
        return timeout_error();
    }
    match rejection.into_response().status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let detail = "the body exceeds server.max_body";
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
        }
        _ => bad_request("the body", "could not be read"),
    }
}

fn bad_request(what: &str, detail: impl std::fmt::Display) -> ApiError {
    Problem::new(Code::Request, format!("{what}: {detail}")).into()
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            return Err(bad_request("the query", "contains %00, which is not allowed"));
        }
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(query)) => Ok(Query(query)),
            Err(error) => {
                Err(query_error(parts.uri.query().unwrap_or_default(), &error.body_text()))
            }
        }
    }
}

/// The error of a query, with the parameter that the text of axum begins with.
fn query_error(query: &str, text: &str) -> ApiError {
    let detail = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(text);
    let is_parameter = |name| query.split('&').any(|pair| pair.split('=').next() == Some(name));
    match detail.split_once(": ") {
        Some((name, detail)) if is_parameter(name) => {
            Problem::field(Code::Request, name, detail).into()
        }
        _ => bad_request("the query", detail),
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| PathName(name)).map_err(|_| bad_request("the path", "is not UTF-8"))
    }
}

impl FromRequestParts<Arc<App>> for VisibleJob {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let Viewer(caller) = Viewer::from_request_parts(parts, app).await?;
        let PathId(id) = PathId::from_request_parts(parts, app).await?;
        let job = app.job_summary(&caller, id).await?;
        Ok(VisibleJob { app: app.clone(), caller, job })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let PathName(text) = PathName::from_request_parts(parts, state).await?;
        // Only the hyphenated form, in which ids are shown.
        let id = Uuid::try_parse(&text).ok().filter(|id| id.to_string() == text.to_lowercase());
        id.map(PathId).ok_or_else(|| bad_request("the path", "the id must be a UUID"))
    }
}
