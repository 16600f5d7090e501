//! The form that submits a job: its fields, and the request that they become.

use super::actions::field as value_of;
use super::form::{Field, FieldKind, FormInput};
use super::format::scalar;
use super::layout::job_type_path;
use crate::problem::ApiResult;
use maud::{Markup, html};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;
use windlass_core::params::DATE;
use windlass_core::problem::Code;
use windlass_core::{JobType, Problem, StepKind};

/// The name of the form.
pub(super) const RUN: &str = "run";

/// The form. Empty fields do not restrict the job.
pub(super) fn form(job_type: &JobType, input: &FormInput) -> Markup {
    let to = |verb: &str| format!("{}/{verb}", job_type_path(&job_type.name));
    let input = input.of(RUN);
    let (fields, more) = (fields(job_type), more_fields(job_type));
    html! {
        form.stack method="post" action=(to("run")) {
            (input.other_reason(fields.iter().chain(&more)))
            @for field in &fields { (input.field(field)) }
            details open[input.concerns(&more)] {
                summary { "More options" }
                div.stack { @for field in &more { (input.field(field)) } }
            }
            div.actions {
                button formaction=(to("dry-run")) { "Dry run" }
                button.primary { "Run now" }
            }
        }
    }
}

/// The fields that most requests need.
fn fields(job_type: &JobType) -> Vec<Field> {
    let mut fields = Vec::new();
    for (filter, column) in &job_type.source.filters {
        let hint = html! { "values of " code { (column) } ", separated by commas; empty for all" };
        fields.push(Field::new(&format!("filter.{filter}"), filter, hint, FieldKind::Text));
    }
    for ParamField { name, meaning, default } in params(job_type) {
        let hint = html! { (meaning) };
        let field = Field::new(&format!("param.{name}"), &name, hint, FieldKind::Text);
        fields.push(field.placeholder(default));
    }
    if takes_any_param(job_type) {
        let hint = html! { "for the step, as a JSON object" };
        let field = Field::new("params", "Other params", hint, FieldKind::Lines);
        fields.push(field.placeholder(Some("{\"month\": \"2025-01\"}".to_owned())));
    }
    if job_type.source.items {
        let hint = html! { "the records: a JSON list, or one JSON object per line" };
        fields.push(Field::new("items", "Items", hint, FieldKind::Lines));
    }
    let hint = html! { "0 to 9, higher first; 5 if empty" };
    fields.push(Field::new("priority", "Priority", hint, FieldKind::Number(0)));
    fields
}

/// The fields that few requests need.
fn more_fields(job_type: &JobType) -> Vec<Field> {
    let mut fields = Vec::new();
    if !job_type.source.items {
        let hint = html! { "only these records: one key per line, a key of several columns as a JSON list" };
        fields.push(Field::new("ids", "Keys", hint, FieldKind::Lines));
        for (name, label, hint) in [
            ("maxItemsPerSegment", "Maximum items per segment", "empty for no limit"),
            ("parallelSegments", "Parallel segments", "planned at the same time; 10 if empty"),
        ] {
            fields.push(Field::new(name, label, html! { (hint) }, FieldKind::Number(1)));
        }
    }
    let hint = html! { "the same request with the same key is the same job" };
    fields.push(Field::new("idempotencyKey", "Idempotency key", hint, FieldKind::Text));
    fields
}

/// Whether the step may use params that the definition does not name.
fn takes_any_param(job_type: &JobType) -> bool {
    let kind = &job_type.step.kind;
    job_type.params.is_empty()
        && matches!(kind, StepKind::Handler(_) | StepKind::Command(_) | StepKind::Http(_))
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
pub(super) fn request(name: &str, fields: &[(String, String)]) -> ApiResult<Json> {
    let (mut filter, mut params) = (Map::new(), Map::new());
    if let Some(text) = value_of(fields, "params") {
        params = serde_json::from_str(text)
            .map_err(|error| wrong("params", format!("must be a JSON object: {error}")))?;
    }
    for (field, value) in fields {
        let value = value.trim();
        if value.is_empty() {
            continue;
        }
        if let Some(name) = field.strip_prefix("filter.") {
            let values = value.split(',').map(|value| Json::from(value.trim()));
            filter.insert(name.to_owned(), values.collect());
        } else if let Some(name) = field.strip_prefix("param.") {
            params.insert(name.to_owned(), param(value));
        }
    }
    let mut request = json!({"jobType": name, "filter": filter, "params": params});
    for name in ["priority", "maxItemsPerSegment", "parallelSegments"] {
        if let Some(value) = value_of(fields, name) {
            let number = value.parse::<u32>();
            let number = number
                .map_err(|_| wrong(name, format!("must be a whole number, got `{value}`")))?;
            request[name] = number.into();
        }
    }
    if let Some(key) = value_of(fields, "idempotencyKey") {
        request["idempotencyKey"] = key.into();
    }
    if let Some(text) = value_of(fields, "ids") {
        request["ids"] = ids(text)?.into();
    }
    if let Some(text) = value_of(fields, "items") {
        request["items"] = items(text)?.into();
    }
    Ok(request)
}

fn wrong(field: &str, detail: String) -> Problem {
    Problem::field(Code::Request, field, detail)
}

/// A param: a number or a boolean if it reads as one, otherwise text, as on the command line.
fn param(text: &str) -> Json {
    match serde_json::from_str(text) {
        Ok(value @ (Json::Number(_) | Json::Bool(_))) => value,
        _ => text.into(),
    }
}

/// One key per line; a key of several columns is a JSON list.
fn ids(text: &str) -> Result<Vec<Json>, Problem> {
    let key = |(index, line): (usize, &str)| match line.starts_with('[') {
        true => serde_json::from_str(line)
            .map_err(|error| wrong("ids", format!("line {}: not a JSON list: {error}", index + 1))),
        false => Ok(line.into()),
    };
    let lines = text.lines().map(str::trim).enumerate();
    lines.filter(|(_, line)| !line.is_empty()).map(key).collect()
}

/// A JSON list, or one JSON document per line.
fn items(text: &str) -> Result<Vec<Json>, Problem> {
    if text.starts_with('[') {
        return serde_json::from_str(text)
            .map_err(|error| wrong("items", format!("not a JSON list: {error}")));
    }
    let item = |(index, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| wrong("items", format!("line {}: not JSON: {error}", index + 1)))
    };
    let lines = text.lines().map(str::trim).enumerate();
    lines.filter(|(_, line)| !line.is_empty()).map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(fields: &[(&str, &str)]) -> Result<Json, String> {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        request("T", &fields).map_err(|error| {
            let problem = error.into_problem();
            format!("{}: {}", problem.field.unwrap_or_default(), problem.detail.unwrap_or_default())
        })
    }

    #[test]
    fn a_form_becomes_a_request() {
        let fields = [
            ("filter.years", "2024, 2025"),
            ("filter.county", ""),
            ("param.month", "2025-01"),
            ("param.factor", "1.5"),
            ("params", "{\"deep\": [1]}"),
            ("priority", "7"),
            ("ids", "a\n\n[1, \"b\"]\n"),
        ];
        let expected = json!({
            "jobType": "T", "filter": {"years": ["2024", "2025"]},
            "params": {"deep": [1], "factor": 1.5, "month": "2025-01"},
            "priority": 7, "ids": ["a", [1, "b"]],
        });
        assert_eq!(requested(&fields), Ok(expected));
        let items = json!([{"id": 1}, {"id": 2}]);
        for text in ["[{\"id\": 1}, {\"id\": 2}]", "{\"id\": 1}\n{\"id\": 2}"] {
            assert_eq!(requested(&[("items", text)]).unwrap()["items"], items);
        }
    }

    #[test]
    fn wrong_input_names_its_field_and_line() {
        for (name, value, expected) in [
            ("priority", "high", "priority: must be a whole number, got `high`"),
            ("params", "[1]", "params: must be a JSON object"),
            ("ids", "1\n[2", "ids: line 2: not a JSON list"),
            ("items", "{\"id\": 1}\nx", "items: line 2: not JSON"),
            ("items", "[1,", "items: not a JSON list"),
        ] {
            let message = requested(&[(name, value)]).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
