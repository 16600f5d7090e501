//! A name for every request, in its answer and in every line of the log that it causes.

use crate::metrics;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use std::time::Instant;
use tracing::Instrument;
use uuid::Uuid;

/// The header that carries it.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A caller's own name for a request is taken up to this length.
const LONGEST: usize = 128;

/// Names a request, serves it, and says in the log how that went.
pub(crate) async fn name(request: Request, next: Next) -> Response {
    let id = request.headers().get(X_REQUEST_ID).filter(|id| is_plain(id)).cloned();
    let id = id.unwrap_or_else(made);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    let begun = Instant::now();
    let path = request.uri().path().to_owned();
    let mut response = next.run(request).instrument(span.clone()).await;
    let (status, took) = (response.status().as_u16(), begun.elapsed());
    span.in_scope(|| tracing::info!(%method, path, status, ?took, "answered"));
    metrics::answered(&method, route.unwrap_or_default(), status, took);
    response.headers_mut().insert(X_REQUEST_ID, id);
    response
}

/// Whether a name of the caller's is fit for a log.
fn is_plain(id: &HeaderValue) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    (1..=LONGEST).contains(&id.len()) && id.as_bytes().iter().all(plain)
}

fn made() -> HeaderValue {
    HeaderValue::try_from(Uuid::now_v7().to_string()).unwrap_or(HeaderValue::from_static("-"))
}
