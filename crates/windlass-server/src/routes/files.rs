//! The files of a job: its report, or its manifest and exported parts.

use super::output::content_disposition;
use super::page::limit;
use crate::App;
use crate::auth::Viewer;
use crate::extract::{NoSuchJob, Query, VisibleJob};
use crate::problem::{ApiError, ApiResult};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, Response};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use uuid::Uuid;
use windlass_engine::JobFile;

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FilesQuery {
    /// Only the parts of chunks after this one: the pagination cursor.
    after: Option<i64>,
    /// The maximum number of parts; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// List the files of a completed job
///
/// Its report, or its manifest and its exported parts in numerical order.
#[utoipa::path(get, path = "/jobs/{id}/files", tag = "jobs", params(("id" = Uuid, Path), FilesQuery),
    responses(
    (status = 200, description = "The files", body = [JobFile]),
    (status = 400, description = "The id or the query is invalid"),
    (status = 404, description = "No such job"),
))]
pub(crate) async fn list_files(
    VisibleJob { app, job, .. }: VisibleJob,
    Query(query): Query<FilesQuery>,
) -> ApiResult<Json<Vec<JobFile>>> {
    let limit = limit(query.limit, 100)?;
    Ok(Json(app.engine.files(&job, query.after, limit).await?))
}

/// Download a file of a completed job
///
/// A file that a later job has replaced is not sent.
#[utoipa::path(get, path = "/jobs/{id}/files/{name}", tag = "jobs",
    params(("id" = Uuid, Path), ("name" = String, Path)), responses(
    (status = 200, description = "The file", content(
        (String = "text/csv; charset=utf-8"),
        (serde_json::Value = "application/json"),
        (String = "application/x-ndjson"),
        (String = "application/vnd.apache.parquet"),
        (String = "application/gzip"),
        (String = "application/octet-stream"),
    )),
    NoSuchJob,
))]
pub(crate) async fn download_file(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    path: Result<Path<(Uuid, String)>, axum::extract::rejection::PathRejection>,
) -> ApiResult<Response<Body>> {
    let Ok(Path((id, name))) = path else {
        let detail = "the path: expected the id of a job, which is a UUID, and the name of a file";
        return Err(ApiError::new(axum::http::StatusCode::BAD_REQUEST, detail));
    };
    let job = app.job_summary(&caller, id).await?;
    // The name is compared with those of the job's files, and never used as a path.
    let Some(file) = app.engine.open_file(&job, &name).await? else {
        return Err(ApiError::not_found("file of this job", &name));
    };
    let mut response = Response::new(Body::from_stream(file.content));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(&name)));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(file.bytes));
    headers.insert(CONTENT_DISPOSITION, content_disposition(&name)?);
    Ok(response)
}

/// The content type by the end of a name.
fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("csv") => "text/csv; charset=utf-8",
        Some("json") => "application/json",
        Some("jsonl") => "application/x-ndjson",
        Some("parquet") => "application/vnd.apache.parquet",
        Some("gz") => "application/gzip",
        _ => "application/octet-stream",
    }
}
