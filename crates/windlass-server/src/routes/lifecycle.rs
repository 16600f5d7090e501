//! The lifecycle of a job: cancel, pause, resume, retry.

use crate::App;
use crate::auth::Operator;
use crate::extract::PathId;
use crate::problem::ApiResult;
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use windlass_core::Job;

/// Defines the routes that change the status of a job and return it.
macro_rules! job_actions {
    ($($(#[doc = $doc:literal])+ $name:ident at $path:literal;)+) => {$(
        $(#[doc = $doc])+
        #[utoipa::path(post, path = $path, tag = "jobs", params(("id" = Uuid, Path)), responses(
            (status = 200, description = "The job after the change", body = Job),
            (status = 400, description = "The id is not a UUID"),
            (status = 403, description = "Your claims do not cover those of the job"),
            (status = 404, description = "No such job"),
            (status = 409, description = "The status of the job does not allow it"),
        ))]
        pub(crate) async fn $name(
            Operator(caller): Operator,
            State(app): State<Arc<App>>,
            PathId(id): PathId,
        ) -> ApiResult<Json<Job>> {
            app.job_summary(&caller, id).await?;
            if stringify!($name) == "retry" {
                app.engine.check_caller(id, &caller.for_engine(app.engine.config())).await?;
            }
            app.engine.$name(id).await?;
            tracing::info!(by = caller.name(), job = %id, concat!(stringify!($name), " requested"));
            Ok(Json(app.job(&caller, id).await?))
        }
    )+};
}

job_actions! {
    /// Cancel a job
    cancel at "/jobs/{id}/cancel";
    /// Pause a job: no more of its chunks are started
    pause at "/jobs/{id}/pause";
    /// Resume a paused job
    resume at "/jobs/{id}/resume";
    /// Retry a failed job: run only its failed chunks again
    retry at "/jobs/{id}/retry";
}
