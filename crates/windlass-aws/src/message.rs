//! Messages of the work queue: the keys of records, and their job.

use aws_lambda_events::sqs::SqsMessage;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use uuid::Uuid;
use windlass_core::config::names;
use windlass_core::problem::Code;
use windlass_core::{Config, JobId, JobType, Key, Problem};

/// The message attribute with the job's id.
pub(crate) const JOB_ID: &str = "jobId";
/// The message attribute with the request's params as JSON, if it has any.
pub(crate) const PARAMS: &str = "params";

/// The message attribute of a dead letter with its error.
pub(crate) const ERROR: &str = "error";
/// The message attribute of a dead letter with the time of its last failure.
pub(crate) const FAILED_AT: &str = "failedAt";
/// The message attribute of a dead letter with the number of its deliveries.
pub(crate) const ATTEMPTS: &str = "attempts";

/// A parsed message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The job type that works this message.
    pub job_type: String,
    /// The records.
    pub keys: Vec<Key>,
}

impl Message {
    /// The text of a message: its `type`, and one key or a list of keys. Fails if a key does not have the form of
    /// `queue.key`.
    pub fn body(job_type: &JobType, keys: &[Key]) -> Result<String, Problem> {
        let field = job_type.message_field();
        let id = |key: &Key| {
            job_type.message_id(key).map_err(|detail| job_type.problem("queue.key", detail))
        };
        let (field, ids) = match keys {
            [key] if job_type.queue.items_per_message == 1 => (field.to_owned(), id(key)?),
            keys => (several(field), keys.iter().map(id).collect::<Result<_, _>>()?),
        };
        // Formatted by hand, so that `type` comes first for human readers.
        Ok(format!("{{\"type\":{},{}:{ids}}}", json!(job_type.message_type()), json!(field)))
    }

    /// Parses a message from [`Message::body`], or one that was written by hand in the same form.
    pub fn read(body: &str, config: &Config) -> Result<Message, Problem> {
        let refuse = |field: &str, detail: String| {
            Err(Problem::field(Code::Request, format!("message.{field}"), detail))
        };
        let Ok(Json::Object(mut fields)) = serde_json::from_str(body) else {
            let detail = "must be a JSON object, such as {\"type\": …, \"identifier\": …}";
            return Err(Problem::new(Code::Request, detail));
        };
        let named = match fields.remove("type") {
            Some(Json::String(named)) => named,
            _ => return refuse("type", format!("is missing; known types: {}", types(config))),
        };
        let Some(job_type) = config.jobs.values().find(|known| known.message_type() == named)
        else {
            return refuse("type", format!("`{named}` is unknown; known types: {}", types(config)));
        };
        let field = job_type.message_field();
        let ids = match (fields.remove(field), fields.remove(&several(field))) {
            (Some(Json::Null) | None, Some(Json::Array(ids))) if !ids.is_empty() => ids,
            (Some(id), None) if !id.is_null() => vec![id],
            _ => {
                let detail = format!(
                    "is missing; set it to a key, or `{}` to a list of keys",
                    several(field)
                );
                return refuse(field, detail);
            }
        };
        if let Some(unknown) = fields.keys().next() {
            return refuse(unknown, format!("is unknown; `{named}` has only `{field}`"));
        }
        let keys = ids.into_iter().map(|id| job_type.message_key(id)).collect();
        let keys: Vec<Key> = match keys {
            Ok(keys) => keys,
            Err(detail) => return refuse(field, detail),
        };
        let columns = job_type.source.key.len();
        if columns > 0 && keys.iter().any(|key| key.0.len() != columns) {
            let columns = job_type.source.key.join(", ");
            return refuse(field, format!("must be a key of the columns ({columns})"));
        }
        Ok(Message { job_type: job_type.name.clone(), keys })
    }
}

fn several(field: &str) -> String {
    format!("{field}s")
}

fn types(config: &Config) -> String {
    let types: Vec<String> = config.jobs.values().map(|job| job.message_type().into()).collect();
    names(&types)
}

/// A message as the queue delivers it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delivery {
    /// The message id of SQS, by which failures are reported.
    pub id: String,
    /// The text of the message.
    pub body: String,
    /// How often it was delivered, including this time.
    pub receives: u32,
    /// When it was sent, in milliseconds since 1970.
    pub sent: u64,
    /// Its text attributes.
    pub attributes: BTreeMap<String, String>,
}

impl Delivery {
    /// The id of its job. A message that was sent by hand is a job of its own.
    pub fn job(&self) -> JobId {
        let given = self.attributes.get(JOB_ID).and_then(|id| id.parse().ok());
        given.unwrap_or_else(|| job_id(&self.id))
    }

    /// The error of a dead letter. One that SQS moved itself has none: its last delivery was not answered.
    pub fn error(&self) -> Option<&str> {
        self.attributes.get(ERROR).map(String::as_str)
    }

    /// When a dead letter failed for the last time, as RFC 3339.
    pub fn failed_at(&self) -> Option<&str> {
        self.attributes.get(FAILED_AT).map(String::as_str)
    }

    /// How often a dead letter was delivered before it was one.
    pub fn attempts(&self) -> Option<u32> {
        self.attributes.get(ATTEMPTS)?.parse().ok()
    }

    /// The params of the job's request.
    pub fn params(&self) -> Result<BTreeMap<String, Json>, Problem> {
        let Some(params) = self.attributes.get(PARAMS) else { return Ok(BTreeMap::new()) };
        serde_json::from_str(params).map_err(|error| {
            let detail = format!("the attribute `{PARAMS}` is not a JSON object: {error}");
            Problem::new(Code::Request, detail)
        })
    }
}

impl From<SqsMessage> for Delivery {
    fn from(message: SqsMessage) -> Delivery {
        let number = |name: &str| message.attributes.get(name).and_then(|text| text.parse().ok());
        let receives: Option<u64> = number("ApproximateReceiveCount");
        let sent = number("SentTimestamp").unwrap_or_default();
        let text = |(name, value): (String, aws_lambda_events::sqs::SqsMessageAttribute)| {
            value.string_value.map(|value| (name, value))
        };
        Delivery {
            id: message.message_id.unwrap_or_default(),
            body: message.body.unwrap_or_default(),
            receives: receives.map_or(1, |receives| receives as u32),
            sent,
            attributes: message.message_attributes.into_iter().filter_map(text).collect(),
        }
    }
}

/// The id of a job from the name of its request: an id from AWS, which is the same at each delivery, or any
/// text.
pub(crate) fn job_id(name: &str) -> JobId {
    if let Ok(id) = Uuid::parse_str(name) {
        return id;
    }
    let hash = Sha256::digest(name);
    Uuid::from_slice(&hash[..16]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::Value;

    fn config(queue: &str) -> Config {
        let text = format!(
            "[connections.app]\nurl = \"dynamodb://\"\n\
             [jobs.REFRESH_CANDIDATES]\nsource.connection = \"app\"\nsource.table = \"c\"\n\
             source.key = [\"identifier\"]\nstep.refresh = true\nstep.version = \"version\"\n\
             queue.message = \"REFRESH_CANDIDATE\"\n{queue}\n\
             [jobs.REFRESH_PERIODS]\nsource.connection = \"app\"\nsource.table = \"p\"\n\
             source.key = [\"id\"]\nstep.refresh = true\nstep.version = \"version\"\n\
             queue = {{ message = \"REFRESH_PERIOD\", field = \"year\" }}\n"
        );
        Config::parse(&text, |_| None).unwrap()
    }

    fn key(id: &str) -> Key {
        Key(vec![Value::from(id)])
    }

    #[test]
    fn messages_have_the_documented_form_and_round_trip() {
        let config = config("");
        for (job_type, id, body) in [
            ("REFRESH_CANDIDATES", "b7-4", r#"{"type":"REFRESH_CANDIDATE","identifier":"b7-4"}"#),
            ("REFRESH_PERIODS", "2024", r#"{"type":"REFRESH_PERIOD","year":"2024"}"#),
        ] {
            assert_eq!(Message::body(&config.jobs[job_type], &[key(id)]).unwrap(), body);
            let read = Message::read(body, &config).unwrap();
            assert_eq!(read, Message { job_type: job_type.into(), keys: vec![key(id)] });
        }
    }

    #[test]
    fn several_records_share_a_message_if_the_job_type_is_configured_so() {
        let config = config("queue.items_per_message = 3");
        let keys = [key("a"), key("b")];
        let body = Message::body(&config.jobs["REFRESH_CANDIDATES"], &keys).unwrap();
        assert_eq!(body, r#"{"type":"REFRESH_CANDIDATE","identifiers":["a","b"]}"#);
        assert_eq!(Message::read(&body, &config).unwrap().keys, keys);
        // The last message of a page has fewer keys, and is still a list.
        let body = Message::body(&config.jobs["REFRESH_CANDIDATES"], &keys[..1]).unwrap();
        assert_eq!(body, r#"{"type":"REFRESH_CANDIDATE","identifiers":["a"]}"#);
        assert_eq!(Message::read(&body, &config).unwrap().keys, keys[..1]);
        // Messages from before the change of the job type are still accepted.
        let one = Message::read(r#"{"type":"REFRESH_CANDIDATE","identifier":"a"}"#, &config);
        assert_eq!(one.unwrap().keys, keys[..1]);
    }

    #[test]
    fn a_message_has_the_field_of_the_key_template() {
        let config = config("queue.key = { identifier = \"CANDIDATE#{identifier}\" }");
        let job_type = &config.jobs["REFRESH_CANDIDATES"];
        let body = Message::body(job_type, &[key("CANDIDATE#b7")]).unwrap();
        assert_eq!(body, r#"{"type":"REFRESH_CANDIDATE","identifier":"b7"}"#);
        assert_eq!(Message::read(&body, &config).unwrap().keys, [key("CANDIDATE#b7")]);
        let other = Message::body(job_type, &[key("PERIOD#2024")]).unwrap_err().to_string();
        assert!(
            other.contains("jobs.REFRESH_CANDIDATES.queue.key: the key (PERIOD#2024)"),
            "{other}"
        );
        let number = Message::read(r#"{"type":"REFRESH_CANDIDATE","identifier":7}"#, &config);
        let number = number.unwrap_err().to_string();
        assert!(number.contains("message.identifier: must be a text"), "{number}");
    }

    #[test]
    fn a_malformed_message_is_refused_with_the_expected_form() {
        for (body, expected) in [
            ("x", "must be a JSON object"),
            ("{}", "message.type: is missing; known types: `REFRESH_CANDIDATE`, `REFRESH_PERIOD`"),
            (r#"{"type":"REFRESH"}"#, "`REFRESH` is unknown"),
            (r#"{"type":"REFRESH_PERIOD","identifier":"a"}"#, "message.year: is missing"),
            (r#"{"type":"REFRESH_PERIOD","year":null}"#, "message.year: is missing"),
            (r#"{"type":"REFRESH_PERIOD","years":[]}"#, "message.year: is missing"),
            (r#"{"type":"REFRESH_PERIOD","year":"1","x":1}"#, "message.x: is unknown"),
            (r#"{"type":"REFRESH_PERIOD","year":["1","2"]}"#, "columns (id)"),
        ] {
            let message = Message::read(body, &config("")).unwrap_err().to_string();
            assert!(message.contains(expected), "{body}: {message}");
        }
    }

    #[test]
    fn the_job_id_is_the_id_that_aws_gave_the_request() {
        let id = "0197c3a2-8f7e-7abc-8def-0123456789ab";
        assert_eq!(job_id(id).to_string(), id);
        assert_eq!(job_id("a key"), job_id("a key"));
        assert_ne!(job_id("a key"), job_id("another"));
    }
}
