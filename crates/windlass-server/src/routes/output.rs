//! Downloads the output of a job.

use crate::byte_range::{self, ByteRange};
use crate::extract::{NoSuchJob, VisibleJob};
use crate::output::Output;
use crate::problem::{ApiError, ApiResult};
use axum::body::Body;
use axum::http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use windlass_core::Job;

/// The content type: one JSON document per line.
const JSON_LINES: &str = "application/x-ndjson";

/// Download the output rows of a job
///
/// One line of JSON for each row committed so far. Byte ranges are supported once the job has ended.
#[utoipa::path(get, path = "/jobs/{id}/output", tag = "jobs",
    params(("id" = Uuid, Path), ("range" = Option<String>, Header, description = "`bytes=0-999`")),
    responses(
    (status = 200, description = "All rows", body = String, content_type = JSON_LINES),
    (status = 206, description = "The requested bytes", body = String,
        content_type = JSON_LINES),
    NoSuchJob,
    (status = 416, description = "The range is beyond the end of the output"),
))]
pub(crate) async fn download(
    VisibleJob { app, job, .. }: VisibleJob,
    headers: HeaderMap,
) -> ApiResult<Response<Body>> {
    let output = Output::open(&app.engine, job.id).await?;
    let mut response = Response::new(Body::empty());
    let mut put = |name, value: String| -> ApiResult<()> {
        let value = HeaderValue::try_from(value);
        let invalid = |_| ApiError::from_status(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(name, value.map_err(invalid)?);
        Ok(())
    };
    put(CONTENT_TYPE, JSON_LINES.to_owned())?;
    let mut requested = ByteRange::Full;
    // While a job runs, new rows may be inserted between others, which would shift byte offsets.
    if job.has_ended() {
        put(ETAG, tag(&job))?;
        put(ACCEPT_RANGES, "bytes".to_owned())?;
        if byte_range::applies(&headers, &tag(&job)) {
            let total = output.length(&app.lengths, &tag(&job)).await?;
            requested = byte_range::parse(&headers, total);
            match &requested {
                ByteRange::Full => {}
                ByteRange::Part(part) => {
                    let range = format!("bytes {}-{}/{total}", part.start, part.end - 1);
                    put(CONTENT_RANGE, range)?;
                    put(CONTENT_LENGTH, (part.end - part.start).to_string())?;
                }
                ByteRange::Unsatisfiable => {
                    let error = ApiError::from_status(StatusCode::RANGE_NOT_SATISFIABLE);
                    let total = HeaderValue::try_from(format!("bytes */{total}"));
                    let total = total.unwrap_or(HeaderValue::from_static("bytes */*"));
                    return Err(error.with_header(CONTENT_RANGE, total));
                }
            }
        }
    }
    if let ByteRange::Part(part) = requested {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        *response.body_mut() = Body::from_stream(output.stream_range(part));
    } else {
        *response.body_mut() = Body::from_stream(output.stream());
    }
    Ok(response)
}

/// The entity tag of an ended job's output. A retry changes it, because it ends later.
fn tag(job: &Job) -> String {
    let ended = job.finished_at.map_or(0, |at| at.timestamp_micros());
    format!("\"{}-{ended}\"", job.id)
}
