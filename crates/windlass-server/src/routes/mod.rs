//! The routes of the API, one file per topic. The first extractor of each handler is the permission that
//! it requires.

pub(crate) mod alerts;
pub(crate) mod controls;
pub(crate) mod dead_letters;
pub(crate) mod dependencies;
mod events;
mod files;
mod health;
pub(crate) mod jobs;
pub(crate) mod lifecycle;
mod output;
mod page;
mod report;
pub(crate) mod schedules;

use crate::{App, openapi};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// All routes, with their OpenAPI document.
pub(crate) fn all(with_auth: bool) -> OpenApiRouter<Arc<App>> {
    let api = OpenApiRouter::new()
        .routes(routes!(jobs::list, jobs::submit))
        .routes(routes!(jobs::show))
        .routes(routes!(jobs::chunks))
        .routes(routes!(jobs::segments))
        .routes(routes!(lifecycle::cancel))
        .routes(routes!(lifecycle::pause))
        .routes(routes!(lifecycle::resume))
        .routes(routes!(lifecycle::retry))
        .routes(routes!(output::download))
        .routes(routes!(files::list_files))
        .routes(routes!(files::download_file))
        .routes(routes!(report::report))
        .routes(routes!(events::of_job))
        .routes(routes!(events::of_all))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::show))
        .routes(routes!(dead_letters::redrive))
        .routes(routes!(dead_letters::ignore))
        .routes(routes!(alerts::list))
        .routes(routes!(alerts::acknowledge))
        .routes(routes!(controls::list))
        .routes(routes!(controls::set_job_type_limits))
        .routes(routes!(controls::set_job_limits))
        .routes(routes!(controls::stop))
        .routes(routes!(controls::start))
        .routes(routes!(controls::workers))
        .routes(routes!(dependencies::list))
        .routes(routes!(dependencies::of_job))
        .routes(routes!(schedules::list))
        .routes(routes!(schedules::pause))
        .routes(routes!(schedules::resume))
        .routes(routes!(health::document));
    let mut all = OpenApiRouter::with_openapi(openapi::base())
        .nest("/api/v1", api)
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics));
    openapi::complete(all.get_openapi_mut(), with_auth);
    all
}
