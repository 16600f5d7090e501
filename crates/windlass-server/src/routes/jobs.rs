//! Jobs: submit, list, show, and what they are made of.

use super::page::{limit, page};
use crate::App;
use crate::auth::{Caller, Submitter, Viewer};
use crate::extract::{Body, Id, Query};
use crate::problem::{Answer, Failure};
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
    /// Only of this type.
    #[param(pattern = "^[^\\x00]*$")]
    job_type: Option<String>,
    /// Only in this status.
    status: Option<JobStatus>,
    /// Only jobs older than this one: the cursor.
    before: Option<Uuid>,
    /// At most so many; 50 when absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// List jobs, newest first
#[utoipa::path(get, path = "/jobs", tag = "jobs", params(JobsQuery), responses(
    (status = 200, description = "The jobs that the caller sees", body = [Job],
        headers(("link" = String, description = "The next page, where there is more"))),
    (status = 400, description = "The query is wrong"),
))]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    OriginalUri(uri): OriginalUri,
    Query(query): Query<JobsQuery>,
) -> Answer<Response> {
    let limit = limit(query.limit, 50)?;
    let JobsQuery { job_type, status, before, .. } = query;
    let filter = JobFilter { job_type, status, before, limit, ..JobFilter::default() };
    let jobs = app.jobs(&caller, filter).await?;
    Ok(page(jobs, limit, &uri, "before", |job| job.id))
}

/// Submit a job
///
/// The same request again under the same `idempotencyKey` gives the same job.
#[utoipa::path(post, path = "/jobs", tag = "jobs", request_body = Request, responses(
    (status = 201, description = "A new job", body = Job,
        headers(("location" = String, description = "Where it is shown"))),
    (status = 200, description = "The job that the same request made before", body = Job),
    (status = 400, description = "The request is wrong; `field` says where"),
    (status = 409, description = "The idempotency key was used for another request"),
))]
pub(crate) async fn submit(
    Submitter(caller): Submitter,
    State(app): State<Arc<App>>,
    Body(mut request): Body<Request>,
) -> Answer<Response> {
    check(&app, &caller, &mut request).await?;
    let submitted = app.engine.submit(request, caller.identity()).await?;
    let job = app.engine.job(submitted.id()).await?;
    let location = [(LOCATION, format!("/api/v1/jobs/{}", job.id))];
    Ok(match submitted {
        Submitted::New(_) => (StatusCode::CREATED, location, Json(job)).into_response(),
        Submitted::Existing(_) => Json(job).into_response(),
    })
}

/// Refuses what the caller may not ask for. The limits of the request come first, so that what is
/// looked up is bounded.
pub(crate) async fn check(app: &App, caller: &Caller, request: &mut Request) -> Answer<()> {
    request.check_limits()?;
    if app.engine.config().jobs.contains_key(&request.job_type) && !caller.covers(&request.job_type)
    {
        let detail = format!("none of your roles may submit `{}`", request.job_type);
        return Err(Failure::new(StatusCode::FORBIDDEN, detail));
    }
    let (asked, highest) = (request.priority(), caller.highest_priority(&request.job_type));
    if asked > highest && asked <= 9 {
        if request.priority.is_some() {
            let detail = format!("must be at most {highest} for your roles, got {asked}");
            return Err(Problem::field(Code::Request, "priority", detail).into());
        }
        // The default is above it.
        request.priority = Some(highest);
    }
    let parents = request.parents();
    if parents.is_empty() {
        return Ok(());
    }
    let owners = app.engine.store().owners(&parents).await?;
    let seen = |parent: &JobId| {
        let owner = owners.iter().find(|owner| owner.id == *parent);
        owner.is_some_and(|owner| caller.sees(&owner.job_type, &owner.submitted_by))
    };
    match request.after.iter().flatten().position(|parent| !seen(parent)) {
        None => Ok(()),
        Some(place) => {
            let parent = request.after.iter().flatten().nth(place).copied().unwrap_or_default();
            let (field, detail) = (format!("after[{place}]"), format!("there is no job {parent}"));
            Err(Problem::field(Code::Request, field, detail).into())
        }
    }
}

/// Show a job
#[utoipa::path(get, path = "/jobs/{id}", tag = "jobs", params(("id" = Uuid, Path)), responses(
    (status = 200, description = "The job", body = Job),
    (status = 400, description = "The id is none"),
    (status = 404, description = "There is no such job"),
))]
pub(crate) async fn show(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Id(id): Id,
) -> Answer<Json<Job>> {
    Ok(Json(app.job(&caller, id).await?))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChunksQuery {
    /// Only in this status.
    status: Option<ChunkStatus>,
    /// Only after this chunk: the cursor.
    after: Option<i64>,
    /// At most so many; 100 when absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// List the chunks of a job, in order of number
#[utoipa::path(get, path = "/jobs/{id}/chunks", tag = "jobs",
    params(("id" = Uuid, Path), ChunksQuery), responses(
    (status = 200, description = "Its chunks", body = [ChunkRow],
        headers(("link" = String, description = "The next page, where there is more"))),
    (status = 400, description = "The id is none, or the query is wrong"),
    (status = 404, description = "There is no such job"),
))]
pub(crate) async fn chunks(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    OriginalUri(uri): OriginalUri,
    Id(id): Id,
    Query(query): Query<ChunksQuery>,
) -> Answer<Response> {
    let limit = limit(query.limit, 100)?;
    app.listed(&caller, id).await?;
    let chunks = app.engine.store().chunks(id, query.status, query.after, limit).await?;
    Ok(page(chunks, limit, &uri, "after", |chunk| chunk.chunk))
}

/// List the segments of a job, in order of number
#[utoipa::path(get, path = "/jobs/{id}/segments", tag = "jobs", params(("id" = Uuid, Path)),
    responses(
    (status = 200, description = "Its segments", body = [SegmentRow]),
    (status = 400, description = "The id is none"),
    (status = 404, description = "There is no such job"),
))]
pub(crate) async fn segments(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Id(id): Id,
) -> Answer<Json<Vec<SegmentRow>>> {
    app.listed(&caller, id).await?;
    Ok(Json(app.engine.store().segments(id).await?))
}
