//! Jobs: submit, list, show; their chunks and segments.

use super::page::{limit, page};
use crate::App;
use crate::auth::{Caller, Submitter, Viewer};
use crate::extract::{JobRequest, NoSuchJob, PathId, Query, VisibleJob};
use crate::problem::{ApiError, ApiResult};
use axum::Json;
use axum::extract::{OriginalUri, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use uuid::Uuid;
use windlass_core::problem::Code;
use windlass_core::{ChunkStatus, Job, JobId, JobStatus, Problem, Request};
use windlass_store::{ChunkRow, JobFilter, SegmentRow, Submitted};

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobsQuery {
    /// Only jobs of this type.
    #[param(pattern = "^[^\\x00]*$")]
    job_type: Option<String>,
    /// Only entries with this status.
    status: Option<JobStatus>,
    /// Only jobs older than this one: the pagination cursor.
    before: Option<Uuid>,
    /// The maximum number of entries; 50 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// List jobs, newest first
#[utoipa::path(get, path = "/jobs", tag = "jobs", params(JobsQuery), responses(
    (status = 200, description = "The visible jobs", body = [Job],
        headers(("link" = String, description = "The next page, if there are more entries"))),
    (status = 400, description = "The query is invalid"),
))]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    OriginalUri(uri): OriginalUri,
    Query(query): Query<JobsQuery>,
) -> ApiResult<Response> {
    let limit = limit(query.limit, 50)?;
    let JobsQuery { job_type, status, before, .. } = query;
    let filter = JobFilter { job_type, status, before, limit, ..JobFilter::default() };
    let jobs = app.jobs(&caller, filter).await?;
    Ok(page(jobs, limit, &uri, "before", |job| job.id))
}

/// Submit a job
///
/// Repeating a request with the same `idempotencyKey` returns the same job. A job type with `source.rename`
/// also accepts the payloads that it describes.
#[utoipa::path(post, path = "/jobs", tag = "jobs", request_body = Request, responses(
    (status = 201, description = "A new job", body = Job,
        headers(("location" = String, description = "The URL of the job"))),
    (status = 200, description = "The job that was created by an earlier identical request", body = Job),
    (status = 400, description = "The request is invalid; `field` names the field"),
    (status = 409, description = "The idempotency key was used for a different request"),
))]
pub(crate) async fn submit(
    Submitter(caller): Submitter,
    State(app): State<Arc<App>>,
    JobRequest(mut request): JobRequest,
) -> ApiResult<Response> {
    check_request(&app, &caller, &mut request).await?;
    let submitted = app.engine.submit(request, caller.identity()).await?;
    let job = app.engine.job(submitted.id()).await?;
    let location = [(LOCATION, format!("/api/v1/jobs/{}", job.id))];
    Ok(match submitted {
        Submitted::New(_) => (StatusCode::CREATED, location, Json(job)).into_response(),
        Submitted::Existing(_) => Json(job).into_response(),
    })
}

/// Rejects what the caller may not request. Checks the size limits first, so that the lookups below are
/// bounded.
pub(crate) async fn check_request(
    app: &App,
    caller: &Caller,
    request: &mut Request,
) -> ApiResult<()> {
    request.check_limits()?;
    if app.engine.config().jobs.contains_key(&request.job_type) && !caller.covers(&request.job_type)
    {
        let detail = format!("none of your roles may submit `{}`", request.job_type);
        return Err(ApiError::new(StatusCode::FORBIDDEN, detail));
    }
    let (requested, max) = (request.priority(), caller.max_priority(&request.job_type));
    if requested > max && requested <= 9 {
        if request.priority.is_some() {
            let detail = format!("must be at most {max} for your roles, got {requested}");
            return Err(Problem::field(Code::Request, "priority", detail).into());
        }
        // The default priority is above the maximum.
        request.priority = Some(max);
    }
    let parents = request.parents();
    if parents.is_empty() {
        return Ok(());
    }
    let owners = app.engine.store().owners(&parents).await?;
    let visible = |parent: &JobId| {
        let owner = owners.iter().find(|owner| owner.id == *parent);
        owner.is_some_and(|owner| caller.sees(&owner.job_type, &owner.submitted_by))
    };
    match request.after.iter().flatten().position(|parent| !visible(parent)) {
        None => Ok(()),
        Some(index) => {
            let parent = request.after.iter().flatten().nth(index).copied().unwrap_or_default();
            let (field, detail) = (format!("after[{index}]"), format!("there is no job {parent}"));
            Err(Problem::field(Code::Request, field, detail).into())
        }
    }
}

/// Show a job
#[utoipa::path(get, path = "/jobs/{id}", tag = "jobs", params(("id" = Uuid, Path)), responses(
    (status = 200, description = "The job", body = Job),
    NoSuchJob,
))]
pub(crate) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> ApiResult<Json<Job>> {
    Ok(Json(app.job(&caller, id).await?))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChunksQuery {
    /// Only entries with this status.
    status: Option<ChunkStatus>,
    /// Only chunks after this one: the pagination cursor.
    after: Option<i64>,
    /// The maximum number of entries; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// List the chunks of a job in numerical order
#[utoipa::path(get, path = "/jobs/{id}/chunks", tag = "jobs",
    params(("id" = Uuid, Path), ChunksQuery), responses(
    (status = 200, description = "The chunks", body = [ChunkRow],
        headers(("link" = String, description = "The next page, if there are more entries"))),
    (status = 400, description = "The id or the query is invalid"),
    (status = 404, description = "No such job"),
))]
pub(crate) async fn chunks(
    VisibleJob { app, job, .. }: VisibleJob,
    OriginalUri(uri): OriginalUri,
    Query(query): Query<ChunksQuery>,
) -> ApiResult<Response> {
    let limit = limit(query.limit, 100)?;
    let chunks = app.engine.store().chunks(job.id, query.status, query.after, limit).await?;
    Ok(page(chunks, limit, &uri, "after", |chunk| chunk.chunk))
}

/// List the segments of a job in numerical order
#[utoipa::path(get, path = "/jobs/{id}/segments", tag = "jobs", params(("id" = Uuid, Path)),
    responses(
    (status = 200, description = "The segments", body = [SegmentRow]),
    NoSuchJob,
))]
pub(crate) async fn segments(
    VisibleJob { app, job, .. }: VisibleJob,
) -> ApiResult<Json<Vec<SegmentRow>>> {
    Ok(Json(app.engine.store().segments(job.id).await?))
}
