//! Limits, stop and start, and the processes that work.

use crate::App;
use crate::auth::{Administrator, Caller, Operator, Viewer};
use crate::extract::{Body, Id, Name, Query};
use crate::problem::{Answer, Failure};
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

/// List what is limited, held or stopped
#[utoipa::path(get, path = "/throughput", tag = "control", responses(
    (status = 200, description = "What is said of every subject", body = [Control]),
))]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> Answer<Json<Vec<Control>>> {
    let mut seen = Vec::new();
    for control in app.engine.store().controls().await? {
        if sees(&app, &caller, &control.subject).await? {
            seen.push(control);
        }
    }
    Ok(Json(seen))
}

/// What is said of a job is for those who see the job.
async fn sees(app: &App, caller: &Caller, subject: &str) -> Answer<bool> {
    if caller.sees_all() || subject == EVERYTHING {
        return Ok(true);
    }
    match subject.parse::<JobId>() {
        Ok(id) => Ok(app.listed(caller, id).await.is_ok()),
        Err(_) if app.engine.config().jobs.contains_key(subject) => Ok(caller.covers(subject)),
        Err(_) => Ok(caller.only_types(app.engine.config()).is_none()),
    }
}

/// New limits; one that is absent stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// Chunks at work at once, over all machines.
    #[schema(schema_with = limit_schema, required = false)]
    concurrency: Option<Limit>,
    /// Items a second, over all machines.
    #[schema(schema_with = limit_schema, required = false)]
    rate: Option<Limit>,
}

/// A limit: a number from 1, `unlimited`, or `default` for what the definition says.
#[derive(Clone, Copy)]
pub(crate) struct Limit(i64);

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Limit, D::Error> {
        let said = serde_json::Value::deserialize(deserializer)?;
        let limit = match said.as_str() {
            Some("unlimited") => Some(UNLIMITED),
            Some("default") => Some(AS_DEFINED),
            _ => whole::<_, u32>(&said).ok().flatten().filter(|limit| *limit > 0).map(i64::from),
        };
        let wrong = || D::Error::custom("a number from 1, `unlimited` or `default` would be right");
        limit.map(Limit).ok_or_else(wrong)
    }
}

fn limit_schema() -> Schema {
    let most = i64::from(u32::MAX);
    let number = ObjectBuilder::new().schema_type(Type::Integer);
    let number = number.minimum(Some(1)).maximum(Some(most));
    let word = ObjectBuilder::new().schema_type(Type::String);
    let word = word.enum_values(Some(["unlimited", "default"]));
    let nothing = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(number).item(word).item(nothing).build().into()
}

/// Limit a job type over all machines, while it runs
#[utoipa::path(put, path = "/throughput/{jobType}", tag = "control",
    params(("jobType" = String, Path)), request_body = Limits, responses(
    (status = 200, description = "What is said of it now", body = [Control]),
    (status = 400, description = "The limits are wrong"),
    (status = 404, description = "There is no such job type"),
))]
pub(crate) async fn limit_job_type(
    Administrator(caller): Administrator,
    State(app): State<Arc<App>>,
    Name(job_type): Name,
    Body(limits): Body<Limits>,
) -> Answer<Json<Vec<Control>>> {
    app.known(&caller, &job_type)?;
    limit(&app, &caller, &job_type, limits).await
}

/// Limit a job over all machines, while it runs
#[utoipa::path(put, path = "/jobs/{id}/throughput", tag = "control", params(("id" = Uuid, Path)),
    request_body = Limits, responses(
    (status = 200, description = "What is said of it now", body = [Control]),
    (status = 400, description = "The id is none, or the limits are wrong"),
    (status = 404, description = "There is no such job"),
))]
pub(crate) async fn limit_job(
    Operator(caller): Operator,
    State(app): State<Arc<App>>,
    Id(id): Id,
    Body(limits): Body<Limits>,
) -> Answer<Json<Vec<Control>>> {
    let job = app.listed(&caller, id).await?;
    limit(&app, &caller, &job.id.to_string(), limits).await
}

async fn limit(
    app: &App,
    caller: &Caller,
    subject: &str,
    limits: Limits,
) -> Answer<Json<Vec<Control>>> {
    let (concurrency, rate) = (limits.concurrency.map(|Limit(n)| n), limits.rate.map(|Limit(n)| n));
    if concurrency.is_some() || rate.is_some() {
        tracing::info!(by = caller.name(), subject, concurrency, rate, "limited");
        app.engine.store().set_throughput(subject, concurrency, rate).await?;
    }
    said_of(app, subject).await
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Subject {
    /// The job type; everything when absent.
    #[param(pattern = "^[^\\x00]*$")]
    pub(crate) job_type: Option<String>,
}

/// The emergency stop: nothing new is loaded or claimed, on any machine
#[utoipa::path(post, path = "/stop", tag = "control", params(Subject), responses(
    (status = 200, description = "What is said of it now", body = [Control]),
    (status = 400, description = "The query is wrong"),
    (status = 404, description = "There is no such job type"),
))]
pub(crate) async fn stop(
    Administrator(caller): Administrator,
    State(app): State<Arc<App>>,
    Query(subject): Query<Subject>,
) -> Answer<Json<Vec<Control>>> {
    set_stopped(&app, &caller, subject, true).await
}

/// Let what was stopped go on
#[utoipa::path(post, path = "/start", tag = "control", params(Subject), responses(
    (status = 200, description = "What is said of it now", body = [Control]),
    (status = 400, description = "The query is wrong"),
    (status = 404, description = "There is no such job type"),
))]
pub(crate) async fn start(
    Administrator(caller): Administrator,
    State(app): State<Arc<App>>,
    Query(subject): Query<Subject>,
) -> Answer<Json<Vec<Control>>> {
    set_stopped(&app, &caller, subject, false).await
}

async fn set_stopped(
    app: &App,
    caller: &Caller,
    subject: Subject,
    stopped: bool,
) -> Answer<Json<Vec<Control>>> {
    match &subject.job_type {
        Some(job_type) => app.known(caller, job_type)?,
        None if caller.may_on_all(Permission::Administer) => {}
        None => {
            let detail = "none of your roles administers every job type; name one of yours";
            return Err(Failure::new(StatusCode::FORBIDDEN, detail));
        }
    }
    let subject = subject.job_type.as_deref().unwrap_or(EVERYTHING);
    tracing::warn!(by = caller.name(), subject, stopped, "stopped or started");
    app.engine.store().stop(subject, stopped).await?;
    said_of(app, subject).await
}

async fn said_of(app: &App, subject: &str) -> Answer<Json<Vec<Control>>> {
    let mut controls = app.engine.store().controls().await?;
    controls.retain(|control| control.subject == subject);
    Ok(Json(controls))
}

/// List the processes that work
#[utoipa::path(get, path = "/workers", tag = "control", responses(
    (status = 200, description = "The processes", body = [WorkerRow]),
))]
pub(crate) async fn workers(
    Viewer(caller): Viewer,
    State(app): State<Arc<App>>,
) -> Answer<Json<Vec<WorkerRow>>> {
    Ok(Json(app.workers(&caller).await?))
}
