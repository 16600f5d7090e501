//! `queue.key`: the two-way mapping between the key of a record and the field of its message.
//!
//! Each key column has a template with at most one `{field}`. All of them name the same field, and at least one
//! contains it. So a key determines the field, and the field the key.

use crate::{JobType, Key, Value};
use serde_json::Value as Json;

/// One template: the text before and after its `{field}`, or a constant.
struct KeyTemplate<'a> {
    prefix: &'a str,
    field: Option<&'a str>,
    suffix: &'a str,
}

impl<'a> KeyTemplate<'a> {
    /// Parses a template. `None` if it has more than one `{field}`, or another brace.
    fn parse(text: &'a str) -> Option<KeyTemplate<'a>> {
        let (prefix, field, suffix) = match text.split_once('{') {
            None => (text, None, ""),
            Some((prefix, rest)) => {
                let (field, suffix) = rest.split_once('}')?;
                (prefix, Some(field), suffix)
            }
        };
        let has_brace = |part: &str| part.contains(['{', '}']);
        let is_well_formed = !has_brace(prefix) && !has_brace(suffix) && field != Some("");
        (is_well_formed && !field.is_some_and(has_brace)).then_some(KeyTemplate {
            prefix,
            field,
            suffix,
        })
    }

    fn fill(&self, value: &str) -> String {
        match self.field {
            Some(_) => format!("{}{value}{}", self.prefix, self.suffix),
            None => self.prefix.to_owned(),
        }
    }
}

/// The name of the field in a template; `None` for a constant.
pub(crate) fn placeholder(template: &str) -> Option<&str> {
    KeyTemplate::parse(template)?.field
}

impl JobType {
    /// The key of a record as its message has it.
    ///
    /// # Errors
    /// The key does not have the form of `queue.key`.
    pub fn message_id(&self, key: &Key) -> Result<Json, String> {
        if self.queue.key.is_empty() {
            return Ok(key.to_id());
        }
        // The first column with the field gives its value, and that value must give all columns again.
        let columns = self.source.key.iter().zip(&key.0);
        let value = columns.into_iter().find_map(|(column, value)| {
            let template = KeyTemplate::parse(self.queue.key.get(column)?)?;
            template.field?;
            let Value::Text(text) = value else { return None };
            text.strip_prefix(template.prefix)?.strip_suffix(template.suffix)
        });
        match value {
            Some(value) if !value.is_empty() && self.templated(value) == *key => Ok(value.into()),
            _ => Err(format!(
                "the key ({key}) does not have the form of queue.key, which is ({}); select the records \
                 that have it with source.match, or correct queue.key",
                self.key_templates().join(", ")
            )),
        }
    }

    /// The key of the record that a message names. The reverse of [`JobType::message_id`].
    ///
    /// # Errors
    /// The value is not a text, which `queue.key` requires.
    pub fn message_key(&self, id: Json) -> Result<Key, String> {
        match id {
            id if self.queue.key.is_empty() => Ok(Key::from_id(id)),
            Json::String(value) if !value.is_empty() => Ok(self.templated(&value)),
            other => Err(format!(
                "must be a text that is not empty, since the key is ({}), got {other}",
                self.key_templates().join(", ")
            )),
        }
    }

    fn key_templates(&self) -> Vec<&str> {
        let template = |column| self.queue.key.get(column).map_or("", String::as_str);
        self.source.key.iter().map(template).collect()
    }

    fn templated(&self, value: &str) -> Key {
        let fill = |text| KeyTemplate::parse(text).map_or_else(String::new, |one| one.fill(value));
        Key(self.key_templates().into_iter().map(|text| Value::Text(fill(text))).collect())
    }
}

/// The reasons why the templates of a job type cannot be reversed.
pub(crate) fn problems(job_type: &JobType) -> Vec<(&'static str, String)> {
    let templates = &job_type.queue.key;
    let mut problems = Vec::new();
    let mut refuse = |field, detail: String| problems.push((field, detail));
    if templates.is_empty() {
        return problems;
    }
    let mut columns: Vec<&String> = job_type.source.key.iter().collect();
    columns.sort();
    if !columns.iter().copied().eq(templates.keys()) {
        let columns = match job_type.source.key.join(", ") {
            columns if columns.is_empty() => {
                "which is missing; name the key of the table".to_owned()
            }
            columns => format!("which is ({columns})"),
        };
        let detail = format!("must have one template for each column of source.key, {columns}");
        refuse("queue.key", detail);
    }
    let mut fields: Vec<&str> = Vec::new();
    for (column, text) in templates {
        match KeyTemplate::parse(text) {
            Some(template) => fields.extend(template.field),
            None => refuse(
                "queue.key",
                format!(
                    "the template `{text}` of `{column}` cannot be reversed: it may have one `{{field}}` and \
                     no other brace, as `CANDIDATE#{{identifier}}`"
                ),
            ),
        }
    }
    fields.sort_unstable();
    fields.dedup();
    match fields.as_slice() {
        [] if problems.is_empty() => {
            let detail = "has no `{field}`, so all records would have the same key; write for example \
                          `CANDIDATE#{identifier}`";
            problems.push(("queue.key", detail.to_owned()));
        }
        ["type"] => {
            let detail = "must not name the field `type`, which is the kind of a message; choose another name";
            problems.push(("queue.key", detail.to_owned()));
        }
        [_, _, ..] => {
            let detail = format!(
                "names several fields ({}), but the key of a message is one field; use the same field in all \
                 templates, or leave out queue.key to send the whole key",
                fields.join(", ")
            );
            problems.push(("queue.key", detail));
        }
        _ => {}
    }
    if job_type.queue.field.is_some() {
        let detail = "cannot be combined with queue.key, which names the field; keep one of them";
        problems.push(("queue.field", detail.to_owned()));
    }
    problems
}

#[cfg(test)]
mod tests {
    use crate::{Config, JobType, Key, Value};
    use serde_json::json;

    fn parse(queue: &str) -> Result<JobType, String> {
        let text = format!(
            "[connections.app]\nurl = \"dynamodb://\"\n[jobs.A]\nsource.connection = \"app\"\n\
             source.table = \"t\"\nsource.key = [\"pk\", \"sk\"]\nstep.version = \"v\"\n\
             step.refresh = true\n{queue}\n"
        );
        let config = Config::parse(&text, |_| None).map_err(|problem| problem.to_string())?;
        let problems: String = config.problems().iter().map(|p| p.to_string() + "\n").collect();
        if problems.is_empty() { Ok(config.jobs["A"].clone()) } else { Err(problems) }
    }

    fn key(pk: &str, sk: &str) -> Key {
        Key(vec![Value::from(pk), Value::from(sk)])
    }

    const CANDIDATE: &str =
        r#"queue.key = { pk = "CANDIDATE#{identifier}", sk = "v1 CANDIDATE#{identifier}." }"#;

    #[test]
    fn a_key_becomes_the_field_and_the_field_the_key() {
        let candidate = parse(CANDIDATE).unwrap();
        assert_eq!(candidate.message_field(), "identifier");
        for id in ["b7-4", "CANDIDATE#", "a.", "{identifier}"] {
            let full = key(&format!("CANDIDATE#{id}"), &format!("v1 CANDIDATE#{id}."));
            assert_eq!(candidate.message_id(&full), Ok(json!(id)));
            assert_eq!(candidate.message_key(json!(id)), Ok(full));
        }
        let period = parse(r#"queue.key = { pk = "PERIOD", sk = "PERIOD#{year}" }"#).unwrap();
        assert_eq!(period.message_field(), "year");
        assert_eq!(period.message_id(&key("PERIOD", "PERIOD#2024")), Ok(json!("2024")));
        assert_eq!(period.message_key(json!("2024")), Ok(key("PERIOD", "PERIOD#2024")));
    }

    #[test]
    fn a_key_of_another_form_is_refused() {
        let candidate = parse(CANDIDATE).unwrap();
        for (pk, sk) in [
            ("PERIOD#1", "v1 CANDIDATE#1."),
            ("CANDIDATE#1", "v1 CANDIDATE#2."),
            ("CANDIDATE#1", "v1 CANDIDATE#1"),
            ("CANDIDATE#", "v1 CANDIDATE#."),
        ] {
            let message = candidate.message_id(&key(pk, sk)).unwrap_err();
            assert!(message.contains("(CANDIDATE#{identifier}, v1 CANDIDATE"), "{message}");
        }
        for id in [json!(7), json!(""), json!(["a", "b"]), json!(null)] {
            let message = candidate.message_key(id).unwrap_err();
            assert!(message.contains("must be a text"), "{message}");
        }
    }

    #[test]
    fn templates_that_cannot_be_reversed_are_refused() {
        for (queue, expected) in [
            (r#"key = { pk = "{a}{a}", sk = "x" }"#, "the template `{a}{a}` of `pk` cannot be"),
            (r#"key = { pk = "{a", sk = "x" }"#, "cannot be reversed"),
            (r#"key = { pk = "a}", sk = "{x}" }"#, "the template `a}` of `pk`"),
            (r#"key = { pk = "{}", sk = "x" }"#, "cannot be reversed"),
            (r#"key = { pk = "a", sk = "b" }"#, "has no `{field}`"),
            (r#"key = { pk = "{a}", sk = "{b}" }"#, "names several fields (a, b)"),
            (r#"key = { pk = "A#{type}", sk = "x" }"#, "must not name the field `type`"),
            (r#"key = { pk = "{a}" }"#, "each column of source.key, which is (pk, sk)"),
            (r#"key = { pk = "{a}", other = "x" }"#, "each column of source.key"),
            (r#"key = { pk = "{a}", sk = "x" }, field = "a""#, "queue.field: cannot be combined"),
        ] {
            let message = parse(&format!("queue = {{ {queue} }}")).unwrap_err();
            assert!(message.contains(expected), "{queue}: {message}");
        }
    }
}
