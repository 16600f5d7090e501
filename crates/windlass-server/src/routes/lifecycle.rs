//! Steering a job: cancel, pause, resume, retry.

use crate::App;
use crate::auth::Operator;
use crate::extract::Id;
use crate::problem::Answer;
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use windlass_core::Job;

/// Writes the routes that do one thing to a job and show it.
macro_rules! moves {
    ($($(#[doc = $doc:literal])+ $name:ident at $path:literal;)+) => {$(
        $(#[doc = $doc])+
        #[utoipa::path(post, path = $path, tag = "jobs", params(("id" = Uuid, Path)), responses(
            (status = 200, description = "The job, as it is now", body = Job),
            (status = 400, description = "The id is none"),
            (status = 403, description = "Your claims do not cover those of the job"),
            (status = 404, description = "There is no such job"),
            (status = 409, description = "The job's status does not allow that"),
        ))]
        pub(crate) async fn $name(
            Operator(caller): Operator,
            State(app): State<Arc<App>>,
            Id(id): Id,
        ) -> Answer<Json<Job>> {
            app.listed(&caller, id).await?;
            if stringify!($name) == "retry" {
                app.engine.check_caller(id, &caller.again(app.engine.config())).await?;
            }
            app.engine.$name(id).await?;
            tracing::info!(by = caller.name(), job = %id, concat!("asked to ", stringify!($name)));
            Ok(Json(app.job(&caller, id).await?))
        }
    )+};
}

moves! {
    /// Cancel a job
    cancel at "/jobs/{id}/cancel";
    /// Pause a job: nothing new of it is begun
    pause at "/jobs/{id}/pause";
    /// Resume a paused job
    resume at "/jobs/{id}/resume";
    /// Run what failed in a job again
    retry at "/jobs/{id}/retry";
}
