//! The dashboard: HTML pages over the same data as the API.
//!
//! Pages are rendered on the server and work without JavaScript; `live.js` reloads their content when a
//! job changes. A button is a form whose handler calls the API route of the same name, so that each
//! action is implemented once.

mod actions;
mod alerts;
mod dead_letter;
mod dead_letters;
mod form;
mod job;
mod job_chunks;
mod job_types;
mod jobs;
mod key_set_text;
mod layout;
mod overview;
mod request_form;
pub(crate) mod responses;
mod run;
mod schedules;
mod sign_in;
mod workers;

use crate::App;
use crate::bodies::MAX_UNAUTHENTICATED_BODY_BYTES;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::middleware::from_fn;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use std::sync::Arc;
use windlass_html::{STYLE, chart, format};

/// All pages and form actions.
pub(crate) fn routes() -> Router<Arc<App>> {
    let small = DefaultBodyLimit::max(MAX_UNAUTHENTICATED_BODY_BYTES);
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
        .route("/jobs/{id}/throughput", post(actions::set_job_limits))
        .route("/jobs/{id}/audit", get(job::audit))
        .route("/dead-letters", get(dead_letters::show))
        .route("/dead-letters/export", get(dead_letters::export))
        .route("/dead-letters/redrive", post(actions::redrive))
        .route("/dead-letters/ignore", post(actions::ignore))
        .route("/dead-letters/{id}", get(dead_letter::show))
        .route("/alerts", get(alerts::show))
        .route("/alerts/{id}/acknowledge", post(actions::acknowledge))
        .route("/job-types", get(job_types::list))
        .route("/job-types/{name}", get(job_types::show))
        .route("/job-types/{name}/run", post(run::run))
        .route("/job-types/{name}/dry-run", post(run::dry_run))
        .route("/job-types/{name}/throughput", post(actions::set_job_type_limits))
        .route("/schedules", get(schedules::show))
        .route("/schedules/{name}/pause", post(actions::pause_schedule))
        .route("/schedules/{name}/resume", post(actions::resume_schedule))
        .route("/workers", get(workers::show))
        .route("/sign-in", get(sign_in::show).post(sign_in::sign_in).layer(small))
        .route("/sign-out", post(sign_in::sign_out))
        .layer(from_fn(responses::as_page))
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

/// A static file. Its URL has the version of the program, so that browsers may cache it.
fn asset(kind: &'static str, text: impl IntoResponse) -> impl IntoResponse {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "public, max-age=3600")], text)
}
