//! Run-time controls: throughput limits, stop and start; and the worker processes.

use crate::App;
use crate::auth::{Administrator, Caller, Operator, Viewer};
use crate::extract::{JsonBody, PathId, PathName, Query};
use crate::problem::{ApiError, ApiResult};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use std::sync::Arc;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{IntoParams, ToSchema};
use windlass_core::JobId;
use windlass_core::config::Permission;
use windlass_core::request::whole;
use windlass_store::{AS_DEFINED, Control, EVERYTHING, UNLIMITED, WorkerRow};

/// List throughput limits, suspended and stopped subjects
#[utoipa::path(get, path = "/throughput", tag = "control", responses(
    (status = 200, description = "The controls of every subject", body = [Control]),
))]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> ApiResult<Json<Vec<Control>>> {
    let mut visible = Vec::new();
    for control in app.engine.store().controls().await? {
        if is_visible(&app, &caller, &control.subject).await? {
            visible.push(control);
        }
    }
    Ok(Json(visible))
}

/// Whether the caller may see the subject of a control.
async fn is_visible(app: &App, caller: &Caller, subject: &str) -> ApiResult<bool> {
    if caller.sees_all() || subject == EVERYTHING {
        return Ok(true);
    }
    match subject.parse::<JobId>() {
        Ok(id) => Ok(app.job_summary(caller, id).await.is_ok()),
        Err(_) if app.engine.config().jobs.contains_key(subject) => Ok(caller.covers(subject)),
        Err(_) => Ok(caller.visible_types(app.engine.config()).is_none()),
    }
}

/// New limits. An absent limit is not changed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThroughputLimits {
    /// The maximum number of chunks processed at once, in the whole cluster.
    #[schema(schema_with = limit_schema, required = false)]
    concurrency: Option<Limit>,
    /// The maximum number of items per second, in the whole cluster.
    #[schema(schema_with = limit_schema, required = false)]
    rate: Option<Limit>,
}

/// A limit: an integer of at least 1, `unlimited`, or `default` for the limit of the definition.
#[derive(Clone, Copy)]
pub(crate) struct Limit(i64);

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Limit, D::Error> {
        let given = serde_json::Value::deserialize(deserializer)?;
        let limit = match given.as_str() {
            Some("unlimited") => Some(UNLIMITED),
            Some("default") => Some(AS_DEFINED),
            _ => whole::<_, u32>(&given).ok().flatten().filter(|limit| *limit > 0).map(i64::from),
        };
        let invalid = || {
            let detail =
                format!("must be an integer of at least 1, `unlimited` or `default`, got {given}");
            D::Error::custom(detail)
        };
        limit.map(Limit).ok_or_else(invalid)
    }
}

fn limit_schema() -> Schema {
    let max = i64::from(u32::MAX);
    let number = ObjectBuilder::new().schema_type(Type::Integer);
    let number = number.minimum(Some(1)).maximum(Some(max));
    let word = ObjectBuilder::new().schema_type(Type::String);
    let word = word.enum_values(Some(["unlimited", "default"]));
    let nothing = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(number).item(word).item(nothing).build().into()
}

/// Set the throughput limits of a job type in the whole cluster
#[utoipa::path(put, path = "/throughput/{jobType}", tag = "control",
    params(("jobType" = String, Path)), request_body = ThroughputLimits, responses(
    (status = 200, description = "The controls of the subject", body = [Control]),
    (status = 400, description = "The limits are invalid"),
    (status = 404, description = "No such job type"),
))]
pub(crate) async fn set_job_type_limits(
    Administrator(caller): Administrator,
    State(app): State<Arc<App>>,
    PathName(job_type): PathName,
    JsonBody(limits): JsonBody<ThroughputLimits>,
) -> ApiResult<Json<Vec<Control>>> {
    app.check_job_type(&caller, &job_type)?;
    set_limits(&app, &caller, &job_type, limits).await
}

/// Set the throughput limits of a job in the whole cluster
#[utoipa::path(put, path = "/jobs/{id}/throughput", tag = "control", params(("id" = Uuid, Path)),
    request_body = ThroughputLimits, responses(
    (status = 200, description = "The controls of the subject", body = [Control]),
    (status = 400, description = "The id or the limits are invalid"),
    (status = 404, description = "No such job"),
))]
pub(crate) async fn set_job_limits(
    Operator(caller): Operator,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    JsonBody(limits): JsonBody<ThroughputLimits>,
) -> ApiResult<Json<Vec<Control>>> {
    let job = app.job_summary(&caller, id).await?;
    set_limits(&app, &caller, &job.id.to_string(), limits).await
}

async fn set_limits(
    app: &App,
    caller: &Caller,
    subject: &str,
    limits: ThroughputLimits,
) -> ApiResult<Json<Vec<Control>>> {
    let (concurrency, rate) = (limits.concurrency.map(|Limit(n)| n), limits.rate.map(|Limit(n)| n));
    if concurrency.is_some() || rate.is_some() {
        tracing::info!(by = caller.name(), subject, concurrency, rate, "throughput limits changed");
        app.engine.store().set_throughput(subject, concurrency, rate).await?;
    }
    controls_of(app, subject).await
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SubjectQuery {
    /// The job type; all job types by default.
    #[param(pattern = "^[^\\x00]*$")]
    pub(crate) job_type: Option<String>,
}

/// Defines the routes that stop and start processing.
macro_rules! processing_routes {
    ($($(#[doc = $doc:literal])+ $name:ident at $path:literal: $stopped:literal;)+) => {$(
        $(#[doc = $doc])+
        #[utoipa::path(post, path = $path, tag = "control", params(SubjectQuery), responses(
            (status = 200, description = "The controls of the subject", body = [Control]),
            (status = 400, description = "The query is invalid"),
            (status = 404, description = "No such job type"),
        ))]
        pub(crate) async fn $name(
            Administrator(caller): Administrator,
            State(app): State<Arc<App>>,
            Query(subject): Query<SubjectQuery>,
        ) -> ApiResult<Json<Vec<Control>>> {
            set_stopped(&app, &caller, subject, $stopped).await
        }
    )+};
}

processing_routes! {
    /// Emergency stop: no segment is planned and no chunk is leased any more, in the whole cluster
    stop at "/stop": true;
    /// Start processing again
    start at "/start": false;
}

async fn set_stopped(
    app: &App,
    caller: &Caller,
    subject: SubjectQuery,
    stopped: bool,
) -> ApiResult<Json<Vec<Control>>> {
    match &subject.job_type {
        Some(job_type) => app.check_job_type(caller, job_type)?,
        None if caller.may_on_all(Permission::Administer) => {}
        None => {
            let detail = "none of your roles may administer all job types; name one that yours may";
            return Err(ApiError::new(StatusCode::FORBIDDEN, detail));
        }
    }
    let subject = subject.job_type.as_deref().unwrap_or(EVERYTHING);
    match stopped {
        true => tracing::warn!(by = caller.name(), subject, "processing stopped"),
        false => tracing::warn!(by = caller.name(), subject, "processing started"),
    }
    app.engine.store().stop(subject, stopped).await?;
    controls_of(app, subject).await
}

async fn controls_of(app: &App, subject: &str) -> ApiResult<Json<Vec<Control>>> {
    let mut controls = app.engine.store().controls().await?;
    controls.retain(|control| control.subject == subject);
    Ok(Json(controls))
}

/// List the worker processes
#[utoipa::path(get, path = "/workers", tag = "control", responses(
    (status = 200, description = "The workers", body = [WorkerRow]),
))]
pub(crate) async fn workers(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> ApiResult<Json<Vec<WorkerRow>>> {
    Ok(Json(app.workers(&caller).await?))
}
