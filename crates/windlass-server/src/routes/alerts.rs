//! Alerts and the state of their delivery.

use super::page::{limit, page};
use crate::App;
use crate::auth::Viewer;
use crate::extract::Query;
use crate::problem::ApiResult;
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
    /// Only alerts older than this one: the pagination cursor.
    before: Option<Uuid>,
    /// The maximum number of entries; 50 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// List alerts, newest first
#[utoipa::path(get, path = "/alerts", tag = "alerts", params(AlertsQuery), responses(
    (status = 200, description = "The alerts about visible jobs; alerts about job types are \
        visible to callers who see all jobs", body = [Alert],
        headers(("link" = String, description = "The next page, if there are more entries"))),
    (status = 400, description = "The query is invalid"),
))]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
    OriginalUri(uri): OriginalUri,
    Query(query): Query<AlertsQuery>,
) -> ApiResult<Response> {
    let limit = limit(query.limit, 50)?;
    let filter = AlertFilter { before: query.before, limit, ..AlertFilter::default() };
    let alerts = app.alerts(&caller, filter).await?;
    Ok(page(alerts, limit, &uri, "before", |alert| alert.id))
}
