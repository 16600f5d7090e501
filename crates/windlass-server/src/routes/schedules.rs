//! Schedules: what is submitted by itself and when; letting it rest and go on.

use crate::App;
use crate::auth::{Administrator, Caller, Viewer};
use crate::extract::Name;
use crate::problem::{Answer, Failure};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use windlass_engine::{SCHEDULER, Scheduled};

/// List the schedules
#[utoipa::path(get, path = "/schedules", tag = "schedules", responses(
    (status = 200, description = "The schedules, with their next times", body = [Scheduled]),
))]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> Answer<Json<Vec<Scheduled>>> {
    schedules(&app, &caller).await.map(Json)
}

/// Writes the routes that change a schedule and show it.
macro_rules! changes {
    ($($(#[doc = $doc:literal])+ $name:ident at $path:literal: $paused:literal;)+) => {$(
        $(#[doc = $doc])+
        #[utoipa::path(post, path = $path, tag = "schedules", params(("jobType" = String, Path)),
            responses(
            (status = 200, description = "The schedule, as it is now", body = Scheduled),
            (status = 404, description = "There is no such job type, or it has no schedule"),
        ))]
        pub(crate) async fn $name(
            Administrator(caller): Administrator,
            State(app): State<Arc<App>>,
            Name(job_type): Name,
        ) -> Answer<Json<Scheduled>> {
            app.known(&caller, &job_type)?;
            app.engine.pause_schedule(&job_type, $paused).await?;
            tracing::info!(by = caller.name(), job_type, paused = $paused, "schedule changed");
            let mut all = schedules(&app, &caller).await?;
            all.retain(|schedule| schedule.row.job_type == job_type);
            all.pop().map(Json).ok_or_else(|| Failure::not_found("schedule of", job_type))
        }
    )+};
}

changes! {
    /// Let a schedule rest: nothing is submitted by it
    pause at "/schedules/{jobType}/pause": true;
    /// Let a schedule go on with its next time
    resume at "/schedules/{jobType}/resume": false;
}

/// The schedules of the job types that the caller sees. The job that one made last, and the params
/// and claims of its jobs, are shown to those who see those jobs.
pub(crate) async fn schedules(app: &App, caller: &Caller) -> Answer<Vec<Scheduled>> {
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
