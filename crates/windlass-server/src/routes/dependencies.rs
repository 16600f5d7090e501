//! Dependencies: the rules with their open join points, and the graph of a job.

use crate::App;
use crate::auth::Viewer;
use crate::extract::{NoSuchJob, VisibleJob};
use crate::problem::ApiResult;
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use windlass_engine::Dependencies;
use windlass_store::LinkedJob;

/// Show the dependency rules and their open join points
#[utoipa::path(get, path = "/dependencies", tag = "dependencies", responses(
    (status = 200, description = "The rules", body = Dependencies),
))]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> ApiResult<Json<Dependencies>> {
    let mut dependencies = app.engine.dependencies().await?;
    // These contain the params and claims of all jobs.
    if !caller.sees_all() {
        dependencies.waiting.clear();
        dependencies.due.clear();
    }
    dependencies.rules.retain(|rule| caller.covers(&rule.job));
    Ok(Json(dependencies))
}

/// Show the jobs that a job depends on and the jobs that depend on it
///
/// Jobs that the caller may not see are omitted.
#[utoipa::path(get, path = "/jobs/{id}/dependencies", tag = "dependencies",
    params(("id" = Uuid, Path)), responses(
    (status = 200, description = "The jobs, oldest first", body = [LinkedJob]),
    NoSuchJob,
))]
pub(crate) async fn of_job(
    VisibleJob { app, caller, job }: VisibleJob,
) -> ApiResult<Json<Vec<LinkedJob>>> {
    let mut graph = app.engine.graph(job.id).await?;
    graph.retain(|linked| caller.sees(&linked.job_type, &linked.submitted_by));
    Ok(Json(graph))
}
