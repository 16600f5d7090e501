//! What machines ask: is it alive, is it ready, what can be measured, what does it offer?

use crate::App;
use crate::auth::Viewer;
use crate::problem::{Answer, Failure};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use utoipa::ToSchema;

/// How it is.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    #[schema(pattern = "^(alive|ready)$")]
    status: &'static str,
}

/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long its answer is believed.
const FRESH: Duration = Duration::from_secs(1);

/// Whether the process is alive
#[utoipa::path(get, path = "/healthz", tag = "health", responses(
    (status = 200, description = "It is", body = Health),
))]
pub(crate) async fn alive() -> Json<Health> {
    Json(Health { status: "alive" })
}

/// Whether the store can be reached
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 200, description = "It can", body = Health),
    (status = 503, description = "It cannot, or the server is stopping"),
))]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Answer<Json<Health>> {
    if app.stopping.is_cancelled() {
        return Err(away("the server is stopping"));
    }
    // Anybody may ask, so the store is not asked for each.
    let mut last = app.readiness.lock().await;
    let (_, ready) = match *last {
        Some(known @ (at, _)) if at.elapsed() < FRESH => known,
        _ => *last.insert((Instant::now(), can_reach(&app).await)),
    };
    if ready { Ok(Json(Health { status: "ready" })) } else { Err(away("the store is away")) }
}

fn away(detail: &str) -> Failure {
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

async fn can_reach(app: &App) -> bool {
    let asked = tokio::time::timeout(PATIENCE, app.engine.store().controls()).await;
    asked.is_ok_and(|answered| answered.is_ok())
}

/// What can be measured, as Prometheus reads it
///
/// It is of everybody's jobs, so the caller must see those. docs/metrics.md says what each is.
#[utoipa::path(get, path = "/metrics", tag = "health", responses(
    (status = 200, description = "The metrics", body = String, content_type = "text/plain"),
))]
pub(crate) async fn metrics(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> Answer<([(HeaderName, &'static str); 1], String)> {
    if !caller.sees_all() {
        let detail = "metrics are of everybody's jobs, which none of your roles sees";
        return Err(Failure::new(StatusCode::FORBIDDEN, detail));
    }
    let text = app.meter.render();
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
}

/// This document
#[utoipa::path(get, path = "/openapi.json", tag = "health", responses(
    (status = 200, description = "The document", body = Object),
))]
pub(crate) async fn document(
    State(app): State<Arc<App>>,
) -> ([(HeaderName, &'static str); 1], String) {
    ([(CONTENT_TYPE, "application/json")], app.document.clone())
}
