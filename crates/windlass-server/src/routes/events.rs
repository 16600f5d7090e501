//! Server-sent events: the progress of jobs and their chunks.

use crate::App;
use crate::auth::{Caller, Viewer};
use crate::extract::{NoSuchJob, VisibleJob};
use crate::problem::ApiResult;
use crate::streams::StreamPermit;
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

/// The content type of a stream.
const EVENT_STREAM: &str = "text/event-stream";
/// How often a comment keeps an idle stream alive.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Stream the events of a job
///
/// Events `job` and `chunk`, each with the current job or chunk. The first event is the current job, and
/// the stream ends when the job has ended. A chunk that starts and ends between two polls of the store
/// has no event, but is contained in the counts of the job. A request with `last-event-id` after the end
/// gets 204, so that browsers stop reconnecting.
#[utoipa::path(get, path = "/jobs/{id}/events", tag = "jobs",
    params(("id" = Uuid, Path), ("last-event-id" = Option<String>, Header)), responses(
    (status = 200, description = "The events", body = StreamEvent, content_type = EVENT_STREAM),
    (status = 204, description = "The job has ended, and the client has received its last event"),
    NoSuchJob,
))]
pub(crate) async fn of_job(
    VisibleJob { app, caller, job }: VisibleJob,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let id = job.id;
    let permit = app.streams.acquire(caller.name());
    if job.has_ended() {
        return Ok(match headers.contains_key("last-event-id") {
            true => StatusCode::NO_CONTENT.into_response(),
            false => respond(&caller, permit?, stream::iter([Change::of_job(&job)])),
        });
    }
    let permit = permit?;
    // Subscribe before reading, so that no change is missed in between.
    let changes = app.watch.subscribe(Some(id)).await;
    let now = Change::of_job(&app.job_summary(&caller, id).await?);
    Ok(respond(&caller, permit, stream::iter([now]).chain(changes)))
}

/// Stream the events of all jobs
///
/// An event `job` for every change of a visible job, until the server stops.
#[utoipa::path(get, path = "/events", tag = "jobs",
    params(("last-event-id" = Option<String>, Header)), responses(
    (status = 200, description = "The events", body = StreamEvent, content_type = EVENT_STREAM),
    (status = 429, description = "More streams than `server.max_streams_per_caller` or \
        `server.max_streams`; retry after `retry-after` seconds"),
))]
pub(crate) async fn of_all(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> ApiResult<Response> {
    let permit = app.streams.acquire(caller.name())?;
    let viewer = caller.clone();
    let visible = move |change: &Change| {
        let visible = viewer.sees(&change.job_type, &change.submitted_by);
        async move { visible }
    };
    let changes = app.watch.subscribe(None).await;
    Ok(respond(&caller, permit, changes.filter(visible)))
}

/// The response with a stream. It ends when the caller's token expires, and holds its permit until then.
fn respond(
    caller: &Caller,
    permit: StreamPermit,
    changes: impl Stream<Item = Change> + Send + 'static,
) -> Response {
    let state = (Box::pin(changes), permit);
    let events = stream::unfold(state, |(mut changes, permit)| async move {
        match tokio::time::timeout(KEEP_ALIVE_INTERVAL, changes.next()).await {
            Ok(change) => Some((change?.text, (changes, permit))),
            Err(_) => Some((Bytes::from_static(b":\n\n"), (changes, permit))),
        }
    });
    let events = events.take_until(caller.expiry()).map(Ok::<_, Infallible>);
    let headers = [(CONTENT_TYPE, EVENT_STREAM), (CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(events)).into_response()
}
