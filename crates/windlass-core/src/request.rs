//! The request: what the command line, the API, cron, dependencies and the outbox all submit.

use crate::problem::{Code, Problem};
use crate::{ColumnType, Identity, JobId, JobType, OnFailed, Table, config, items};
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A request for one job. Only `jobType` is needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// Which job type.
    pub job_type: String,
    /// Values by filter; none, null and empty lists mean all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<BTreeMap<String, Option<Vec<Json>>>>,
    /// How many segments are loaded side by side; chosen by the table's size when absent.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub parallel_segments: Option<u32>,
    /// A segment stops after so many items.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub max_items_per_segment: Option<u64>,
    /// Values for `:name` in statements, and for handlers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Json>,
    /// 0 to 9, higher first.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The same request again under the same key is the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Only after these jobs have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Vec<JobId>>,
    /// What one of them that failed or was cancelled means; `block` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failed: Option<OnFailed>,
    /// Just these keys; a key of several columns is a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<Json>>,
    /// The records themselves, for job types with `source.items`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<Json>>,
}

/// The number of segments when the request does not say.
pub const DEFAULT_SEGMENTS: u32 = 10;
/// The most segments a request may ask for.
pub const MOST_SEGMENTS: u32 = 1000;
/// The most jobs that a request may wait for.
pub const MOST_PARENTS: usize = 1000;
/// The priority when the request does not say.
pub const DEFAULT_PRIORITY: u8 = 5;

impl Request {
    /// The most bytes of a request as JSON: it is kept with its job, and read as a whole.
    pub const MOST_BYTES: usize = 8 << 20;

    /// A request for the whole source of a job type.
    pub fn new(job_type: impl Into<String>) -> Request {
        Request { job_type: job_type.into(), ..Request::default() }
    }

    /// The filters that restrict anything.
    pub fn filters(&self) -> impl Iterator<Item = (&str, &[Json])> {
        let all = self.filter.iter().flatten();
        all.filter_map(|(name, values)| match values.as_deref() {
            Some(values) if !values.is_empty() => Some((name.as_str(), values)),
            _ => None,
        })
    }

    /// The priority, with its default.
    pub fn priority(&self) -> u8 {
        self.priority.unwrap_or(DEFAULT_PRIORITY)
    }

    /// The jobs it is to come after, each once.
    pub fn parents(&self) -> Vec<JobId> {
        let mut parents = self.after.clone().unwrap_or_default();
        parents.sort();
        parents.dedup();
        parents
    }

    /// Refuses a request that is too large to be kept.
    pub fn check_size(&self) -> Result<(), Problem> {
        let mut counted = Counted(0);
        // Plain values, which can always be written.
        let _ = serde_json::to_writer(&mut counted, self);
        let (bytes, most) = (counted.0, Request::MOST_BYTES);
        if bytes <= most {
            return Ok(());
        }
        let field = if self.items.is_some() { "items" } else { "request" };
        let detail = format!(
            "the request has {bytes} bytes as JSON, and {most} are the most; make several of it, or \
             put what is large where the step can read it"
        );
        Err(Problem::field(Code::Request, field, detail))
    }

    /// Refuses a request that the job type cannot serve, before anything is written.
    pub fn check(
        &self,
        job_type: &JobType,
        identity: &Identity,
        table: &Table,
    ) -> Result<(), Problem> {
        let refuse =
            |field: &str, detail: String| Err(Problem::field(Code::Request, field, detail));
        items::check(self, job_type)?;
        if let Some(segments) = self.parallel_segments
            && !(1..=MOST_SEGMENTS).contains(&segments)
        {
            let detail = format!("is {segments}; 1 to {MOST_SEGMENTS} would be right");
            return refuse("parallelSegments", detail);
        }
        if self.max_items_per_segment == Some(0) {
            return refuse("maxItemsPerSegment", "is 0; leave it out for no limit".into());
        }
        if self.priority() > 9 {
            return refuse("priority", format!("is {}; 0 to 9 would be right", self.priority()));
        }
        if self.parents().len() > MOST_PARENTS {
            return refuse("after", format!("names more than {MOST_PARENTS} jobs"));
        }
        if self.on_failed.is_some() && self.parents().is_empty() {
            return refuse("onFailed", "says something of `after`, which is missing".into());
        }
        for (name, values) in self.filters() {
            let field = format!("filter.{name}");
            let Some(column) = job_type.source.filters.get(name) else {
                let known = config::names(job_type.source.filters.keys());
                let detail = format!("`{}` has no such filter; there is {known}", job_type.name);
                return refuse(&field, detail);
            };
            let column = table.column(column);
            for value in values {
                column
                    .map_or_else(|| crate::ColumnType::Other.read(value), |c| c.read(value))
                    .or_else(|detail| refuse(&field, detail).map(|()| crate::Value::Null))?;
            }
        }
        for (place, id) in self.ids.iter().flatten().enumerate() {
            check_id(&job_type.source.key, id, table)
                .or_else(|detail| refuse(&format!("ids[{place}]"), detail))?;
        }
        if self.ids.as_ref().is_some_and(Vec::is_empty) {
            return refuse("ids", "is an empty list; leave it out for the whole source".into());
        }
        if let Some(template) = job_type.statement()? {
            for name in template.params() {
                match self.params.get(name) {
                    None => {
                        return refuse(
                            &format!("params.{name}"),
                            "is missing; the step binds it".into(),
                        );
                    }
                    Some(Json::Array(_) | Json::Object(_)) => {
                        return refuse(&format!("params.{name}"), "must be a single value".into());
                    }
                    Some(_) => {}
                }
            }
        }
        for claim in job_type.source.claims.keys() {
            if identity.claims.get(claim).is_none_or(Vec::is_empty) {
                let detail = format!(
                    "`{}` is filtered by this claim and the submitter has none",
                    job_type.name
                );
                return refuse(&format!("claims.{claim}"), detail);
            }
        }
        Ok(())
    }
}

/// Counts what is written to it.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Reads a whole number as JSON Schema understands one: `3.0` is `3`.
pub fn whole<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0);
    // Beyond 2^53 a float says no more which number is meant.
    let exact = || float().filter(|float| *float < 9e15).map(|float| float as u64);
    let whole = number.as_u64().or_else(exact).and_then(|whole| T::try_from(whole).ok());
    whole.map(Some).ok_or_else(|| D::Error::custom(format!("{number} is not a number that fits")))
}

fn check_id(key: &[String], id: &Json, table: &Table) -> Result<(), String> {
    let parts: Vec<&Json> = match id {
        Json::Array(parts) => parts.iter().collect(),
        single => vec![single],
    };
    if parts.len() != key.len() {
        let columns = key.join(", ");
        return Err(format!("{id} has {} values; the key is ({columns})", parts.len()));
    }
    for (name, part) in key.iter().zip(parts) {
        match table.column(name) {
            // SQLite may hold another type in such a column all the same. What a person writes is taken
            // for a mistake; the keys of dead letters are as they were read, and not checked here.
            Some(column) if !matches!(column.kind, ColumnType::Other | ColumnType::Bytes) => {
                column.read(part)?;
            }
            _ => drop(table.read_key(name, part)?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Value};
    use serde_json::json;

    fn job_type() -> JobType {
        let text = "[jobs.J]\nsource = { connection = \"a\", table = \"t\", key = [\"id\"], \
                    filters = { years = \"year\" }, claims = { county = \"county\" } }\n\
                    step.sql = \"UPDATE t SET x = :month WHERE {chunk}\"\n";
        crate::Config::parse(text, |_| None).unwrap().jobs["J"].clone()
    }

    fn check(request: Json) -> Result<(), String> {
        let column = |name: &str, kind| Column {
            name: name.into(),
            kind,
            sql_type: String::new(),
            nullable: false,
        };
        let table = Table {
            columns: vec![column("id", ColumnType::Int), column("year", ColumnType::Int)],
            ..Table::default()
        };
        let claims = [("county".to_owned(), vec![Value::from("X")])].into();
        let identity = Identity { name: "clerk".into(), claims, ..Identity::default() };
        let request: Request = serde_json::from_value(request).map_err(|e| e.to_string())?;
        request.check(&job_type(), &identity, &table).map_err(|problem| problem.to_string())
    }

    #[test]
    fn the_contracts_request_is_accepted_and_round_trips() {
        let text = json!({"jobType": "J", "filter": {"years": ["2024", 2025]}, "parallelSegments": 10,
            "maxItemsPerSegment": 100, "params": {"month": "2025-01"}, "priority": 5,
            "idempotencyKey": "k", "ids": [1, "2"], "onFailed": "run",
            "after": ["0193a0c0-0000-7000-8000-000000000000"]});
        check(text.clone()).unwrap();
        let request: Request = serde_json::from_value(text.clone()).unwrap();
        assert_eq!(serde_json::to_value(&request).unwrap(), text);
    }

    #[test]
    fn whole_numbers_are_read_as_json_schema_understands_them() {
        let read = |number: &str| {
            let text = format!("{{\"jobType\": \"J\", \"priority\": {number}}}");
            serde_json::from_str::<Request>(&text).map(|request| request.priority)
        };
        assert_eq!(read("3").unwrap(), Some(3));
        assert_eq!(read("3.0").unwrap(), Some(3));
        assert_eq!(read("null").unwrap(), None);
        for wrong in ["3.5", "-1", "-1.0", "256", "1e300", "\"3\"", "[]"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_filter_null_and_empty_lists_mean_all() {
        for filter in [json!(null), json!({}), json!({"years": null}), json!({"years": []})] {
            let request: Request =
                serde_json::from_value(json!({"jobType": "J", "filter": filter})).unwrap();
            assert_eq!(request.filters().count(), 0);
        }
    }

    #[test]
    fn bad_fields_are_refused_by_name() {
        let month = json!({"month": 1});
        for (request, expected) in [
            (json!({"jobType": "J", "params": month, "parallelSegments": 0}), "parallelSegments"),
            (json!({"jobType": "J", "params": month, "parallelSegments": 100000}), "1 to 1000"),
            (
                json!({"jobType": "J", "params": month, "maxItemsPerSegment": 0}),
                "maxItemsPerSegment",
            ),
            (json!({"jobType": "J", "params": month, "priority": 10}), "priority"),
            (
                json!({"jobType": "J", "params": month, "filter": {"months": [1]}}),
                "there is `years`",
            ),
            (
                json!({"jobType": "J", "params": month, "filter": {"years": ["soon"]}}),
                "filter.years",
            ),
            (json!({"jobType": "J", "params": month, "ids": ["x"]}), "ids[0]"),
            (json!({"jobType": "J", "params": month, "ids": [[1, 2]]}), "the key is (id)"),
            (json!({"jobType": "J", "params": month, "ids": []}), "ids"),
            (json!({"jobType": "J", "params": month, "after": ["x"]}), "invalid"),
            (json!({"jobType": "J", "params": month, "onFailed": "run"}), "onFailed"),
            (json!({"jobType": "J", "params": month, "onFailed": "soon"}), "`cancel`"),
            (json!({"jobType": "J"}), "params.month"),
            (json!({"jobType": "J", "params": {"month": []}}), "params.month"),
            (json!({"jobType": "J", "colour": 1}), "colour"),
        ] {
            let message = check(request.clone()).unwrap_err();
            assert!(message.contains(expected), "{request}: {message}");
        }
    }

    #[test]
    fn a_request_that_is_too_large_is_refused_with_both_figures() {
        let with = |bytes: usize| Request {
            params: [("text".to_owned(), Json::from("x".repeat(bytes)))].into(),
            ..Request::new("J")
        };
        let around = serde_json::to_string(&with(0)).unwrap().len();
        let most = Request::MOST_BYTES;
        with(most - around).check_size().unwrap();
        let error = with(most - around + 1).check_size().unwrap_err().to_string();
        assert!(error.contains("8388609") && error.contains("8388608"), "{error}");
    }

    #[test]
    fn a_missing_claim_is_a_refusal() {
        let request = Request { params: [("month".into(), json!(1))].into(), ..Request::new("J") };
        let error =
            request.check(&job_type(), &Identity::default(), &Table::default()).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("claims.county"));
    }
}
