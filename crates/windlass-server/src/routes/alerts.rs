//! Alerts: what went wrong, and who has been told.

use super::page::{limit, page};
use crate::App;
use crate::auth::Viewer;
use crate::extract::Query;
use crate::problem::Answer;
use axum::extract::{OriginalUri, State};
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use uuid::Uuid;
use windlass_store::{Alert, AlertFilter};

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AlertsQuery {
    /// Only alerts older than this one: the cursor.
    before: Option<Uuid>,
    /// At most so many; 50 when absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// List alerts, newest first
#[utoipa::path(get, path = "/alerts", tag = "alerts", params(AlertsQuery), responses(
    (status = 200, description = "The alerts about jobs that the caller sees; those about job \
        types are for callers who see all jobs", body = [Alert],
        headers(("link" = String, description = "The next page, where there is more"))),
    (status = 400, description = "The query is wrong"),
))]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    OriginalUri(uri): OriginalUri,
    Query(query): Query<AlertsQuery>,
) -> Answer<Response> {
    let limit = limit(query.limit, 50)?;
    let filter = AlertFilter { before: query.before, limit, ..AlertFilter::default() };
    let alerts = app.alerts(&caller, filter).await?;
    Ok(page(alerts, limit, &uri, "before", |alert| alert.id))
}
