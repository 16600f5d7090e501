//! Endpoints for machines: liveness, readiness, metrics, and the OpenAPI document.

use crate::App;
use crate::auth::Viewer;
use crate::problem::{ApiError, ApiResult};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use utoipa::ToSchema;

/// The state of the server.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    #[schema(pattern = "^(alive|ready)$")]
    status: &'static str,
}

/// A store that takes longer to respond counts as unavailable.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a probe result is reused.
const PROBE_TTL: Duration = Duration::from_secs(1);

/// Liveness: whether the process responds
#[utoipa::path(get, path = "/healthz", tag = "health", responses(
    (status = 200, description = "The process is alive", body = Health),
))]
pub(crate) async fn alive() -> Json<Health> {
    Json(Health { status: "alive" })
}

/// Readiness: whether the store is reachable
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 200, description = "The store is reachable", body = Health),
    (status = 503, description = "The store is not reachable, or the server is stopping"),
))]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> ApiResult<Json<Health>> {
    if app.stopping.is_cancelled() {
        return Err(unavailable("the server is stopping"));
    }
    // The endpoint is unauthenticated, so it must not cause a store query per request.
    let mut last = app.readiness.lock().await;
    let (_, ready) = match *last {
        Some(probe @ (at, _)) if at.elapsed() < PROBE_TTL => probe,
        _ => *last.insert((Instant::now(), probe_store(&app).await)),
    };
    if ready {
        Ok(Json(Health { status: "ready" }))
    } else {
        Err(unavailable("the store is unavailable"))
    }
}

fn unavailable(detail: &str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

async fn probe_store(app: &App) -> bool {
    let probe = tokio::time::timeout(PROBE_TIMEOUT, app.engine.store().controls()).await;
    probe.is_ok_and(|result| result.is_ok())
}

/// Metrics in the Prometheus text format
///
/// They cover all jobs, so the caller must be allowed to see all jobs. docs/metrics.md lists them.
#[utoipa::path(get, path = "/metrics", tag = "health", responses(
    (status = 200, description = "The metrics", body = String, content_type = "text/plain"),
))]
pub(crate) async fn metrics(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> ApiResult<([(HeaderName, &'static str); 1], String)> {
    if !caller.sees_all() {
        let detail = "metrics cover all jobs, and none of your roles may see all jobs";
        return Err(ApiError::new(StatusCode::FORBIDDEN, detail));
    }
    let text = app.metrics.render();
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
}

/// This OpenAPI document
#[utoipa::path(get, path = "/openapi.json", tag = "health", responses(
    (status = 200, description = "The document", body = Object),
))]
pub(crate) async fn document(
    State(app): State<Arc<App>>,
) -> ([(HeaderName, &'static str); 1], String) {
    ([(CONTENT_TYPE, "application/json")], app.openapi.clone())
}
