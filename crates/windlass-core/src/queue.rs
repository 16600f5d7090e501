//! How a job type's items travel over a queue, one message for each or for several.

use crate::JobType;
use serde::{Deserialize, Serialize};

/// `queue = { message = "REFRESH_CANDIDATE", field = "identifier", items_per_message = 1 }`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueOptions {
    /// The `type` of its messages; the job type's name when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The field of a message that has the key; the key's column when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Items a message; those of more than one have a list.
    pub items_per_message: u32,
    /// Whether the values of a filter are loaded side by side, and not one after the other.
    pub side_by_side: bool,
    /// How many jobs a record remembers, so that none of them is done to it twice.
    pub remember: u32,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions {
            message: None,
            field: None,
            items_per_message: 1,
            side_by_side: false,
            remember: 10,
        }
    }
}

impl QueueOptions {
    pub(crate) fn is_default(&self) -> bool {
        *self == QueueOptions::default()
    }

    /// Everything that is wrong with it: the field and what is wrong.
    pub(crate) fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let mut refuse = |field, wrong: bool, detail: String| {
            if wrong {
                problems.push((field, detail));
            }
        };
        let is_empty = |name: &Option<String>| name.as_ref().is_some_and(String::is_empty);
        let name = |right: &str| format!("is empty; `{right}` would be right");
        refuse("queue.message", is_empty(&self.message), name("REFRESH_CANDIDATE"));
        refuse("queue.field", is_empty(&self.field), name("identifier"));
        let taken = "is `type`, which says the kind of a message; name another field";
        refuse("queue.field", self.field.as_deref() == Some("type"), taken.to_owned());
        let items = self.items_per_message;
        let detail = format!("is {items}; 1 to {MOST_ITEMS} would be right");
        refuse("queue.items_per_message", !(1..=MOST_ITEMS).contains(&items), detail);
        let remember = self.remember;
        let detail = format!("is {remember}; 1 to {MOST_REMEMBERED} would be right");
        refuse("queue.remember", !(1..=MOST_REMEMBERED).contains(&remember), detail);
        problems
    }
}

/// A message is worked within the time of one delivery.
const MOST_ITEMS: u32 = 1000;
/// What a record remembers is read and written with it.
const MOST_REMEMBERED: u32 = 1000;

impl JobType {
    /// The `type` of its messages.
    pub fn message_type(&self) -> &str {
        self.queue.message.as_deref().unwrap_or(&self.name)
    }

    /// The field of a message that has one key; where it has several, the name ends with an s.
    pub fn message_field(&self) -> &str {
        let key = match self.source.key.as_slice() {
            [column] => column,
            _ => "key",
        };
        self.queue.field.as_deref().unwrap_or(key)
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
            ("queue.field = \"type\"", "queue.field: is `type`"),
            ("queue.items_per_message = 0", "1 to 1000"),
            ("queue.remember = 0", "queue.remember"),
            ("queue.items = 1", "items_per_message"),
            (
                "[jobs.B]\nsource = { connection = \"app\", table = \"t\" }\nqueue.message = \"A\"\n\
                 step.sql = \"DELETE FROM t WHERE {chunk}\"",
                "jobs.B.queue.message: `A` is a message of `A` too",
            ),
        ] {
            let message = parse(queue).unwrap_err();
            assert!(message.contains(expected), "{queue}: {message}");
        }
    }
}
