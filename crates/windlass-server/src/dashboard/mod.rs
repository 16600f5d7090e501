//! The dashboard: what the API knows, as pages for people.
//!
//! Pages are written by the server and work without a script; `live.js` asks for them again when
//! something has happened. A page reads the store and the engine as the routes do, and a button is
//! a form whose handler calls the route of the same name, so that there is one way to do a thing.

mod actions;
mod dead_letter;
mod dead_letters;
mod job;
mod job_chunks;
mod job_types;
mod jobs;
mod layout;
mod overview;
mod records;
mod run;
pub(crate) mod same_origin;
mod schedules;
mod sign_in;
mod workers;

use crate::App;
use crate::bodies::MAX_OPEN_BODY_BYTES;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::middleware::from_fn;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use std::sync::Arc;
use windlass_html::{STYLE, chart, format};

/// All pages, and what their buttons do.
pub(crate) fn routes() -> Router<Arc<App>> {
    let small = DefaultBodyLimit::max(MAX_OPEN_BODY_BYTES);
    Router::new()
        .route("/", get(overview::show))
        .route("/stop", post(actions::stop))
        .route("/start", post(actions::start))
        .route("/jobs", get(jobs::show))
        .route("/jobs/{id}", get(job::show))
        .route("/jobs/{id}/cancel", post(actions::cancel))
        .route("/jobs/{id}/pause", post(actions::pause))
        .route("/jobs/{id}/resume", post(actions::resume))
        .route("/jobs/{id}/retry", post(actions::retry))
        .route("/jobs/{id}/throughput", post(actions::limit_job))
        .route("/jobs/{id}/audit", get(job::audit))
        .route("/dead-letters", get(dead_letters::show))
        .route("/dead-letters/export", get(dead_letters::export))
        .route("/dead-letters/redrive", post(actions::redrive))
        .route("/dead-letters/ignore", post(actions::ignore))
        .route("/dead-letters/{id}", get(dead_letter::show))
        .route("/job-types", get(job_types::list))
        .route("/job-types/{name}", get(job_types::show))
        .route("/job-types/{name}/run", post(run::run))
        .route("/job-types/{name}/dry-run", post(run::dry_run))
        .route("/job-types/{name}/throughput", post(actions::limit_job_type))
        .route("/schedules", get(schedules::show))
        .route("/schedules/{name}/pause", post(actions::pause_schedule))
        .route("/schedules/{name}/resume", post(actions::resume_schedule))
        .route("/workers", get(workers::show))
        .route("/sign-in", get(sign_in::show).post(sign_in::enter).layer(small))
        .route("/sign-out", post(sign_in::leave))
        .layer(from_fn(same_origin::guard))
        .route("/assets/style.css", get(style))
        .route("/assets/live.js", get(script))
        .route("/assets/icon.svg", get(icon))
}

async fn style() -> impl IntoResponse {
    asset("text/css; charset=utf-8", [STYLE, include_str!("style.css")].concat())
}

async fn script() -> impl IntoResponse {
    asset("text/javascript; charset=utf-8", include_str!("live.js"))
}

async fn icon() -> impl IntoResponse {
    asset("image/svg+xml", include_str!("icon.svg"))
}

/// A file of ours. Pages name it by what is in it, so that it may be kept.
fn asset(kind: &'static str, text: impl IntoResponse) -> impl IntoResponse {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "public, max-age=3600")], text)
}
