//! The messages of a job type's items on an SQS queue.

use crate::JobType;
use crate::message_key::placeholder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// `queue = { message = "REFRESH_CANDIDATE", field = "identifier", items_per_message = 1 }`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueOptions {
    /// The `type` of its messages; the name of the job type by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The field of a message with the key; the key column by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The key columns, each with the template of its value: the two-way mapping between a record's key and the
    /// field of its message.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub key: BTreeMap<String, String>,
    /// Items per message. With more than one the field is a list.
    pub items_per_message: u32,
    /// Whether the values of a filter are planned in parallel instead of one after the other.
    pub side_by_side: bool,
    /// How many jobs a record remembers, so that none of them processes it twice.
    pub remember: u32,
    /// Whether the outcomes of a job's items are counted in the ledger's table, so that its progress and its end
    /// are known.
    pub progress: bool,
    /// Where the jobs of a record are remembered.
    pub ledger: QueueLedger,
    /// How long a row of `ledger = "table"` is kept.
    #[serde(with = "humantime_serde")]
    pub ledger_ttl: Duration,
}

/// Where the jobs of a record are remembered, so that none of them processes it twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueLedger {
    /// In the record itself, which other writers must keep.
    #[default]
    Item,
    /// In a row of the ledger's table for each job and record.
    Table,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions {
            message: None,
            field: None,
            key: BTreeMap::new(),
            items_per_message: 1,
            side_by_side: false,
            remember: 10,
            ledger: QueueLedger::Item,
            ledger_ttl: Duration::from_secs(30 * 24 * 3600),
            progress: false,
        }
    }
}

impl QueueOptions {
    pub(crate) fn is_default(&self) -> bool {
        *self == QueueOptions::default()
    }

    /// All problems, each with its field.
    pub(crate) fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let mut refuse = |field, wrong: bool, detail: String| {
            if wrong {
                problems.push((field, detail));
            }
        };
        let is_empty = |name: &Option<String>| name.as_ref().is_some_and(String::is_empty);
        let name = |right: &str| format!("is empty; expected a name such as `{right}`");
        refuse("queue.message", is_empty(&self.message), name("REFRESH_CANDIDATE"));
        refuse("queue.field", is_empty(&self.field), name("identifier"));
        let taken = "must not be `type`, which is the kind of a message; choose another name";
        refuse("queue.field", self.field.as_deref() == Some("type"), taken.to_owned());
        let items = self.items_per_message;
        let detail = format!("must be 1 to {MAX_ITEMS_PER_MESSAGE}, got {items}");
        refuse("queue.items_per_message", !(1..=MAX_ITEMS_PER_MESSAGE).contains(&items), detail);
        let remember = self.remember;
        let detail = format!("must be 1 to {MAX_REMEMBERED_JOBS}, got {remember}");
        refuse("queue.remember", !(1..=MAX_REMEMBERED_JOBS).contains(&remember), detail);
        let is_short = self.ledger_ttl < MIN_LEDGER_TTL;
        let detail = "must be at least 1d: a message that lives longer would be processed twice; the default is 30d";
        refuse("queue.ledger_ttl", is_short, detail.to_owned());
        problems
    }
}

/// The longest life of a message in the work queue of the example.
const MIN_LEDGER_TTL: Duration = Duration::from_secs(24 * 3600);
/// A message must be processed within its visibility timeout.
const MAX_ITEMS_PER_MESSAGE: u32 = 1000;
/// The list of jobs is read and written with its record.
const MAX_REMEMBERED_JOBS: u32 = 1000;

impl JobType {
    /// The `type` of its messages.
    pub fn message_type(&self) -> &str {
        self.queue.message.as_deref().unwrap_or(&self.name)
    }

    /// The field of a message with one key. With several keys, an s is appended.
    pub fn message_field(&self) -> &str {
        let key = match self.source.key.as_slice() {
            [column] => column,
            _ => "key",
        };
        let templated = self.queue.key.values().find_map(|template| placeholder(template));
        self.queue.field.as_deref().or(templated).unwrap_or(key)
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn parse(queue: &str) -> Result<Config, String> {
        let text = format!(
            "[connections.app]\nurl = \"sqlite:a\"\n[jobs.A]\nsource.connection = \"app\"\n\
             source.table = \"t\"\nsource.key = [\"id\"]\nstep.version = \"v\"\nstep.refresh = true\n\
             {queue}\n"
        );
        let config = Config::parse(&text, |_| None).map_err(|p| p.to_string())?;
        let problems: String = config.problems().iter().map(|p| p.to_string() + "\n").collect();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    #[test]
    fn messages_are_named_after_the_job_type_unless_it_says_otherwise() {
        let config = parse("").unwrap();
        assert_eq!(config.jobs["A"].message_type(), "A");
        assert_eq!(config.jobs["A"].message_field(), "id");
        let config = parse("queue = { message = \"B\", field = \"year\" }").unwrap();
        assert_eq!(config.jobs["A"].message_type(), "B");
        assert_eq!(config.jobs["A"].message_field(), "year");
    }

    #[test]
    fn wrong_fields_are_refused_with_what_would_be_right() {
        for (queue, expected) in [
            ("queue.message = \"\"", "REFRESH_CANDIDATE"),
            ("queue.field = \"type\"", "queue.field: must not be `type`"),
            ("queue.items_per_message = 0", "1 to 1000"),
            ("queue.remember = 0", "queue.remember"),
            ("queue.ledger = \"row\"", "expected `item` or `table`"),
            ("queue.ledger_ttl = \"1h\"", "queue.ledger_ttl: must be at least 1d"),
            ("queue.items = 1", "items_per_message"),
            (
                "[jobs.B]\nsource = { connection = \"app\", table = \"t\" }\nqueue.message = \"A\"\n\
                 step.sql = \"DELETE FROM t WHERE {chunk}\"",
                "jobs.B.queue.message: `A` is already the message of `A`",
            ),
        ] {
            let message = parse(queue).unwrap_err();
            assert!(message.contains(expected), "{queue}: {message}");
        }
    }
}
