//! What handlers take from a request, refused as problems where it is wrong.

use crate::bodies::{is_late, late};
use crate::problem::Failure;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde::de::DeserializeOwned;
use uuid::Uuid;
use windlass_core::Problem;
use windlass_core::problem::Code;

/// The body, a JSON document.
pub(crate) struct Body<T>(pub(crate) T);
/// The part of the address after `?`.
pub(crate) struct Query<T>(pub(crate) T);
/// The id in the path.
pub(crate) struct Id(pub(crate) Uuid);
/// The name in the path.
pub(crate) struct Name(pub(crate) String);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        if !is_json(request.headers()) {
            let detail = "a body of content-type application/json would be right";
            return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(unread)?;
        // PostgreSQL has no text with this character in it.
        if bytes.windows(6).any(|window| window == b"\\u0000") {
            return Err(bad("the body", "has the character \\u0000, which no text may have"));
        }
        // A list would be read as the fields in their order.
        if !bytes.trim_ascii_start().starts_with(b"{") {
            return Err(bad("the body", "is no JSON object"));
        }
        serde_json::from_slice(&bytes).map(Body).map_err(|error| bad("the body", error))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn unread(rejection: BytesRejection) -> Failure {
    if is_late(&rejection) {
        return late();
    }
    match rejection.into_response().status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let detail = "the body is longer than server.max_body allows";
            Failure::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
        }
        _ => bad("the body", "could not be read to its end"),
    }
}

fn bad(what: &str, detail: impl std::fmt::Display) -> Failure {
    Problem::new(Code::Request, format!("{what}: {detail}")).into()
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            return Err(bad("the query", "has the character %00, which no text may have"));
        }
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(query)) => Ok(Query(query)),
            Err(error) => Err(bad("the query", error.body_text())),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Name(name)).map_err(|_| bad("the path", "is no text"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Name(text) = Name::from_request_parts(parts, state).await?;
        // Only in the one form that ids are shown in.
        let id = Uuid::try_parse(&text).ok().filter(|id| id.to_string() == text.to_lowercase());
        id.map(Id).ok_or_else(|| bad("the path", "has no UUID for an id"))
    }
}
