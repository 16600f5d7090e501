//! Live events (SSE): how jobs and their chunks come along.

use crate::App;
use crate::auth::{Caller, Viewer};
use crate::extract::Id;
use crate::problem::Answer;
use crate::streams::StreamPlace;
use crate::watch::Change;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// One event of a stream. Only for the OpenAPI document: the stream itself is written as text.
#[derive(ToSchema)]
#[schema(as = Event)]
#[allow(dead_code, reason = "documentation of a text format")]
struct StreamEvent {
    /// `job` or `chunk`.
    #[schema(pattern = "^(job|chunk)$")]
    event: String,
    /// A new id for each event, which browsers send back as `last-event-id`.
    id: String,
    /// The job or the chunk at the time of the event, as JSON.
    #[schema(content_media_type = "application/json")]
    data: String,
}

/// What events are sent as.
const EVENT_STREAM: &str = "text/event-stream";
/// How often a comment says that the stream is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Follow a job
///
/// Events `job` and `chunk`, each with the job or the chunk as it is by then. The first is the job as
/// it is now; the stream ends when the job has ended. A chunk that begins and ends between two looks
/// at the store has no event of its own; the job's counts have it. Whoever comes back with
/// `last-event-id` after the end is answered 204, so that browsers stop coming back.
#[utoipa::path(get, path = "/jobs/{id}/events", tag = "jobs",
    params(("id" = Uuid, Path), ("last-event-id" = Option<String>, Header)), responses(
    (status = 200, description = "The events", body = StreamEvent, content_type = EVENT_STREAM),
    (status = 204, description = "The job has ended, and the caller has seen it"),
    (status = 400, description = "The id is none"),
    (status = 404, description = "There is no such job"),
))]
pub(crate) async fn of_job(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Id(id): Id,
    headers: HeaderMap,
) -> Answer<Response> {
    let job = app.listed(&caller, id).await?;
    let place = app.streams.open(caller.name());
    if job.has_ended() {
        return Ok(match headers.contains_key("last-event-id") {
            true => StatusCode::NO_CONTENT.into_response(),
            false => answer(&caller, place?, stream::iter([Change::of_job(&job)])),
        });
    }
    let place = place?;
    // Followed first and looked at then: nothing falls between the two.
    let changes = app.watch.follow(Some(id));
    let now = Change::of_job(&app.listed(&caller, id).await?);
    Ok(answer(&caller, place, stream::iter([now]).chain(changes)))
}

/// Follow all jobs
///
/// An event `job` for every change of a job that the caller sees, until the server stops.
#[utoipa::path(get, path = "/events", tag = "jobs",
    params(("last-event-id" = Option<String>, Header)), responses(
    (status = 200, description = "The events", body = StreamEvent, content_type = EVENT_STREAM),
    (status = 429, description = "More streams than `server.max_streams_per_caller` or \
        `server.max_streams`; `retry-after` says when to come again"),
))]
pub(crate) async fn of_all(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> Answer<Response> {
    let place = app.streams.open(caller.name())?;
    let whose = caller.clone();
    let own = move |change: &Change| {
        let seen = whose.sees(&change.job_type, &change.owner);
        async move { seen }
    };
    Ok(answer(&caller, place, app.watch.follow(None).filter(own)))
}

/// The stream as it is sent, no longer than the caller's token is good. It has its place until it
/// ends.
fn answer(
    caller: &Caller,
    place: StreamPlace,
    changes: impl Stream<Item = Change> + Send + 'static,
) -> Response {
    let begin = (Box::pin(changes), place);
    let events = stream::unfold(begin, |(mut changes, place)| async move {
        match tokio::time::timeout(HEARTBEAT, changes.next()).await {
            Ok(change) => Some((change?.text, (changes, place))),
            Err(_) => Some((Bytes::from_static(b":\n\n"), (changes, place))),
        }
    });
    let events = events.take_until(caller.expiry()).map(Ok::<_, Infallible>);
    let headers = [(CONTENT_TYPE, EVENT_STREAM), (CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(events)).into_response()
}
