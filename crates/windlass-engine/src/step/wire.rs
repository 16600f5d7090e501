//! The JSON protocol of commands and HTTP endpoints: requests and responses.
//!
//! `docs/handlers.md` documents it for authors of handlers.

use super::StepBatch;
use super::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};
use uuid::fmt::Simple;
use windlass_core::{Change, Insert, ItemError, JobId, Key, Outcome, Record, Row, Value};

/// Bytes of a response shown in an error message.
const MAX_EXCERPT_BYTES: usize = 200;

/// A batch as a request: one line of JSON, without the line break.
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
        .map_err(|error| format!("cannot serialize the batch: {error}"))?;
    Ok(line)
}

/// The outcomes of a response in the order of the batch, or what is wrong with the response.
pub(super) fn outcomes(
    batch: &StepBatch,
    response: &[u8],
    redactor: &Redactor,
) -> Result<Vec<Outcome>, String> {
    let excerpt = || excerpt(response, redactor);
    let parsed: Response =
        serde_json::from_slice(response).map_err(|error| match error.is_data() {
            true => format!("the response has an unexpected form: {error}: `{}`", excerpt()),
            false => format!("the response is not JSON: `{}`", excerpt()),
        })?;
    match parsed {
        Response { results: Some(results), batch_item_failures: None } => {
            outcomes_of_results(batch, results)
        }
        Response { results: None, batch_item_failures: Some(failures) } => {
            outcomes_of_failures(batch, failures)
        }
        _ => Err(format!(
            "the response must have either `results` or `batchItemFailures`: `{}`",
            excerpt()
        )),
    }
}

/// The first bytes of a response for an error message, redacted.
pub(super) fn excerpt(response: &[u8], redactor: &Redactor) -> String {
    let prefix = redactor.redact_prefix(response, MAX_EXCERPT_BYTES);
    let text = String::from_utf8_lossy(&prefix);
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
struct Response {
    #[serde(default)]
    results: Option<Vec<ItemResult>>,
    #[serde(default)]
    batch_item_failures: Option<Vec<ItemFailure>>,
}

/// The result of one item. Unknown fields are rejected: a misspelt field would otherwise be ignored, and
/// the item would count as processed. Rare fields are boxed, because many results are moved around.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemResult {
    #[serde(with = "windlass_core::key::id")]
    key: Key,
    #[serde(default)]
    update: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    insert: Option<Box<OneOrMany<Insert>>>,
    #[serde(default)]
    emit: Option<Box<OneOrMany<Row>>>,
    #[serde(default)]
    skip: Option<bool>,
    #[serde(default)]
    error: Option<Box<ErrorField>>,
}

/// One value, or a list of values.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`insert` is {\"table\": …, \"rows\": [{…}]} or a list of these, `emit` a row {…} or a list of rows"
)]
enum OneOrMany<T> {
    List(Vec<T>),
    One(T),
}

/// An error with all its fields, or only its message.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`error` is a message, or {\"message\": …, \"retryable\": …, \"context\": …}"
)]
enum ErrorField {
    Full(ItemError),
    Message(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemFailure {
    item_identifier: Json,
}

fn outcomes_of_results(
    batch: &StepBatch,
    results: Vec<ItemResult>,
) -> Result<Vec<Outcome>, String> {
    let in_order = results.len() == batch.items.len()
        && results.iter().zip(&batch.items).all(|(result, item)| result.key == item.key);
    if in_order {
        return Ok(results.into_iter().map(ItemResult::outcome).collect());
    }
    let mut pending = PendingItems::new(batch);
    let mut outcomes: Vec<Option<Outcome>> = batch.items.iter().map(|_| None).collect();
    for result in results {
        let index = pending.take(&result.key)?;
        outcomes[index] = Some(result.outcome());
    }
    let missing = outcomes.iter().filter(|outcome| outcome.is_none()).count();
    match batch.items.iter().zip(&outcomes).find(|(_, outcome)| outcome.is_none()) {
        Some((item, _)) => Err(format!(
            "the response is missing {missing} of {} items; the first is {}",
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
            Some(_) if changes || skips => contradiction("`error` together with another outcome"),
            Some(ErrorField::Full(error)) => Outcome::Error(error),
            Some(ErrorField::Message(message)) => Outcome::Error(ItemError::permanent(message)),
            None if changes && skips => contradiction("`skip` together with a change"),
            None if skips => Outcome::Skip,
            None => Outcome::Done(Change {
                update: self.update.unwrap_or_default(),
                insert: self.insert.map(|insert| insert.into_vec()).unwrap_or_default(),
                emit: self.emit.map(|emit| emit.into_vec()).unwrap_or_default(),
            }),
        }
    }
}

fn contradiction(what: &str) -> Outcome {
    Outcome::Error(ItemError::permanent(format!("the response for this item has {what}")))
}

impl<T> OneOrMany<T> {
    fn into_vec(self) -> Vec<T> {
        match self {
            OneOrMany::List(list) => list,
            OneOrMany::One(one) => vec![one],
        }
    }
}

/// The response format of AWS Lambda: named items are retried, all other items are done.
fn outcomes_of_failures(
    batch: &StepBatch,
    failures: Vec<ItemFailure>,
) -> Result<Vec<Outcome>, String> {
    let mut outcomes = vec![Outcome::Done(Change::default()); batch.items.len()];
    let mut pending = PendingItems::new(batch);
    for failure in failures {
        let index = pending.take(&Key::from_id(failure.item_identifier))?;
        outcomes[index] =
            Outcome::Error(ItemError::transient("the step listed the item in batchItemFailures"));
    }
    Ok(outcomes)
}

/// The index of each key in the batch, and which items have no outcome yet.
struct PendingItems {
    pending: HashMap<String, usize>,
    all: HashMap<String, usize>,
}

impl PendingItems {
    fn new(batch: &StepBatch) -> PendingItems {
        let texts = batch.items.iter().map(|item| item.key.to_text());
        let all: HashMap<String, usize> = texts.zip(0..).collect();
        PendingItems { pending: all.clone(), all }
    }

    /// The index of an item that has no outcome yet. Its key may also be given as text that holds its
    /// JSON: queues identify items by text, and some languages keep large numbers only as text.
    fn take(&mut self, key: &Key) -> Result<usize, String> {
        let as_json = match key.0.as_slice() {
            [Value::Text(text)] => serde_json::from_str(text).ok().map(Key::from_id),
            _ => None,
        };
        let texts = [Some(key), as_json.as_ref()].into_iter().flatten().map(Key::to_text);
        let known = texts.into_iter().find(|text| self.all.contains_key(text));
        let shown = key.to_id();
        let known = known
            .ok_or_else(|| format!("the response has key {shown}, which is not in the batch"))?;
        self.pending.remove(&known).ok_or_else(|| format!("the response has key {shown} twice"))
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
        let mut batch = StepBatch::probe(&JobType::from_json("JOB", job_type).unwrap(), None);
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

    fn parse(keys: &[Json], response: Json) -> Result<Vec<Outcome>, String> {
        outcomes(&batch(keys), response.to_string().as_bytes(), &Redactor::default())
    }

    #[test]
    fn a_request_has_the_documented_fields() {
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
    fn results_may_be_in_any_order_and_have_every_kind_of_outcome() {
        let keys = [json!(1), json!("b"), json!([3, "c"]), json!(4), json!(5)];
        let answer = json!({"took": 3, "results": [
            {"key": 5, "error": "no"},
            {"key": 4, "error": {"message": "busy", "retryable": true, "context": {"a": 1}}},
            {"key": [3, "c"], "insert": {"table": "t", "rows": [{"x": 1}]}, "emit": {"y": 2}},
            {"key": "b", "skip": true},
            {"key": 1, "update": {"name": "Ada"}},
        ]});
        let outcomes = parse(&keys, answer).unwrap();
        assert_eq!(outcomes[0], Outcome::set("name", "Ada"));
        assert_eq!(outcomes[1], Outcome::Skip);
        let Outcome::Done(change) = &outcomes[2] else { panic!("{outcomes:?}") };
        assert_eq!((change.insert.len(), change.emit.len()), (1, 1));
        let busy = ItemError { context: json!({"a": 1}), ..ItemError::transient("busy") };
        assert_eq!(outcomes[3], Outcome::Error(busy));
        assert_eq!(outcomes[4], Outcome::Error(ItemError::permanent("no")));
    }

    #[test]
    fn an_invalid_response_is_rejected_with_the_reason() {
        let keys = [json!(1), json!(2)];
        for (answer, expected) in [
            (json!({"results": [{"key": 1}, {"key": 1}]}), "key 1 twice"),
            (json!({"results": [{"key": 1}, {"key": 9}]}), "key 9, which is not in the batch"),
            (json!({"results": [{"key": 2}]}), "missing 1 of 2 items; the first is 1"),
            (json!({"results": [{"key": 1}, {"key": 2, "updates": {}}]}), "`updates`"),
            (json!({"results": [{"key": 1}, {"key": 2, "insert": {"row": 1}}]}), "\"rows\""),
            (json!({"results": [{"key": 1}, {"key": 2, "error": {"msg": ""}}]}), "\"message\""),
            (json!({"results": [{"key": "1"}, {"key": 1}]}), "key 1 twice"),
            (json!({"results": [], "batchItemFailures": []}), "either"),
            (json!({}), "either"),
            (json!([1]), "`[1]`"),
            (
                json!({"batchItemFailures": [{"itemIdentifier": "9"}]}),
                "\"9\", which is not in the batch",
            ),
        ] {
            let error = parse(&keys, answer).unwrap_err();
            assert!(error.contains(expected), "`{expected}` is not in: {error}");
        }
        let wrong = outcomes(&batch(&keys), b"Traceback", &Redactor::default()).unwrap_err();
        assert!(wrong.contains("`Traceback`"), "{wrong}");
    }

    #[test]
    fn an_item_with_contradictory_outcomes_fails_alone() {
        for result in [
            json!({"key": 1, "skip": true, "update": {"name": "x"}}),
            json!({"key": 1, "error": "no", "skip": true}),
        ] {
            let outcomes = parse(&[json!(1)], json!({"results": [result]})).unwrap();
            assert!(matches!(&outcomes[0], Outcome::Error(error) if !error.retryable));
        }
    }

    #[test]
    fn failed_items_are_identified_by_key_or_by_its_text() {
        let keys = [json!(1), json!("b"), json!(["c", 3]), json!("4"), json!(5)];
        let failures = json!({"batchItemFailures": [
            {"itemIdentifier": "1"}, {"itemIdentifier": "b"}, {"itemIdentifier": "[\"c\",3]"},
            {"itemIdentifier": "4"},
        ]});
        let outcomes = parse(&keys, failures).unwrap();
        for failed in &outcomes[..4] {
            assert!(matches!(failed, Outcome::Error(error) if error.retryable), "{outcomes:?}");
        }
        assert_eq!(outcomes[4], Outcome::Done(Change::default()));
    }
}
