//! Requests that carry their records: which job types accept them, and what an item must be.

use crate::problem::{Code, Problem};
use crate::{JobType, Key, Request, Value};
use serde_json::Value as Json;
use std::collections::HashMap;

/// The problems of a job type whose requests carry the records.
pub(crate) fn problems(job_type: &JobType) -> Vec<(&'static str, String)> {
    let source = &job_type.source;
    let mut problems = Vec::new();
    if !source.items {
        if source.unit.is_some() {
            problems.push(("source.unit", "requires source.items = true".to_owned()));
        }
        return problems;
    }
    let mut refuse = |field, wrong: bool, detail: &str| {
        if wrong {
            problems.push((field, detail.to_owned()));
        }
    };
    let beside = "cannot be combined with source.items, whose records come with the request; keep one of them";
    refuse("source.table", source.table.is_some(), beside);
    refuse("source.query", source.query.is_some(), beside);
    let key = "is missing; name the fields of an item that identify it, as [\"id\"]";
    refuse("source.key", source.key.is_empty(), key);
    let filters = "filters a table, and source.items has none; send only the items to process";
    refuse("source.where", source.condition.is_some(), filters);
    refuse("source.match", !source.matches.is_empty(), filters);
    refuse("source.filters", !source.filters.is_empty(), filters);
    let claims = "filters the rows that a submitter may read, and source.items reads none: the submitter \
                  already has the items";
    refuse("source.claims", !source.claims.is_empty(), claims);
    let by_item = job_type.step.kind.is_handler();
    let step = "requires a table; source.items works with step.command, step.http and step.handler";
    refuse(job_type.step.kind.field(), !by_item, step);
    let version = "guards what is written back, and there is no table to write items back to";
    refuse("step.version", job_type.step.version.is_some(), version);
    let schedule = "has no items to submit; submit them from an application or with `windlass submit --items-file`";
    refuse("schedule", job_type.schedule.is_some(), schedule);
    problems
}

/// Refuses a request whose items the job type cannot process.
pub(crate) fn check(request: &Request, job_type: &JobType) -> Result<(), Problem> {
    let source = &job_type.source;
    let name = &job_type.name;
    let items = match &request.items {
        None if !source.items => return Ok(()),
        Some(_) if !source.items => {
            let detail =
                format!("`{name}` reads its records from a database; it has no source.items");
            return refuse("items", detail);
        }
        None => {
            return refuse(
                "items",
                format!("is missing; `{name}` processes the items of the request"),
            );
        }
        Some(items) if items.is_empty() => {
            return refuse("items", "is empty, so there is nothing to do");
        }
        Some(items) => items,
    };
    for (field, given) in [
        ("filter", request.filters().next().is_some()),
        ("ids", request.ids.is_some()),
        ("parallelSegments", request.parallel_segments.is_some()),
        ("maxItemsPerSegment", request.max_items_per_segment.is_some()),
    ] {
        if given {
            return refuse(field, "requires a table; send only the items to process");
        }
    }
    let mut places = HashMap::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        if has_nul(item) {
            let detail = "contains the character \\u0000, which databases do not accept";
            return refuse(format!("items[{place}]"), detail);
        }
        let key = key_of(item, &source.key).map_err(|(field, detail)| {
            Problem::field(Code::Request, format!("items[{place}]{field}"), detail)
        })?;
        if let Some(first) = places.insert(key.to_text(), place) {
            let detail = format!("has the key of items[{first}]: {key}");
            return refuse(format!("items[{place}]"), detail);
        }
    }
    source.unit.as_ref().map_or(Ok(()), |unit| is_one_unit(request, items, unit))
}

/// The key of an item: the values of its key fields, strings or integers.
///
/// # Errors
/// The field that is missing or has another type, and why.
pub fn key_of(item: &Json, fields: &[String]) -> Result<Key, (String, String)> {
    let Json::Object(item) = item else {
        return Err((String::new(), "is not a JSON object".to_owned()));
    };
    let part = |field: &String| match item.get(field) {
        None | Some(Json::Null) => Err("is missing; it identifies the item".to_owned()),
        Some(Json::String(text)) => Ok(Value::from(text.as_str())),
        Some(Json::Number(number)) if number.is_i64() => Ok(Value::from(number.as_i64())),
        Some(other) => Err(format!("must be a string or an integer, got {other}")),
    };
    let parts = fields.iter().map(|field| part(field).map_err(|why| (format!(".{field}"), why)));
    Ok(Key(parts.collect::<Result<_, _>>()?))
}

/// A unit of work makes one job: all its items, and none of another. An item without the field belongs to the
/// unit that the request names.
fn is_one_unit(request: &Request, items: &[Json], unit: &str) -> Result<(), Problem> {
    let named = request.params.get(unit).filter(|value| !value.is_null());
    let mut first = None;
    for (place, item) in items.iter().enumerate() {
        let value = match item.get(unit).filter(|value| !value.is_null()) {
            Some(value) => value,
            None if named.is_some() => continue,
            None => {
                let detail = "is missing; all items of a request must have the same value";
                return refuse(format!("items[{place}].{unit}"), detail);
            }
        };
        match first {
            None => first = Some((place, value)),
            Some((_, first)) if first == value => {}
            Some((place_of_first, first)) => {
                let detail = format!(
                    "is {value}, but items[{place_of_first}].{unit} is {first}; all items of a request must have the same value"
                );
                return refuse(format!("items[{place}].{unit}"), detail);
            }
        }
    }
    match (named, first) {
        (Some(param), Some((place, first))) if param != first => {
            let detail = format!("is {param}, but items[{place}].{unit} is {first}");
            refuse(format!("params.{unit}"), detail)
        }
        _ => Ok(()),
    }
}

fn has_nul(json: &Json) -> bool {
    match json {
        Json::String(text) => text.contains('\0'),
        Json::Array(values) => values.iter().any(has_nul),
        Json::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains('\0') || has_nul(value))
        }
        _ => false,
    }
}

fn refuse(field: impl Into<String>, detail: impl Into<String>) -> Result<(), Problem> {
    Err(Problem::field(Code::Request, field, detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Identity, Table};
    use serde_json::json;

    const POINTS: &str = "[connections.a]\nurl = \"sqlite:x\"\n[jobs.J]\nsource.connection = \"a\"\n\
                          source.items = true\nsource.key = [\"id\"]\nsource.unit = \"fileId\"\n\
                          step.command = [\"work\"]\n";

    fn job_type(text: &str) -> JobType {
        Config::parse(text, |_| None).unwrap().jobs["J"].clone()
    }

    fn refusal(text: &str, fields: Json) -> String {
        let mut request = json!({"jobType": "J"});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let request: Request = serde_json::from_value(request).unwrap();
        let checked = request.check(&job_type(text), &Identity::default(), &Table::default());
        checked.err().map_or("none".to_owned(), |problem| problem.to_string())
    }

    #[test]
    fn items_of_one_unit_with_keys_of_their_own_are_taken() {
        let items =
            json!([{"id": "a", "fileId": 1}, {"id": 1, "fileId": 1}, {"id": "1", "fileId": 1}]);
        assert_eq!(refusal(POINTS, json!({"items": items, "params": {"fileId": 1}})), "none");
        let items = json!([{"id": 1}, {"id": 2, "fileId": 1}]);
        assert_eq!(refusal(POINTS, json!({"items": items, "params": {"fileId": 1}})), "none");
    }

    #[test]
    fn what_is_wrong_with_items_is_named() {
        let one = json!([{"id": 1, "fileId": 1}]);
        for (request, expected) in [
            (json!({}), "items: is missing"),
            (json!({"items": []}), "items: is empty"),
            (json!({"items": [{"id": 1, "fileId": 1}, 7]}), "items[1]: is not a JSON object"),
            (json!({"items": [{"fileId": 1}]}), "items[0].id: is missing"),
            (json!({"items": [{"id": null, "fileId": 1}]}), "items[0].id: is missing"),
            (
                json!({"items": [{"id": [1], "fileId": 1}]}),
                "items[0].id: must be a string or an integer, got [1]",
            ),
            (
                json!({"items": [{"id": 1.5, "fileId": 1}]}),
                "items[0].id: must be a string or an integer, got 1.5",
            ),
            (
                json!({"items": [{"id": u64::MAX, "fileId": 1}]}),
                "items[0].id: must be a string or an integer, got 184467",
            ),
            (
                json!({"items": [{"id": 1, "fileId": 1}, {"id": 2, "fileId": 1}, {"id": 1, "fileId": 1}]}),
                "items[2]: has the key of items[0]: 1",
            ),
            (
                json!({"items": [{"id": 1, "fileId": 1}, {"id": 2, "fileId": 2}]}),
                "items[1].fileId: is 2, but items[0].fileId is 1",
            ),
            (json!({"items": [{"id": 1}]}), "items[0].fileId: is missing"),
            (
                json!({"items": [{"id": 1}, {"id": 2, "fileId": 2}], "params": {"fileId": 1}}),
                "params.fileId: is 1, but items[1].fileId is 2",
            ),
            (
                json!({"items": [{"id": 1, "fileId": 1, "a": ["\0"]}]}),
                "items[0]: contains the character",
            ),
            (json!({"items": one, "params": {"fileId": 2}}), "params.fileId: is 2"),
            (json!({"items": one, "ids": [1]}), "ids: requires a table"),
            (json!({"items": one, "filter": {"a": [1]}}), "filter: requires a table"),
            (json!({"items": one, "parallelSegments": 2}), "parallelSegments: requires a table"),
            (json!({"items": one, "maxItemsPerSegment": 2}), "maxItemsPerSegment: requires"),
        ] {
            let message = refusal(POINTS, request.clone());
            assert!(message.contains(expected), "{request}: {message}");
        }
        let table = POINTS.replace("source.items = true", "source.table = \"t\"");
        let message = refusal(&table.replace("source.unit", "step.version"), json!({"items": one}));
        assert!(message.contains("items: `J` reads its records from a database"), "{message}");
    }

    #[test]
    fn what_cannot_go_with_items_is_refused_in_the_definition() {
        assert_eq!(job_type(POINTS).problems(), []);
        for (more, expected) in [
            ("source.table = \"t\"", "source.table: cannot be combined"),
            ("source.query = \"SELECT 1\"", "source.query: cannot be combined"),
            ("source.where = \"true\"", "source.where: filters a table"),
            ("source.filters = { a = \"b\" }", "source.filters: filters a table"),
            ("source.claims = { a = \"b\" }", "source.claims: filters the rows"),
            ("step.version = \"v\"", "step.version: guards"),
            ("schedule.cron = \"0 3 * * *\"", "schedule: has no items"),
        ] {
            let problems = job_type(&format!("{POINTS}{more}\n")).problems();
            assert_eq!(problems.len(), 1, "{more}: {problems:?}");
            let message = problems[0].to_string();
            assert!(message.contains(expected) && message.contains("line 3"), "{message}");
        }
        for (from, to, expected) in [
            ("step.command = [\"work\"]", "step.refresh = true", "step.refresh: requires a table"),
            (
                "step.command = [\"work\"]",
                "step.sql = \"UPDATE t SET a = 1 WHERE {chunk}\"",
                "step.sql: requires a table",
            ),
            ("source.key = [\"id\"]", "", "source.key: is missing"),
            ("source.items = true", "source.query = \"q\"", "source.unit: requires source.items"),
        ] {
            let problems = job_type(&POINTS.replace(from, to)).problems();
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert!(all.iter().any(|message| message.contains(expected)), "{to}: {all:?}");
        }
    }
}
