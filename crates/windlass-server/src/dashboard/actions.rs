//! Form actions: each converts its form to the body of an API route and calls that route.

use super::dead_letters::{
    DeadLettersQuery, IGNORE_ALL, REDRIVE_ALL, SELECTED, page as letters_page,
};
use super::form::FormInput;
use super::job_chunks::ChunksQuery;
use super::responses::local_path;
use super::{dead_letter, job, job_types};
use crate::App;
use crate::auth::{Administrator, Caller, Operator};
use crate::extract::{JsonBody, PathId, PathName, Query};
use crate::problem::{ApiError, ApiResult};
use crate::routes::controls::{SubjectQuery, ThroughputLimits};
use crate::routes::{alerts, controls, dead_letters, lifecycle, schedules};
use axum::Form;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use windlass_core::Problem;
use windlass_core::problem::Code;

/// The fields of a form in order. A name may occur more than once.
pub(super) type Fields = Form<Vec<(String, String)>>;

/// The value of a field, if it is not empty.
pub(super) fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = fields.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// Parses a body as the API does.
pub(super) fn body<T: DeserializeOwned>(body: Json) -> ApiResult<JsonBody<T>> {
    let read = serde_json::from_value(body).map(JsonBody);
    read.map_err(|error| Problem::new(Code::Request, error.to_string()).into())
}

/// Defines the handlers that change the status of a job and return to its page.
macro_rules! job_actions {
    ($($name:ident),+) => {$(
        pub(super) async fn $name(
            caller: Operator,
            app: State<Arc<App>>,
            PathId(id): PathId,
        ) -> ApiResult<Redirect> {
            let _ = lifecycle::$name(caller, app, PathId(id)).await?;
            Ok(Redirect::to(&format!("/jobs/{id}")))
        }
    )+};
}

job_actions!(cancel, pause, resume, retry);

pub(super) async fn stop(
    caller: Administrator,
    app: State<Arc<App>>,
    Form(fields): Fields,
) -> ApiResult<Redirect> {
    let _ = controls::stop(caller, app, Query(subject(&fields))).await?;
    Ok(back(&fields))
}

pub(super) async fn start(
    caller: Administrator,
    app: State<Arc<App>>,
    Form(fields): Fields,
) -> ApiResult<Redirect> {
    let _ = controls::start(caller, app, Query(subject(&fields))).await?;
    Ok(back(&fields))
}

fn subject(fields: &[(String, String)]) -> SubjectQuery {
    SubjectQuery { job_type: field(fields, "jobType").map(str::to_owned) }
}

pub(super) async fn set_job_limits(
    caller: Operator,
    app: State<Arc<App>>,
    PathId(id): PathId,
    Form(fields): Fields,
) -> ApiResult<Response> {
    let viewer = caller.0.clone();
    let set = async {
        let limits = limits(&fields)?;
        controls::set_job_limits(caller, State(app.0.clone()), PathId(id), limits).await
    };
    match set.await {
        Ok(_) => Ok(Redirect::to(&format!("/jobs/{id}")).into_response()),
        Err(error) => {
            let input = FormInput::refused(job::LIMITS, fields, error)?;
            job::page(&app, viewer, id, &ChunksQuery::default(), &input).await
        }
    }
}

pub(super) async fn set_job_type_limits(
    caller: Administrator,
    app: State<Arc<App>>,
    PathName(name): PathName,
    Form(fields): Fields,
) -> ApiResult<Response> {
    let viewer = caller.0.clone();
    let set = async {
        let (limits, name) = (limits(&fields)?, PathName(name.clone()));
        controls::set_job_type_limits(caller, State(app.0.clone()), name, limits).await
    };
    match set.await {
        Ok(_) => Ok(back(&fields).into_response()),
        Err(error) => {
            let input = FormInput::refused(job::LIMITS, fields, error)?;
            job_types::page(&app, viewer, &name, &input).await
        }
    }
}

/// The limits of the form. Empty fields are omitted, so that they do not change.
fn limits(fields: &[(String, String)]) -> ApiResult<JsonBody<ThroughputLimits>> {
    let mut limits = Map::new();
    for name in ["concurrency", "rate"] {
        if let Some(text) = field(fields, name) {
            let number = text.replace(',', "").parse::<u64>().map(Json::from);
            let limit = number.unwrap_or_else(|_| text.to_lowercase().into());
            // Parsed one by one, so that the error names the field.
            let read = serde_json::from_value::<ThroughputLimits>(json!({ name: limit }));
            read.map_err(|error| Problem::field(Code::Request, name, error.to_string()))?;
            limits.insert(name.to_owned(), limit);
        }
    }
    body(Json::Object(limits))
}

pub(super) async fn redrive(
    caller: Operator,
    app: State<Arc<App>>,
    Form(fields): Fields,
) -> ApiResult<Response> {
    let (viewer, selected) = (caller.0.clone(), selection(&fields).and_then(body));
    let redriven = async { dead_letters::redrive(caller, State(app.0.clone()), selected?).await };
    match redriven.await {
        Ok(_) => Ok(back(&fields).into_response()),
        Err(error) => refuse(&app, viewer, fields, REDRIVE_ALL, error).await,
    }
}

pub(super) async fn ignore(
    caller: Operator,
    app: State<Arc<App>>,
    Form(fields): Fields,
) -> ApiResult<Response> {
    let (viewer, selected) = (caller.0.clone(), selection(&fields).and_then(body));
    let ignored = async { dead_letters::ignore(caller, State(app.0.clone()), selected?).await };
    match ignored.await {
        Ok(_) => Ok(back(&fields).into_response()),
        Err(error) => refuse(&app, viewer, fields, IGNORE_ALL, error).await,
    }
}

/// Shows the page of a form on dead letters again, with the reason why it was refused.
async fn refuse(
    app: &App,
    viewer: Caller,
    fields: Vec<(String, String)>,
    of_all: &'static str,
    error: ApiError,
) -> ApiResult<Response> {
    let letter = field(&fields, "back").and_then(|back| back.strip_prefix("/dead-letters/"));
    let letter = letter.and_then(|id| id.parse().ok());
    let filter = DeadLettersQuery::of_form(&fields);
    let form = if field(&fields, "bulk").is_some() { of_all } else { SELECTED };
    let input = FormInput::failed(form, fields, error);
    match letter {
        Some(letter) => dead_letter::page(app, viewer, letter, &input).await,
        None => letters_page(app, viewer, &filter, &input).await,
    }
}

/// The selected dead letters, or all that match the filter of a bulk action.
fn selection(fields: &[(String, String)]) -> ApiResult<Json> {
    if field(fields, "bulk").is_none() {
        let ids = fields.iter().filter(|(name, _)| name == "ids");
        let ids: Vec<&str> = ids.map(|(_, id)| id.as_str()).collect();
        return match ids.is_empty() {
            true => Err(Problem::new(Code::Request, "select at least one dead letter").into()),
            false => Ok(json!({ "ids": ids })),
        };
    }
    let mut filter = Map::new();
    for name in ["job", "jobType", "error", "fingerprint"] {
        if let Some(value) = field(fields, name) {
            filter.insert(name.to_owned(), value.into());
        }
    }
    if field(fields, "all").is_some() {
        filter.insert("all".to_owned(), true.into());
    }
    Ok(Json::Object(filter))
}

pub(super) async fn acknowledge(
    caller: Operator,
    app: State<Arc<App>>,
    id: PathId,
    Form(fields): Fields,
) -> ApiResult<Redirect> {
    let _ = alerts::acknowledge(caller, app, id).await?;
    Ok(back(&fields))
}

pub(super) async fn pause_schedule(
    caller: Administrator,
    app: State<Arc<App>>,
    name: PathName,
) -> ApiResult<Redirect> {
    let _ = schedules::pause(caller, app, name).await?;
    Ok(Redirect::to("/schedules"))
}

pub(super) async fn resume_schedule(
    caller: Administrator,
    app: State<Arc<App>>,
    name: PathName,
) -> ApiResult<Redirect> {
    let _ = schedules::resume(caller, app, name).await?;
    Ok(Redirect::to("/schedules"))
}

/// Redirects to the page of the form.
fn back(fields: &[(String, String)]) -> Redirect {
    Redirect::to(local_path(field(fields, "back").unwrap_or("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_form_becomes_the_body_of_the_api() {
        let limited =
            |concurrency, rate| limits(&fields(&[("concurrency", concurrency), ("rate", rate)]));
        assert!(limited("1,008", "Unlimited").is_ok() && limited(" ", "").is_ok());
        assert!(limited("8", "much").is_err());
        let selected = |pairs: &[(&str, &str)]| selection(&fields(pairs)).ok();
        let ids = selected(&[("ids", "a"), ("ids", "b"), ("jobType", "T")]);
        assert_eq!(ids, Some(json!({"ids": ["a", "b"]})));
        assert_eq!(selected(&[("back", "/dead-letters")]), None, "nothing is selected");
        let found = selected(&[("bulk", "yes"), ("jobType", "T"), ("error", "")]);
        assert_eq!(found, Some(json!({"jobType": "T"})), "the filter of a bulk action");
    }
}
