//! The JSON that commands and services get and answer. The page for their authors is
//! `docs/handlers.md`.

use super::StepBatch;
use super::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};
use uuid::fmt::Simple;
use windlass_core::{Change, Insert, ItemError, JobId, Key, Outcome, Record, Row, Value};

/// A batch as it is sent: one line without its end.
pub(super) fn request(batch: &StepBatch) -> Result<Vec<u8>, String> {
    let items = batch.items.iter().map(|item| {
        let idempotency_key = batch.job.idempotency_key(&item.key);
        Item { key: &item.key, attempt: item.attempt, idempotency_key, record: &item.record }
    });
    let request = Request {
        job_id: batch.job.id,
        job_type: &batch.job.job_type,
        params: &batch.job.params,
        dry_run: batch.job.dry_run,
        items: items.collect(),
    };
    let mut line = Vec::with_capacity(256 * (batch.items.len() + 1));
    serde_json::to_writer(&mut line, &request)
        .map_err(|error| format!("the batch cannot be written: {error}"))?;
    Ok(line)
}

/// The outcomes that an answer holds, in the order of the batch, or what is wrong with it.
pub(super) fn outcomes(
    batch: &StepBatch,
    answer: &[u8],
    redactor: &Redactor,
) -> Result<Vec<Outcome>, String> {
    let excerpt = || excerpt(answer, redactor);
    let parsed: Answer = serde_json::from_slice(answer).map_err(|error| match error.is_data() {
        true => format!("the answer is not as it should be: {error}: `{}`", excerpt()),
        false => format!("the answer is not JSON: `{}`", excerpt()),
    })?;
    match parsed {
        Answer { results: Some(results), batch_item_failures: None } => by_item(batch, results),
        Answer { results: None, batch_item_failures: Some(failures) } => {
            by_failure(batch, failures)
        }
        _ => Err(format!(
            "the answer must have either `results` or `batchItemFailures`: `{}`",
            excerpt()
        )),
    }
}

/// The beginning of an answer, for a message. A secret in it is replaced before the answer is cut.
pub(super) fn excerpt(answer: &[u8], redactor: &Redactor) -> String {
    let beginning = redactor.beginning(answer, 200);
    let text = String::from_utf8_lossy(&beginning);
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.trim().to_owned()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    job_id: JobId,
    job_type: &'a str,
    params: &'a BTreeMap<String, Json>,
    dry_run: bool,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    #[serde(with = "windlass_core::key::id")]
    key: &'a Key,
    attempt: u32,
    idempotency_key: Simple,
    record: &'a Record,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    results: Option<Vec<ItemResult>>,
    #[serde(default)]
    batch_item_failures: Option<Vec<ItemFailure>>,
}

/// Misspelt fields are refused: an effect that is silently left out would count as done.
/// What is rare is boxed, since these are moved around by the thousand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemResult {
    #[serde(with = "windlass_core::key::id")]
    key: Key,
    #[serde(default)]
    update: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    insert: Option<Box<Several<Insert>>>,
    #[serde(default)]
    emit: Option<Box<Several<Row>>>,
    #[serde(default)]
    skip: Option<bool>,
    #[serde(default)]
    error: Option<Box<Failure>>,
}

/// One, or a list.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`insert` is {\"table\": …, \"rows\": [{…}]} or a list of these, `emit` a row {…} or a list of rows"
)]
enum Several<T> {
    List(Vec<T>),
    One(T),
}

/// An error with all it has, or its message alone.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`error` is a message, or {\"message\": …, \"retryable\": …, \"context\": …}"
)]
enum Failure {
    Whole(ItemError),
    Message(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemFailure {
    item_identifier: Json,
}

fn by_item(batch: &StepBatch, results: Vec<ItemResult>) -> Result<Vec<Outcome>, String> {
    let in_order = results.len() == batch.items.len()
        && results.iter().zip(&batch.items).all(|(result, item)| result.key == item.key);
    if in_order {
        return Ok(results.into_iter().map(ItemResult::outcome).collect());
    }
    let mut places = Places::new(batch);
    let mut outcomes: Vec<Option<Outcome>> = batch.items.iter().map(|_| None).collect();
    for result in results {
        let place = places.take(&result.key)?;
        outcomes[place] = Some(result.outcome());
    }
    let missing = outcomes.iter().filter(|outcome| outcome.is_none()).count();
    match batch.items.iter().zip(&outcomes).find(|(_, outcome)| outcome.is_none()) {
        Some((item, _)) => Err(format!(
            "the answer leaves out {missing} of {} items, the first of them {}",
            batch.items.len(),
            item.key.to_id()
        )),
        None => Ok(outcomes.into_iter().flatten().collect()),
    }
}

impl ItemResult {
    fn outcome(self) -> Outcome {
        let changes = self.update.is_some() || self.insert.is_some() || self.emit.is_some();
        let skips = self.skip == Some(true);
        match self.error.map(|error| *error) {
            Some(_) if changes || skips => contradiction("`error` beside another outcome"),
            Some(Failure::Whole(error)) => Outcome::Error(error),
            Some(Failure::Message(message)) => Outcome::Error(ItemError::permanent(message)),
            None if changes && skips => contradiction("`skip` beside a change"),
            None if skips => Outcome::Skip,
            None => Outcome::Done(Change {
                update: self.update.unwrap_or_default(),
                insert: self.insert.map(|insert| insert.list()).unwrap_or_default(),
                emit: self.emit.map(|emit| emit.list()).unwrap_or_default(),
            }),
        }
    }
}

fn contradiction(what: &str) -> Outcome {
    Outcome::Error(ItemError::permanent(format!("the answer for this item has {what}")))
}

impl<T> Several<T> {
    fn list(self) -> Vec<T> {
        match self {
            Several::List(list) => list,
            Several::One(one) => vec![one],
        }
    }
}

/// AWS's form: what is named is tried again, all else is done.
fn by_failure(batch: &StepBatch, failures: Vec<ItemFailure>) -> Result<Vec<Outcome>, String> {
    let mut outcomes = vec![Outcome::Done(Change::default()); batch.items.len()];
    let mut places = Places::new(batch);
    for failure in failures {
        let place = places.take(&Key::from_id(failure.item_identifier))?;
        outcomes[place] =
            Outcome::Error(ItemError::transient("the step named it in batchItemFailures"));
    }
    Ok(outcomes)
}

/// Where each key stands in the batch, and which have been answered.
struct Places {
    open: HashMap<String, usize>,
    all: HashMap<String, usize>,
}

impl Places {
    fn new(batch: &StepBatch) -> Places {
        let texts = batch.items.iter().map(|item| item.key.to_text());
        let all: HashMap<String, usize> = texts.zip(0..).collect();
        Places { open: all.clone(), all }
    }

    /// The place of an item that was not answered yet. Its key may also be named by its JSON as
    /// text: queues name items by text, and some languages keep large numbers only so.
    fn take(&mut self, key: &Key) -> Result<usize, String> {
        let as_json = match key.0.as_slice() {
            [Value::Text(text)] => serde_json::from_str(text).ok().map(Key::from_id),
            _ => None,
        };
        let texts = [Some(key), as_json.as_ref()].into_iter().flatten().map(Key::to_text);
        let known = texts.into_iter().find(|text| self.all.contains_key(text));
        let shown = key.to_id();
        let known =
            known.ok_or_else(|| format!("the answer has {shown}, which was not asked for"))?;
        self.open.remove(&known).ok_or_else(|| format!("the answer has {shown} twice"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{StepBatch, StepItem};
    use serde_json::json;
    use windlass_core::{Columns, JobType};

    fn batch(keys: &[Json]) -> StepBatch {
        let job_type = json!({
            "source": {"connection": "app", "table": "t"},
            "step": {"command": ["x"], "on_conflict": "retry"},
        });
        let mut batch = StepBatch::question(&JobType::from_json("JOB", job_type).unwrap(), None);
        let columns: Columns = ["id", "name"].map(str::to_owned).into();
        batch.items = keys
            .iter()
            .map(|key| StepItem {
                key: Key::from_id(key.clone()),
                record: Record::new(columns.clone(), vec![Value::from("x"), Value::Null]),
                attempt: 2,
            })
            .collect();
        batch
    }

    fn answered(keys: &[Json], answer: Json) -> Result<Vec<Outcome>, String> {
        outcomes(&batch(keys), answer.to_string().as_bytes(), &Redactor::default())
    }

    #[test]
    fn a_batch_is_written_as_the_page_says() {
        let batch = batch(&[json!(7), json!(["a", 1])]);
        let sent: Json = serde_json::from_slice(&request(&batch).unwrap()).unwrap();
        assert_eq!(sent["jobType"], "JOB");
        assert_eq!(sent["dryRun"], true);
        assert_eq!(sent["items"][0]["key"], 7);
        assert_eq!(sent["items"][1]["key"], json!(["a", 1]));
        assert_eq!(sent["items"][0]["attempt"], 2);
        assert_eq!(sent["items"][0]["record"], json!({"id": "x", "name": null}));
        assert_eq!(sent["items"][0]["idempotencyKey"].as_str().unwrap().len(), 32);
    }

    #[test]
    fn results_come_in_any_order_and_with_every_outcome() {
        let keys = [json!(1), json!("b"), json!([3, "c"]), json!(4), json!(5)];
        let answer = json!({"took": 3, "results": [
            {"key": 5, "error": "no"},
            {"key": 4, "error": {"message": "busy", "retryable": true, "context": {"a": 1}}},
            {"key": [3, "c"], "insert": {"table": "t", "rows": [{"x": 1}]}, "emit": {"y": 2}},
            {"key": "b", "skip": true},
            {"key": 1, "update": {"name": "Ada"}},
        ]});
        let outcomes = answered(&keys, answer).unwrap();
        assert_eq!(outcomes[0], Outcome::set("name", "Ada"));
        assert_eq!(outcomes[1], Outcome::Skip);
        let Outcome::Done(change) = &outcomes[2] else { panic!("{outcomes:?}") };
        assert_eq!((change.insert.len(), change.emit.len()), (1, 1));
        let busy = ItemError { context: json!({"a": 1}), ..ItemError::transient("busy") };
        assert_eq!(outcomes[3], Outcome::Error(busy));
        assert_eq!(outcomes[4], Outcome::Error(ItemError::permanent("no")));
    }

    #[test]
    fn wrong_answers_say_what_is_wrong() {
        let keys = [json!(1), json!(2)];
        for (answer, expected) in [
            (json!({"results": [{"key": 1}, {"key": 1}]}), "1 twice"),
            (json!({"results": [{"key": 1}, {"key": 9}]}), "9, which was not asked"),
            (json!({"results": [{"key": 2}]}), "leaves out 1 of 2 items, the first of them 1"),
            (json!({"results": [{"key": 1}, {"key": 2, "updates": {}}]}), "`updates`"),
            (json!({"results": [{"key": 1}, {"key": 2, "insert": {"row": 1}}]}), "\"rows\""),
            (json!({"results": [{"key": 1}, {"key": 2, "error": {"msg": ""}}]}), "\"message\""),
            (json!({"results": [{"key": "1"}, {"key": 1}]}), "1 twice"),
            (json!({"results": [], "batchItemFailures": []}), "either"),
            (json!({}), "either"),
            (json!([1]), "`[1]`"),
            (json!({"batchItemFailures": [{"itemIdentifier": "9"}]}), "\"9\", which was not asked"),
        ] {
            let error = answered(&keys, answer).unwrap_err();
            assert!(error.contains(expected), "`{expected}` is not in: {error}");
        }
        let wrong = outcomes(&batch(&keys), b"Traceback", &Redactor::default()).unwrap_err();
        assert!(wrong.contains("`Traceback`"), "{wrong}");
    }

    #[test]
    fn an_item_with_two_ends_fails_alone() {
        for result in [
            json!({"key": 1, "skip": true, "update": {"name": "x"}}),
            json!({"key": 1, "error": "no", "skip": true}),
        ] {
            let outcomes = answered(&[json!(1)], json!({"results": [result]})).unwrap();
            assert!(matches!(&outcomes[0], Outcome::Error(error) if !error.retryable));
        }
    }

    #[test]
    fn failures_are_named_by_the_key_or_its_text() {
        let keys = [json!(1), json!("b"), json!(["c", 3]), json!("4"), json!(5)];
        let failures = json!({"batchItemFailures": [
            {"itemIdentifier": "1"}, {"itemIdentifier": "b"}, {"itemIdentifier": "[\"c\",3]"},
            {"itemIdentifier": "4"},
        ]});
        let outcomes = answered(&keys, failures).unwrap();
        for failed in &outcomes[..4] {
            assert!(matches!(failed, Outcome::Error(error) if error.retryable), "{outcomes:?}");
        }
        assert_eq!(outcomes[4], Outcome::Done(Change::default()));
    }
}
