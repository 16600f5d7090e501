//! Payloads of other programs: `source.rename` reads their fields as fields of a request.

use crate::problem::{Code, Problem};
use crate::{JobType, Request};
use serde_json::{Map, Value as Json};

/// The fields of a request, without the job type.
const FIELDS: [&str; 10] = [
    "filter",
    "parallelSegments",
    "maxItemsPerSegment",
    "params",
    "priority",
    "idempotencyKey",
    "after",
    "onFailed",
    "ids",
    "items",
];
/// Fields that a request of the API or the outbox has besides.
const MORE_FIELDS: [&str; 3] = ["jobType", "claims", "submittedBy"];

impl Request {
    /// Reads a request from a JSON object. For a job type with `source.rename`, the renamed fields are
    /// read as fields of the request, and other fields with the name of a declared param as that param.
    ///
    /// ```
    /// use serde_json::json;
    /// use windlass_core::{JobType, Request};
    ///
    /// let job_type = JobType::from_json("RESOLVE", json!({
    ///     "source": {"connection": "app", "items": true, "key": ["id"], "rename": {"pois": "items"}},
    ///     "step": {"command": ["resolve"]}, "params": {"fileId": {"type": "text"}},
    /// })).unwrap();
    /// let payload = json!({"jobType": "RESOLVE", "fileId": "a.py", "pois": [{"id": 1}]});
    /// let request = Request::from_payload(payload.as_object().unwrap().clone(), Some(&job_type))?;
    /// assert_eq!(request.params["fileId"], "a.py");
    /// assert_eq!(request.items.unwrap().len(), 1);
    /// # Ok::<(), windlass_core::Problem>(())
    /// ```
    ///
    /// # Errors
    /// A field is unknown, is given twice, or has the wrong type.
    pub fn from_payload(
        mut payload: Map<String, Json>,
        job_type: Option<&JobType>,
    ) -> Result<Request, Problem> {
        if let Some(job_type) = job_type.filter(|job_type| !job_type.source.rename.is_empty()) {
            rename(&mut payload, job_type)?;
        }
        serde_json::from_value(Json::Object(payload))
            .map_err(|error| Problem::field(Code::Request, "request", error.to_string()))
    }
}

fn rename(payload: &mut Map<String, Json>, job_type: &JobType) -> Result<(), Problem> {
    let twice = |name: &str, other: &str| {
        let detail = format!("is given twice, also as `{other}`; keep one of them");
        Err(Problem::field(Code::Request, name, detail))
    };
    for (name, field) in &job_type.source.rename {
        let Some(value) = payload.remove(name) else { continue };
        if payload.insert(field.clone(), value).is_some() {
            return twice(name, field);
        }
    }
    let is_param = |name: &String| {
        let is_unit = job_type.params.is_empty() && job_type.source.unit.as_ref() == Some(name);
        !is_field(name) && (is_unit || job_type.params.contains_key(name))
    };
    let names: Vec<String> = payload.keys().filter(|name| is_param(name)).cloned().collect();
    for name in names {
        let value = payload.remove(&name).unwrap_or_default();
        let params = payload.entry("params").or_insert_with(|| Json::Object(Map::new()));
        // Params of another type are refused when the request is read.
        let Some(params) = params.as_object_mut() else { return Ok(()) };
        if params.insert(name.clone(), value).is_some() {
            return twice(&name, &format!("params.{name}"));
        }
    }
    Ok(())
}

fn is_field(name: &str) -> bool {
    FIELDS.contains(&name) || MORE_FIELDS.contains(&name)
}

impl JobType {
    /// The field of its payloads that holds the items: `items`, or what `source.rename` renames to it.
    pub fn items_field(&self) -> &str {
        let renamed = self.source.rename.iter().find(|(_, field)| *field == "items");
        renamed.map_or("items", |(name, _)| name)
    }

    /// The problems of `source.rename`.
    pub(crate) fn rename_problems(&self) -> Vec<(String, String)> {
        let rename = &self.source.rename;
        let mut problems = Vec::new();
        for (name, field) in rename {
            let wrong = if name.is_empty() || name.contains('"') {
                "a name must not be empty or contain a quote".to_owned()
            } else if is_field(name) {
                format!(
                    "`{name}` is a field of the request already; a payload needs no other name for it"
                )
            } else if !FIELDS.contains(&field.as_str()) {
                format!(
                    "`{field}` is not a field of a request; it must be one of {}",
                    FIELDS.join(", ")
                )
            } else if rename.iter().any(|(other, also)| also == field && other < name) {
                format!("`{field}` has another name already; a field can be renamed once")
            } else if field == "items" && !self.source.items {
                "a request has `items` only with source.items = true".to_owned()
            } else if self.params.contains_key(name) {
                format!(
                    "`{name}` is a declared param; give the param another name, or do not rename it"
                )
            } else {
                continue;
            };
            problems.push((format!("source.rename.{name}"), wrong));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use serde_json::json;

    const POIS: &str = "[connections.a]\nurl = \"sqlite:x\"\n[jobs.J]\nsource.connection = \"a\"\n\
                        source.items = true\nsource.key = [\"id\"]\nsource.unit = \"fileId\"\n\
                        source.rename = { pois = \"items\", jobId = \"idempotencyKey\" }\n\
                        params = { fileId = { type = \"text\" }, line = { type = \"integer\", required = false } }\n\
                        step.command = [\"work\"]\n";

    fn job_type(text: &str) -> JobType {
        Config::parse(text, |_| None).unwrap().jobs["J"].clone()
    }

    fn read(text: &str, payload: Json) -> Result<Request, String> {
        let mut payload = payload.as_object().unwrap().clone();
        payload.insert("jobType".to_owned(), json!("J"));
        let read = Request::from_payload(payload, Some(&job_type(text)));
        read.map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_payload_of_another_program_is_read_as_a_request() {
        assert_eq!(job_type(POIS).problems(), []);
        let payload = json!({"jobId": "job-1", "fileId": "a.py", "line": 7, "pois": [{"id": "p"}]});
        let request = read(POIS, payload).unwrap();
        let expected = json!({"jobType": "J", "idempotencyKey": "job-1", "items": [{"id": "p"}],
            "params": {"fileId": "a.py", "line": 7}});
        assert_eq!(serde_json::to_value(&request).unwrap(), expected);
        // A request in the usual form is still one.
        let usual = json!({"params": {"fileId": "a.py", "line": 7}, "items": [{"id": "p"}],
            "idempotencyKey": "job-1"});
        assert_eq!(read(POIS, usual).unwrap(), request);
        assert_eq!(read(POIS, json!({"pois": null})).unwrap().items, None);
    }

    #[test]
    fn the_unit_is_a_param_where_none_is_declared() {
        let text: String = POIS
            .lines()
            .filter(|line| !line.starts_with("params"))
            .fold(String::new(), |text, line| text + line + "\n");
        let request = read(&text, json!({"fileId": "a.py", "pois": []})).unwrap();
        assert_eq!(request.params["fileId"], "a.py");
        let error = read(&text, json!({"line": 7, "pois": []})).unwrap_err();
        assert!(error.contains("unknown field `line`"), "{error}");
    }

    #[test]
    fn unknown_and_repeated_fields_are_refused() {
        for (payload, expected) in [
            (json!({"pios": []}), "unknown field `pios`"),
            (json!({"pois": [], "items": []}), "pois: is given twice, also as `items`"),
            (
                json!({"fileId": "a", "params": {"fileId": "a"}}),
                "fileId: is given twice, also as `params.fileId`",
            ),
            (json!({"fileId": "a", "params": 7}), "invalid type"),
            (json!({"pois": 7}), "invalid type"),
        ] {
            let error = read(POIS, payload.clone()).unwrap_err();
            assert!(error.contains(expected), "{payload}: {error}");
        }
        let without = POIS.replace("source.rename = ", "# ");
        let error = read(&without, json!({"fileId": "a"})).unwrap_err();
        assert!(error.contains("unknown field `fileId`"), "{error}");
    }

    #[test]
    fn what_cannot_be_renamed_is_refused_in_the_definition() {
        let rename = "{ pois = \"items\", jobId = \"idempotencyKey\" }";
        for (other, expected) in [
            ("{ pois = \"points\" }", "source.rename.pois: `points` is not a field of a request"),
            ("{ pois = \"jobType\" }", "source.rename.pois: `jobType` is not a field"),
            ("{ ids = \"items\" }", "source.rename.ids: `ids` is a field of the request already"),
            ("{ a = \"items\", b = \"items\" }", "source.rename.b: `items` has another name"),
            ("{ fileId = \"items\" }", "source.rename.fileId: `fileId` is a declared param"),
            ("{ \"\" = \"items\" }", "a name must not be empty"),
        ] {
            let problems = job_type(&POIS.replace(rename, other)).problems();
            assert_eq!(problems.len(), 1, "{other}: {problems:?}");
            let message = problems[0].to_string();
            assert!(message.contains(expected), "{other}: {message}");
        }
        let table = POIS
            .replace("source.items = true", "source.table = \"t\"")
            .replace("source.unit = \"fileId\"\n", "");
        let message = job_type(&table).problems()[0].to_string();
        assert!(message.contains("only with source.items = true"), "{message}");
    }
}
