//! Middleware for all requests: limits on request bodies, and headers of every response.

use crate::problem::{ApiError, ApiResult};
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use futures::stream::{self, StreamExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use windlass_core::config;

/// Limits on the duration of request bodies and on their total size in memory.
#[derive(Clone)]
pub(crate) struct BodyLimits {
    timeout: Duration,
    max_bytes: u64,
    /// One permit for each kibibyte of a large body that is being processed.
    memory: Arc<Semaphore>,
}

/// Bodies up to this size need no permits.
const SMALL_BYTES: u64 = 64 << 10;
/// How many bodies of the maximum size are processed at once. As parsed JSON they take several times
/// their size.
const MAX_CONCURRENT_LARGE: u64 = 4;
/// The path that accepts a body from unauthenticated clients. Its bodies never wait for permits.
const UNAUTHENTICATED_PATH: &str = "/sign-in";
/// The maximum size of such a body: a token in a form.
pub(crate) const MAX_UNAUTHENTICATED_BODY_BYTES: usize = 32 << 10;

impl BodyLimits {
    pub(crate) fn new(server: &config::Server) -> BodyLimits {
        let max_bytes = server.max_body as u64;
        let permits = kibibytes(max_bytes) * MAX_CONCURRENT_LARGE;
        let permits = usize::try_from(permits).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let memory = Arc::new(Semaphore::new(permits));
        BodyLimits { timeout: server.body_timeout, max_bytes, memory }
    }
}

fn kibibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 10)
}

/// Middleware: gives every body a deadline. A large body waits for permits and holds them until its
/// request completes.
pub(crate) async fn limit_body(
    State(limits): State<BodyLimits>,
    request: Request,
    next: Next,
) -> ApiResult<Response> {
    if request.body().is_end_stream() {
        return Ok(next.run(request).await);
    }
    let deadline = Instant::now() + limits.timeout;
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(limits.max_bytes);
    // A body above the maximum is rejected without being read.
    let length = length.min(limits.max_bytes);
    let _permits = if length > SMALL_BYTES && request.uri().path() != UNAUTHENTICATED_PATH {
        let wanted = u32::try_from(kibibytes(length)).unwrap_or(u32::MAX);
        let permits = timeout_at(deadline, limits.memory.acquire_many(wanted)).await;
        let busy = || ApiError::overloaded("too many large requests at once; try again later");
        Some(permits.ok().and_then(Result::ok).ok_or_else(busy)?)
    } else {
        None
    };
    let request = request.map(|body| {
        let parts = stream::unfold(body.into_data_stream(), move |mut parts| async move {
            match timeout_at(deadline, parts.next()).await {
                Ok(part) => Some((part?.map_err(std::io::Error::other), parts)),
                Err(_) => Some((Err(std::io::ErrorKind::TimedOut.into()), parts)),
            }
        });
        Body::from_stream(parts)
    });
    Ok(next.run(request).await)
}

/// Whether reading a body failed because of its deadline.
pub(crate) fn is_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
        || error.source().is_some_and(is_timeout)
}

/// The error of a body that did not arrive before its deadline.
pub(crate) fn timeout_error() -> ApiError {
    let detail = "the body did not arrive within server.body_timeout";
    ApiError::new(StatusCode::REQUEST_TIMEOUT, detail)
}

/// Middleware: disables content sniffing, and caching unless the handler allows it.
pub(crate) async fn default_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in [(X_CONTENT_TYPE_OPTIONS, "nosniff"), (CACHE_CONTROL, "no-store")] {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
