//! Runs a job type from a form with its filters and params, as a dry run or for real.

use super::actions::{Fields, body, field};
use super::format::{count, scalar};
use super::layout::{LiveUpdates, PageContext, Section, empty_state, job_type_path, table_head};
use crate::App;
use crate::auth::Submitter;
use crate::extract::{JsonBody, PathName};
use crate::problem::ApiResult;
use crate::routes::jobs;
use axum::Form;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::response::{Html, Redirect};
use maud::{Markup, html};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_core::params::DATE;
use windlass_core::{JobType, Request};
use windlass_engine::Sample;

/// The form. Empty fields do not restrict the job.
pub(super) fn form(job_type: &JobType) -> Markup {
    let to = |verb: &str| format!("{}/{verb}", job_type_path(&job_type.name));
    html! {
        form.stack method="post" action=(to("run")) {
            @for (filter, column) in &job_type.source.filters {
                label {
                    (filter) " "
                    span.faint { "values of " code { (column) } ", separated by commas; empty for all" }
                    input name=(format!("filter.{filter}")) autocomplete="off";
                }
            }
            @for param in params(job_type) {
                label {
                    (param.name) " " span.faint { (param.meaning) }
                    input name=(format!("param.{}", param.name)) placeholder=[param.default] autocomplete="off";
                }
            }
            label {
                "Priority " span.faint { "0 to 9, higher first" }
                input name="priority" type="number" min="0" max="9" placeholder="5";
            }
            label {
                "Maximum items per segment " span.faint { "empty for no limit" }
                input name="maxItemsPerSegment" type="number" min="1";
            }
            div.actions {
                button formaction=(to("dry-run")) { "Dry run" }
                button.primary { "Run now" }
            }
        }
    }
}

/// A param in the form.
struct ParamField {
    name: String,
    meaning: String,
    default: Option<String>,
}

/// The params that the job type declares, or else those that the definition uses.
fn params(job_type: &JobType) -> Vec<ParamField> {
    let declared = job_type.params.iter().map(|(name, param)| {
        let required = if param.default.is_none() && param.required { ", required" } else { "" };
        let separator = if param.description.is_empty() { "" } else { ": " };
        ParamField {
            name: name.clone(),
            meaning: format!("{}{required}{separator}{}", param.kind.as_str(), param.description),
            default: param.default.as_ref().map(scalar),
        }
    });
    let mut names: BTreeSet<String> = job_type.used_params().into_keys().collect();
    names.extend(job_type.schedule.iter().flat_map(|schedule| schedule.params.keys().cloned()));
    let used = names.into_iter().filter(|name| !job_type.params.contains_key(name));
    let used = used.map(|name| {
        let meaning = if name == DATE { "the job's date; today if empty" } else { "param" };
        ParamField { name, meaning: meaning.to_owned(), default: None }
    });
    declared.chain(used).collect()
}

/// The request for the fields of the form.
fn request(name: &str, fields: &[(String, String)]) -> Json {
    let (mut filter, mut params) = (Map::new(), Map::new());
    for (field, value) in fields {
        let value = value.trim();
        if value.is_empty() {
            continue;
        }
        if let Some(name) = field.strip_prefix("filter.") {
            let values = value.split(',').map(|value| Json::from(value.trim()));
            filter.insert(name.to_owned(), values.collect());
        } else if let Some(name) = field.strip_prefix("param.") {
            params.insert(name.to_owned(), value.into());
        }
    }
    let mut request = json!({"jobType": name, "filter": filter, "params": params});
    for name in ["priority", "maxItemsPerSegment"] {
        if let Some(value) = field(fields, name) {
            let number = value.parse::<u64>().map(Json::from);
            request[name] = number.unwrap_or_else(|_| value.into());
        }
    }
    request
}

pub(super) async fn run(
    caller: Submitter,
    app: State<Arc<App>>,
    PathName(name): PathName,
    Form(fields): Fields,
) -> ApiResult<Redirect> {
    app.check_job_type(&caller.0, &name)?;
    let submitted = jobs::submit(caller, app, body(request(&name, &fields))?).await?;
    let location = submitted.headers().get(LOCATION).and_then(|path| path.to_str().ok());
    Ok(Redirect::to(location.and_then(|path| path.strip_prefix("/api/v1")).unwrap_or("/jobs")))
}

pub(super) async fn dry_run(
    Submitter(caller): Submitter,
    State(app): State<Arc<App>>,
    PathName(name): PathName,
    Form(fields): Fields,
) -> ApiResult<Html<String>> {
    app.check_job_type(&caller, &name)?;
    let JsonBody(mut request) = body::<Request>(request(&name, &fields))?;
    jobs::check_request(&app, &caller, &mut request).await?;
    let result = app.engine.dry_run(request, caller.identity()).await?;
    let page = PageContext::load(&app, caller).await?;
    let path = job_type_path(&name);
    let content = html! {
        h1 { "Dry run of " a href=(path) { (name) } }
        p {
            "The job would process " strong { (count(result.records, "record", "records")) }
            ". Nothing was changed. A sample before and after:"
        }
        @if result.sample.is_empty() { (empty_state("No matching records.")) }
        @for sample in &result.sample { (comparison(sample)) }
        form.actions method="post" action=(path + "/run") {
            @for (name, value) in &fields { input type="hidden" name=(name) value=(value); }
            button.primary { "Run now" }
        }
    };
    Ok(page.render(Section::JobTypes, "Dry run", LiveUpdates::Off, content))
}

/// A record before and after, with the differences highlighted.
fn comparison(sample: &Sample) -> Markup {
    let fields = sample.before.as_object().into_iter().flatten();
    let deleted = sample.after.is_null();
    html! {
        section.detail {
            h2 { (scalar(&sample.key)) " " span.badge { (sample.outcome) } }
            div.scroll {
                table.record {
                    (table_head(&["Field", "Before", "After"]))
                    tbody {
                        @for (name, before) in fields {
                            @let after = sample.after.get(name);
                            tr.changed[after != Some(before)] {
                                th scope="row" { (name) }
                                td.text { (scalar(before)) }
                                td.text {
                                    @if deleted {
                                        "deleted"
                                    } @else { (after.map(scalar).unwrap_or_default()) }
                                }
                            }
                        }
                    }
                }
            }
            @let inserts = serde_json::to_string_pretty(&sample.inserts);
            @let emits = serde_json::to_string_pretty(&sample.emits);
            @for (title, made) in [("Inserts", inserts), ("Emits", emits)] {
                @if let Ok(made) = made {
                    @if made != "[]" { details { summary { (title) } pre { (made) } } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_becomes_a_request() {
        let fields = [
            ("filter.years", "2024, 2025"),
            ("filter.county", ""),
            ("param.month", "2025-01"),
            ("priority", "7"),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = json!({"jobType": "T", "filter": {"years": ["2024", "2025"]}, "params": {"month": "2025-01"}, "priority": 7});
        assert_eq!(request("T", &fields), expected);
    }
}
