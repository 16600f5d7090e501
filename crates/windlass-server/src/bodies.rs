//! What holds for every request and answer: bodies arrive in time and do not fill the memory, and
//! no answer is kept or guessed at.

use crate::problem::{Answer, Failure};
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

/// How long bodies may take, and how much of them is in memory at once.
#[derive(Clone)]
pub(crate) struct Bodies {
    timeout: Duration,
    largest: u64,
    /// Kibibytes of large bodies that are read and worked on at once.
    room: Arc<Semaphore>,
}

/// A body up to this many bytes takes no room.
const SMALL_BYTES: u64 = 64 << 10;
/// The largest bodies at once: as JSON values they take several times their bytes.
const LARGEST_AT_ONCE: u64 = 4;
/// Where strangers may send a body.
const OPEN_PATH: &str = "/sign-in";
/// The most bytes of such a body: a token in a form.
pub(crate) const MAX_OPEN_BODY_BYTES: usize = 32 << 10;

impl Bodies {
    pub(crate) fn new(server: &config::Server) -> Bodies {
        let largest = server.max_body as u64;
        let room = usize::try_from(kibibytes(largest) * LARGEST_AT_ONCE).unwrap_or(usize::MAX);
        let room = Arc::new(Semaphore::new(room.min(Semaphore::MAX_PERMITS)));
        Bodies { timeout: server.body_timeout, largest, room }
    }
}

fn kibibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 10)
}

/// Gives every body a deadline. A large one waits until there is room for it, and keeps the room
/// until its request is answered.
pub(crate) async fn guard(
    State(bodies): State<Bodies>,
    request: Request,
    next: Next,
) -> Answer<Response> {
    if request.body().is_end_stream() {
        return Ok(next.run(request).await);
    }
    let deadline = Instant::now() + bodies.timeout;
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(bodies.largest);
    // More than the largest is refused without being read.
    let length = length.min(bodies.largest);
    let _room = if length > SMALL_BYTES && request.uri().path() != OPEN_PATH {
        let wanted = u32::try_from(kibibytes(length)).unwrap_or(u32::MAX);
        let room = timeout_at(deadline, bodies.room.acquire_many(wanted)).await;
        let busy = || Failure::busy("other large requests are under way; try again later");
        Some(room.ok().and_then(Result::ok).ok_or_else(busy)?)
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

/// Whether a body was not there in time.
pub(crate) fn is_late(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
        || error.source().is_some_and(is_late)
}

/// The failure of a body that was not there in time.
pub(crate) fn late() -> Failure {
    let detail = "the body was not there within server.body_timeout";
    Failure::new(StatusCode::REQUEST_TIMEOUT, detail)
}

/// No browser guesses what an answer is, and nothing on the way keeps one, unless its handler says
/// otherwise.
pub(crate) async fn private(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in [(X_CONTENT_TYPE_OPTIONS, "nosniff"), (CACHE_CONTROL, "no-store")] {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
