//! Errors of the API, sent as RFC 9457 problem details.

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

/// The result of a handler.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

/// An error response: problem details and headers.
#[derive(Debug)]
pub(crate) struct ApiError {
    problem: Box<ProblemDetails>,
    headers: HeaderMap,
}

/// Problem details (RFC 9457).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Problem)]
pub(crate) struct ProblemDetails {
    /// `urn:windlass:CODE`, or `about:blank` if the status is the only classification.
    #[serde(rename = "type")]
    kind: String,
    /// The reason phrase of the status.
    pub(crate) title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub(crate) status: u16,
    /// What is wrong, and what would be right.
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

/// The content type of problem details.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

impl ApiError {
    /// An error without details.
    pub(crate) fn from_status(status: StatusCode) -> ApiError {
        let problem = ProblemDetails {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: None,
            code: None,
            field: None,
        };
        ApiError { problem: Box::new(problem), headers: HeaderMap::new() }
    }

    /// An error with a sentence that explains it.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> ApiError {
        let mut error = ApiError::from_status(status);
        error.problem.detail = Some(detail.into());
        error
    }

    /// 401 for a valid token that cannot be used; the detail says why.
    pub(crate) fn unusable_token(detail: impl Into<String>) -> ApiError {
        let mut error = ApiError::unauthorized();
        error.problem.detail = Some(detail.into());
        error
    }

    /// 401 without a detail, so that it reveals nothing about valid tokens.
    pub(crate) fn unauthorized() -> ApiError {
        let mut error = ApiError::from_status(StatusCode::UNAUTHORIZED);
        error.headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        error
    }

    /// 503 because the server is busy, with `retry-after`.
    pub(crate) fn overloaded(detail: &str) -> ApiError {
        let mut error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        error.headers.insert(RETRY_AFTER, 1.into());
        error
    }

    /// 429 with `retry-after`.
    pub(crate) fn too_many_requests(detail: impl Into<String>, wait_seconds: u64) -> ApiError {
        let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, detail);
        error.headers.insert(RETRY_AFTER, wait_seconds.into());
        error
    }

    /// 404, also for what the caller may not see, so that the response does not reveal that it exists.
    pub(crate) fn not_found(what: &str, id: impl std::fmt::Display) -> ApiError {
        Problem::new(Code::NotFound, format!("there is no {what} {id}")).into()
    }

    /// The problem details, for a page that shows them.
    pub(crate) fn into_problem(self) -> ProblemDetails {
        *self.problem
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Adds a header to the response.
    pub(crate) fn with_header(
        mut self,
        name: axum::http::HeaderName,
        value: HeaderValue,
    ) -> ApiError {
        self.headers.insert(name, value);
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status();
        let problem = self.problem.clone();
        let mut response = (status, self.headers, Json(self.problem)).into_response();
        // The dashboard renders the problem as a page.
        response.extensions_mut().insert(*problem);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        response
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> ApiError {
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
        let mut error = if status.is_server_error() {
            // The detail may reveal internals: it goes to the log only.
            tracing::error!(%problem, "request failed");
            internal(status)
        } else {
            let mut error = ApiError::new(status, problem.detail);
            error.problem.field = problem.field;
            error
        };
        error.problem.kind = format!("urn:windlass:{}", problem.code.as_str());
        error.problem.code = Some(problem.code.as_str().to_owned());
        error
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        EngineError::from(error).into()
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> ApiError {
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
        tracing::error!(%error, "request failed");
        internal(status)
    }
}

fn internal(status: StatusCode) -> ApiError {
    ApiError::new(status, "see the server log for the x-request-id of this response")
}

/// The fallback for unknown paths.
pub(crate) async fn not_found(uri: Uri) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, format!("no such path: {}", uri.path()))
}

/// The fallback for unsupported methods.
pub(crate) async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    let detail = format!("{} does not support {method}; see the {ALLOW} header", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}

/// The response after a panic, which does not contain the panic message.
pub(crate) fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    internal(StatusCode::INTERNAL_SERVER_ERROR).into_response()
}
