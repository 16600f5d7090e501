//! Schedules: list, pause, resume.

use crate::App;
use crate::auth::{Administrator, Caller, Viewer};
use crate::extract::PathName;
use crate::problem::{ApiError, ApiResult};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use windlass_engine::{SCHEDULER, Scheduled};

/// List the schedules
#[utoipa::path(get, path = "/schedules", tag = "schedules", responses(
    (status = 200, description = "The schedules with their next times", body = [Scheduled]),
))]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> ApiResult<Json<Vec<Scheduled>>> {
    visible_schedules(&app, &caller).await.map(Json)
}

/// Defines the routes that change a schedule and return it.
macro_rules! schedule_actions {
    ($($(#[doc = $doc:literal])+ $name:ident at $path:literal: $paused:literal;)+) => {$(
        $(#[doc = $doc])+
        #[utoipa::path(post, path = $path, tag = "schedules", params(("jobType" = String, Path)),
            responses(
            (status = 200, description = "The schedule after the change", body = Scheduled),
            (status = 404, description = "No such job type, or it has no schedule"),
        ))]
        pub(crate) async fn $name(
            Administrator(caller): Administrator,
            State(app): State<Arc<App>>,
            PathName(job_type): PathName,
        ) -> ApiResult<Json<Scheduled>> {
            app.check_job_type(&caller, &job_type)?;
            app.engine.pause_schedule(&job_type, $paused).await?;
            tracing::info!(by = caller.name(), job_type, paused = $paused, "schedule paused or resumed");
            let mut all = visible_schedules(&app, &caller).await?;
            all.retain(|schedule| schedule.row.job_type == job_type);
            all.pop().map(Json).ok_or_else(|| ApiError::not_found("schedule of", job_type))
        }
    )+};
}

schedule_actions! {
    /// Pause a schedule: it submits no jobs
    pause at "/schedules/{jobType}/pause": true;
    /// Resume a schedule from its next time
    resume at "/schedules/{jobType}/resume": false;
}

/// The schedules of visible job types. The last job and the params and claims of a schedule's jobs are
/// omitted if the caller may not see these jobs.
pub(crate) async fn visible_schedules(app: &App, caller: &Caller) -> ApiResult<Vec<Scheduled>> {
    let mut all = app.engine.schedules().await?;
    all.retain(|schedule| caller.covers(&schedule.row.job_type));
    for schedule in &mut all {
        if !caller.sees(&schedule.row.job_type, SCHEDULER) {
            schedule.row.last_job = None;
            schedule.row.spec.clear();
            schedule.schedule.params.clear();
            schedule.schedule.claims.clear();
        }
    }
    Ok(all)
}
