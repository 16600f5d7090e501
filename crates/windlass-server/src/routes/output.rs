//! Downloads the output of a job.

use crate::byte_range::{self, ByteRange};
use crate::extract::{NoSuchJob, VisibleJob};
use crate::output::Output;
use crate::problem::{ApiError, ApiResult};
use axum::body::Body;
use axum::http::header::{
    ACCEPT, ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    VARY,
};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use windlass_core::Job;

/// The content type: one JSON document per line.
const JSON_LINES: &str = "application/x-ndjson";
/// The content type of comma-separated values with a header line.
const CSV: &str = "text/csv; charset=utf-8; header=present";

/// Download the output rows of a job
///
/// One line of JSON for each row committed so far, or CSV with a header line if `Accept` asks for `text/csv`.
/// Byte ranges of the JSON lines are supported once the job has ended.
#[utoipa::path(get, path = "/jobs/{id}/output", tag = "jobs",
    params(("id" = Uuid, Path), ("range" = Option<String>, Header, description = "`bytes=0-999`")),
    responses(
    (status = 200, description = "All rows", content((String = JSON_LINES), (String = CSV))),
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
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    if prefers_csv(&headers) {
        let name = content_disposition(&format!("{}.csv", job.id))?;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(CSV));
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
        *response.body_mut() = Body::from_stream(output.stream_csv().await?);
        return Ok(response);
    }
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

/// Whether the caller prefers CSV to JSON lines. Of equal weights, the type that is named first wins.
fn prefers_csv(headers: &HeaderMap) -> bool {
    let weight = |media: &str| {
        let mut best: Option<f32> = None;
        let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for range in accepted.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            if parts.next().is_some_and(|name| name.eq_ignore_ascii_case(media)) {
                let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok());
                best = Some(best.unwrap_or(0.0).max(weight.unwrap_or(1.0)));
            }
        }
        best
    };
    let csv = weight("text/csv").unwrap_or(0.0);
    csv > 0.0 && csv >= weight(JSON_LINES).unwrap_or(0.0)
}

/// The header of a download under this name.
pub(super) fn content_disposition(name: &str) -> ApiResult<HeaderValue> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._ ".contains(c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let mut value = format!("attachment; filename=\"{plain}\"");
    if plain != name {
        value += "; filename*=UTF-8''";
        for byte in name.bytes() {
            match byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
                true => value.push(byte.into()),
                false => value += &format!("%{byte:02X}"),
            }
        }
    }
    let invalid = |_| ApiError::from_status(StatusCode::INTERNAL_SERVER_ERROR);
    HeaderValue::try_from(value).map_err(invalid)
}

/// The entity tag of an ended job's output. A retry changes it, because it ends later.
fn tag(job: &Job) -> String {
    let ended = job.finished_at.map_or(0, |at| at.timestamp_micros());
    format!("\"{}-{ended}\"", job.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_sent_where_it_is_preferred() {
        for (accept, csv) in [
            ("text/csv", true),
            ("application/json, Text/CSV;q=0.5", true),
            ("text/csv;q=0.5, application/x-ndjson", false),
            ("text/csv;q=0", false),
            ("*/*", false),
            ("text/csvs", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(prefers_csv(&headers), csv, "{accept}");
        }
        assert!(!prefers_csv(&HeaderMap::new()));
    }

    #[test]
    fn a_name_cannot_end_the_header() {
        let header = content_disposition("a\"; x=\r\né.csv").unwrap();
        let expected = "attachment; filename=\"a__ x____.csv\"; filename*=UTF-8''a%22%3B%20x%3D%0D%0A%C3%A9.csv";
        assert_eq!(header.to_str().unwrap(), expected);
    }
}
