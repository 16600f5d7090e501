//! Dependencies: the rules with what they wait for, and the graph of a job.

use crate::App;
use crate::auth::Viewer;
use crate::extract::Id;
use crate::problem::Answer;
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use windlass_engine::Dependencies;
use windlass_store::Linked;

/// Show the rules, and what they wait for
#[utoipa::path(get, path = "/dependencies", tag = "dependencies", responses(
    (status = 200, description = "The rules", body = Dependencies),
))]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> Answer<Json<Dependencies>> {
    let mut dependencies = app.engine.dependencies().await?;
    // They tell of the params and claims of everybody's jobs.
    if !caller.sees_all() {
        dependencies.waiting.clear();
        dependencies.due.clear();
    }
    dependencies.rules.retain(|rule| caller.covers(&rule.job));
    Ok(Json(dependencies))
}

/// Show what a job comes after and what comes after it
///
/// Jobs that the caller does not see are left out.
#[utoipa::path(get, path = "/jobs/{id}/dependencies", tag = "dependencies",
    params(("id" = Uuid, Path)), responses(
    (status = 200, description = "The jobs, the oldest first", body = [Linked]),
    (status = 400, description = "The id is none"),
    (status = 404, description = "There is no such job"),
))]
pub(crate) async fn of_job(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    Id(id): Id,
) -> Answer<Json<Vec<Linked>>> {
    app.listed(&caller, id).await?;
    let mut graph = app.engine.graph(id).await?;
    graph.retain(|linked| caller.sees(&linked.job_type, &linked.submitted_by));
    Ok(Json(graph))
}
