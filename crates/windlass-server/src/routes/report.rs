//! Downloads the report of a job.

use crate::extract::{NoSuchJob, VisibleJob};
use crate::problem::ApiResult;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::response::IntoResponse;
use windlass_html::report::CONTENT_POLICY;

/// Download the report of a job that has ended
///
/// A self-contained HTML page: the request, its submitter, totals, charts, failures by error, and the
/// first rows of the result.
#[utoipa::path(get, path = "/jobs/{id}/report", tag = "jobs", params(("id" = Uuid, Path)), responses(
    (status = 200, description = "The page", body = String, content_type = "text/html"),
    NoSuchJob,
    (status = 409, description = "The job has not ended"),
))]
pub(crate) async fn report(
    VisibleJob { app, job, .. }: VisibleJob,
) -> ApiResult<impl IntoResponse> {
    let page = app.engine.report(job.id).await?;
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{}.html\"", job.id)),
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY.to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, page))
}
