//! Downloading the rows that a job's items emitted.

use crate::App;
use crate::auth::Viewer;
use crate::extract::Id;
use crate::output::Output;
use crate::problem::{Answer, Failure};
use crate::range::{self, Asked};
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::sync::Arc;
use windlass_core::Job;

/// A line of JSON per row.
const JSON_LINES: &str = "application/x-ndjson";

/// Download the rows that a job's items emitted
///
/// A line of JSON per row: what is committed so far. Once the job has ended, ranges of bytes can be
/// asked for.
#[utoipa::path(get, path = "/jobs/{id}/output", tag = "jobs",
    params(("id" = Uuid, Path), ("range" = Option<String>, Header, description = "`bytes=0-999`")),
    responses(
    (status = 200, description = "All rows", body = String, content_type = JSON_LINES),
    (status = 206, description = "The bytes that were asked for", body = String,
        content_type = JSON_LINES),
    (status = 400, description = "The id is none"),
    (status = 404, description = "There is no such job"),
    (status = 416, description = "There are no such bytes"),
))]
pub(crate) async fn download(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Id(id): Id,
    headers: HeaderMap,
) -> Answer<Response<Body>> {
    let job = app.listed(&caller, id).await?;
    let output = Output::open(&app.engine, id).await?;
    let mut answer = Response::new(Body::empty());
    let mut put = |name, value: String| -> Answer<()> {
        let value = HeaderValue::try_from(value);
        let wrong = |_| Failure::of(StatusCode::INTERNAL_SERVER_ERROR);
        answer.headers_mut().insert(name, value.map_err(wrong)?);
        Ok(())
    };
    put(CONTENT_TYPE, JSON_LINES.to_owned())?;
    let mut asked = Asked::All;
    // The rows of a job at work may still come between others, so that bytes would not fit.
    if job.has_ended() {
        put(ETAG, tag(&job))?;
        put(ACCEPT_RANGES, "bytes".to_owned())?;
        if range::is_asked(&headers, &tag(&job)) {
            let total = output.length(&app.lengths, &tag(&job)).await?;
            asked = range::of(&headers, total);
            match &asked {
                Asked::All => {}
                Asked::Part(part) => {
                    let range = format!("bytes {}-{}/{total}", part.start, part.end - 1);
                    put(CONTENT_RANGE, range)?;
                    put(CONTENT_LENGTH, (part.end - part.start).to_string())?;
                }
                Asked::Nothing => {
                    let failure = Failure::of(StatusCode::RANGE_NOT_SATISFIABLE);
                    let total = HeaderValue::try_from(format!("bytes */{total}"));
                    let total = total.unwrap_or(HeaderValue::from_static("bytes */*"));
                    return Err(failure.header(CONTENT_RANGE, total));
                }
            }
        }
    }
    if let Asked::Part(part) = asked {
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
        *answer.body_mut() = Body::from_stream(output.part(part));
    } else {
        *answer.body_mut() = Body::from_stream(output.all());
    }
    Ok(answer)
}

/// The version of an ended job's output: a retry that ends later makes another.
fn tag(job: &Job) -> String {
    let ended = job.finished_at.map_or(0, |at| at.timestamp_micros());
    format!("\"{}-{ended}\"", job.id)
}
