//! Every error as an RFC 9457 problem.

use axum::Json;
use axum::http::header::{ALLOW, CONTENT_TYPE, HeaderMap, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::any::Any;
use utoipa::ToSchema;
use windlass_connectors::ConnectorError;
use windlass_core::Problem;
use windlass_core::problem::Code;
use windlass_drivers::ErrorClass;
use windlass_engine::EngineError;
use windlass_store::StoreError;

/// The result of a request.
pub(crate) type Answer<T> = Result<T, Failure>;

/// A request that was not served.
#[derive(Debug)]
pub(crate) struct Failure {
    problem: Box<ProblemDetails>,
    headers: HeaderMap,
}

/// A problem, as RFC 9457 has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Problem)]
pub(crate) struct ProblemDetails {
    /// `urn:windlass:CODE`, or `about:blank` where the status says it all.
    #[serde(rename = "type")]
    kind: String,
    /// What kind of problem it is.
    pub(crate) title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub(crate) status: u16,
    /// What is wrong and what would be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// The error code, which docs/errors.md explains.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^WL[0-9]{4}$")]
    code: Option<String>,
    /// The field of the request that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
}

/// What problems are sent as.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

impl Failure {
    /// A failure that its status explains.
    pub(crate) fn of(status: StatusCode) -> Failure {
        let problem = ProblemDetails {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: None,
            code: None,
            field: None,
        };
        Failure { problem: Box::new(problem), headers: HeaderMap::new() }
    }

    /// A failure with a sentence.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Failure {
        let mut failure = Failure::of(status);
        failure.problem.detail = Some(detail.into());
        failure
    }

    /// The token is genuine and cannot be used, which its holder is told.
    pub(crate) fn unusable_token(detail: impl Into<String>) -> Failure {
        let mut failure = Failure::unauthorized();
        failure.problem.detail = Some(detail.into());
        failure
    }

    /// The caller is not known. Why, a stranger is not told.
    pub(crate) fn unauthorized() -> Failure {
        let mut failure = Failure::of(StatusCode::UNAUTHORIZED);
        failure.headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        failure
    }

    /// The server has no room for the request.
    pub(crate) fn busy(detail: &str) -> Failure {
        let mut failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        failure.headers.insert(RETRY_AFTER, 1.into());
        failure
    }

    /// The caller asks for more than their share.
    pub(crate) fn too_many(detail: impl Into<String>, wait_seconds: u64) -> Failure {
        let mut failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, detail);
        failure.headers.insert(RETRY_AFTER, wait_seconds.into());
        failure
    }

    /// There is no such thing, or it is not for the caller's eyes: both read the same.
    pub(crate) fn not_found(what: &str, id: impl std::fmt::Display) -> Failure {
        Problem::new(Code::NotFound, format!("there is no {what} {id}")).into()
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// With a header of the answer.
    pub(crate) fn header(mut self, name: axum::http::HeaderName, value: HeaderValue) -> Failure {
        self.headers.insert(name, value);
        self
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = self.status();
        let problem = self.problem.clone();
        let mut response = (status, self.headers, Json(self.problem)).into_response();
        // The dashboard shows it as a page.
        response.extensions_mut().insert(*problem);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        response
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        let about_claims = problem.field.as_ref().is_some_and(|field| field.starts_with("claims."));
        let status = match problem.code {
            Code::Request if about_claims => StatusCode::FORBIDDEN,
            Code::Request | Code::UnknownJobType => StatusCode::BAD_REQUEST,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::IdempotencyKey | Code::Status => StatusCode::CONFLICT,
            Code::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
            Code::Configuration | Code::Source | Code::Ledger | Code::Handler => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        let mut failure = if status.is_server_error() {
            // It is for those who run the server, who find it in the log.
            tracing::error!(%problem, "a request cannot be served");
            internal(status)
        } else {
            let mut failure = Failure::new(status, problem.detail);
            failure.problem.field = problem.field;
            failure
        };
        failure.problem.kind = format!("urn:windlass:{}", problem.code.as_str());
        failure.problem.code = Some(problem.code.as_str().to_owned());
        failure
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        EngineError::from(error).into()
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        let status = match error {
            EngineError::Problem(problem) => return problem.into(),
            EngineError::Store(StoreError::Database(ref error))
            | EngineError::Data(ConnectorError::Database(ref error))
                if matches!(
                    error.class,
                    ErrorClass::Connection | ErrorClass::Retry | ErrorClass::Busy
                ) =>
            {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        tracing::error!(%error, "a request cannot be served");
        internal(status)
    }
}

fn internal(status: StatusCode) -> Failure {
    Failure::new(status, "the server's log says why, under the x-request-id of this answer")
}

/// No route has this path.
pub(crate) async fn no_route(uri: Uri) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))
}

/// The path is right and the method is not.
pub(crate) async fn no_method(method: Method, uri: Uri) -> Failure {
    let detail = format!("{} does not take {method}; {ALLOW} says what it takes", uri.path());
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}

/// A mistake of ours, told without its words.
pub(crate) fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    internal(StatusCode::INTERNAL_SERVER_ERROR).into_response()
}
