//! What the buttons do: each form becomes the body that the API takes, and its route does the rest.

use super::same_origin::place;
use crate::App;
use crate::auth::{Administrator, Operator};
use crate::extract::{Body, Id, Name, Query};
use crate::problem::Answer;
use crate::routes::control::{Limits, Subject};
use crate::routes::{control, dead_letters, lifecycle, schedules};
use axum::Form;
use axum::extract::State;
use axum::response::Redirect;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use windlass_core::Problem;
use windlass_core::problem::Code;

/// The fields of a form, in their order; a name may come more than once.
pub(super) type Fields = Form<Vec<(String, String)>>;

/// The value of a field that something was written into.
pub(super) fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = fields.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// What the API would read from this body.
pub(super) fn body<T: DeserializeOwned>(body: Json) -> Answer<Body<T>> {
    let read = serde_json::from_value(body).map(Body);
    read.map_err(|error| Problem::new(Code::Request, error.to_string()).into())
}

/// Writes the handlers that do one thing to a job and show it.
macro_rules! moves {
    ($($name:ident),+) => {$(
        pub(super) async fn $name(
            caller: Operator,
            app: State<Arc<App>>,
            Id(id): Id,
        ) -> Answer<Redirect> {
            let _ = lifecycle::$name(caller, app, Id(id)).await?;
            Ok(Redirect::to(&format!("/jobs/{id}")))
        }
    )+};
}

moves!(cancel, pause, resume, retry);

pub(super) async fn stop(
    caller: Administrator,
    app: State<Arc<App>>,
    Form(fields): Fields,
) -> Answer<Redirect> {
    let _ = control::stop(caller, app, Query(subject(&fields))).await?;
    Ok(back(&fields))
}

pub(super) async fn start(
    caller: Administrator,
    app: State<Arc<App>>,
    Form(fields): Fields,
) -> Answer<Redirect> {
    let _ = control::start(caller, app, Query(subject(&fields))).await?;
    Ok(back(&fields))
}

fn subject(fields: &[(String, String)]) -> Subject {
    Subject { job_type: field(fields, "jobType").map(str::to_owned) }
}

pub(super) async fn limit_job(
    caller: Operator,
    app: State<Arc<App>>,
    Id(id): Id,
    Form(fields): Fields,
) -> Answer<Redirect> {
    let _ = control::limit_job(caller, app, Id(id), limits(&fields)?).await?;
    Ok(Redirect::to(&format!("/jobs/{id}")))
}

pub(super) async fn limit_job_type(
    caller: Administrator,
    app: State<Arc<App>>,
    Name(name): Name,
    Form(fields): Fields,
) -> Answer<Redirect> {
    let _ = control::limit_job_type(caller, app, Name(name), limits(&fields)?).await?;
    Ok(back(&fields))
}

/// Limits: numbers as numbers, words as words; what is left empty stays as it is.
fn limits(fields: &[(String, String)]) -> Answer<Body<Limits>> {
    let mut limits = Map::new();
    for name in ["concurrency", "rate"] {
        if let Some(said) = field(fields, name) {
            let number = said.replace(',', "").parse::<u64>().map(Json::from);
            let limit = number.unwrap_or_else(|_| said.to_lowercase().into());
            // Alone, so that what is wrong has a name.
            let read = serde_json::from_value::<Limits>(json!({ name: limit }));
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
) -> Answer<Redirect> {
    let _ = dead_letters::redrive(caller, app, body(which(&fields))?).await?;
    Ok(back(&fields))
}

pub(super) async fn ignore(
    caller: Operator,
    app: State<Arc<App>>,
    Form(fields): Fields,
) -> Answer<Redirect> {
    let _ = dead_letters::ignore(caller, app, body(which(&fields))?).await?;
    Ok(back(&fields))
}

/// The letters that were chosen one by one, or else all that a search finds.
fn which(fields: &[(String, String)]) -> Json {
    let ids = fields.iter().filter(|(name, _)| name == "ids");
    let ids: Vec<&str> = ids.map(|(_, id)| id.as_str()).collect();
    if !ids.is_empty() {
        return json!({ "ids": ids });
    }
    let mut which = Map::new();
    for name in ["job", "jobType", "error", "fingerprint"] {
        if let Some(value) = field(fields, name) {
            which.insert(name.to_owned(), value.into());
        }
    }
    if field(fields, "all").is_some() {
        which.insert("all".to_owned(), true.into());
    }
    Json::Object(which)
}

pub(super) async fn pause_schedule(
    caller: Administrator,
    app: State<Arc<App>>,
    name: Name,
) -> Answer<Redirect> {
    let _ = schedules::pause(caller, app, name).await?;
    Ok(Redirect::to("/schedules"))
}

pub(super) async fn resume_schedule(
    caller: Administrator,
    app: State<Arc<App>>,
    name: Name,
) -> Answer<Redirect> {
    let _ = schedules::resume(caller, app, name).await?;
    Ok(Redirect::to("/schedules"))
}

/// Back to the page that the form was on.
fn back(fields: &[(String, String)]) -> Redirect {
    Redirect::to(place(field(fields, "back").unwrap_or("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_form_becomes_what_the_api_takes() {
        let limited =
            |concurrency, rate| limits(&fields(&[("concurrency", concurrency), ("rate", rate)]));
        assert!(limited("1,008", "Unlimited").is_ok() && limited(" ", "").is_ok());
        assert!(limited("8", "much").is_err());
        let chosen = which(&fields(&[("ids", "a"), ("ids", "b"), ("jobType", "T")]));
        assert_eq!(chosen, json!({"ids": ["a", "b"]}));
        let found = which(&fields(&[("jobType", "T"), ("error", "")]));
        assert_eq!(found, json!({"jobType": "T"}), "a search without letters chosen");
    }
}
