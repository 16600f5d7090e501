//! Gives every request an id, which its response and every log line about it carry.

use crate::metrics;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use std::time::Instant;
use tracing::Instrument;
use uuid::Uuid;

/// The header with the id.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A caller may send its own id of at most this length.
const MAX_ID_BYTES: usize = 128;

/// Middleware: assigns the id, then logs and measures the response.
pub(crate) async fn trace_request(request: Request, next: Next) -> Response {
    let id = request.headers().get(X_REQUEST_ID).filter(|id| is_safe(id)).cloned();
    let id = id.unwrap_or_else(new_id);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    let started = Instant::now();
    let path = request.uri().path().to_owned();
    let mut response = next.run(request).instrument(span.clone()).await;
    let (status, duration) = (response.status().as_u16(), started.elapsed());
    span.in_scope(|| tracing::debug!(%method, path, status, ?duration, "request completed"));
    metrics::record_response(&method, route.unwrap_or_default(), status, duration);
    response.headers_mut().insert(X_REQUEST_ID, id);
    response
}

/// Whether a caller's own id can be logged as it is.
fn is_safe(id: &HeaderValue) -> bool {
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    (1..=MAX_ID_BYTES).contains(&id.len()) && id.as_bytes().iter().all(safe)
}

fn new_id() -> HeaderValue {
    HeaderValue::try_from(Uuid::now_v7().to_string()).unwrap_or(HeaderValue::from_static("-"))
}
