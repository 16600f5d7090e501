//! Alerts, the state of their delivery, and their acknowledgement.

use super::page::{limit, page};
use crate::App;
use crate::auth::{Operator, Viewer};
use crate::extract::{PathId, Query};
use crate::problem::ApiResult;
use axum::Json;
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
    /// Only alerts that are neither acknowledged nor over.
    open: Option<bool>,
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
    let filter = AlertFilter {
        open: query.open.unwrap_or_default(),
        before: query.before,
        limit,
        ..AlertFilter::default()
    };
    let alerts = app.alerts(&caller, filter).await?;
    Ok(page(alerts, limit, &uri, "before", |alert| alert.id))
}

/// Acknowledge an alert: record that it is being handled
#[utoipa::path(post, path = "/alerts/{id}/acknowledge", tag = "alerts", params(("id" = Uuid, Path)),
    responses(
    (status = 200, description = "The alert, with who acknowledged it first", body = Alert),
    (status = 400, description = "The id is not a UUID"),
    (status = 404, description = "No such alert"),
))]
pub(crate) async fn acknowledge(
    Operator(caller): Operator,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> ApiResult<Json<Alert>> {
    app.alert(&caller, id).await?;
    if app.engine.store().acknowledge_alert(id, caller.name()).await? {
        tracing::info!(by = caller.name(), alert = %id, "alert acknowledged");
    }
    Ok(Json(app.alert(&caller, id).await?))
}
