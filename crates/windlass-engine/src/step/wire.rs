//! The JSON protocol of commands and HTTP endpoints: requests and responses.
//!
//! `docs/handlers.md` documents it for authors of handlers.

use super::answer::{self, Answer};
use super::redact::Redactor;
use super::{StepBatch, truncated};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use uuid::fmt::Simple;
use windlass_core::{Change, ItemError, JobId, Key, Outcome, Record, Value, error_fingerprint};

/// Bytes of a response shown in an error message.
const MAX_EXCERPT_BYTES: usize = 200;

/// A batch as a request.
pub(super) struct RequestLine {
    /// One line of JSON, without the line break.
    pub(super) line: Vec<u8>,
    /// Where the items begin. They are the last field.
    items: usize,
}

impl RequestLine {
    pub(super) fn of(batch: &StepBatch) -> Result<RequestLine, String> {
        let unserializable = |error| format!("cannot serialize the batch: {error}");
        let head = Head {
            job_id: batch.job.id,
            job_type: &batch.job.job_type,
            params: &batch.job.params,
            dry_run: batch.job.dry_run,
        };
        let mut line = Vec::with_capacity(256 * (batch.items.len() + 1));
        serde_json::to_writer(&mut line, &head).map_err(unserializable)?;
        // Reopens the object for its last field.
        line.pop();
        line.extend_from_slice(b",\"items\":");
        let items = line.len();
        serde_json::to_writer(&mut line, &Items(batch)).map_err(unserializable)?;
        line.push(b'}');
        Ok(RequestLine { line, items })
    }

    /// The idempotency key of the batch: the same when the same batch is sent again, also after a crash,
    /// but not for another attempt of an item or a changed record.
    pub(super) fn idempotency_key(&self, batch: &StepBatch) -> String {
        let mut hash = Sha256::new();
        hash.update(batch.job.root.as_bytes());
        hash.update(&self.line[self.items..]);
        truncated(hash).to_string()
    }
}

/// The items of a batch, serialized one by one.
struct Items<'a>(&'a StepBatch);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Items(batch) = self;
        serializer.collect_seq(batch.items.iter().map(|item| Item {
            key: &item.key,
            attempt: item.attempt,
            idempotency_key: batch.job.idempotency_key(&item.key),
            record: &item.record,
        }))
    }
}

/// Why a response has no outcomes.
#[derive(Debug, PartialEq)]
pub(super) enum ResponseError {
    /// The response as a whole is invalid. One of the items may be the cause.
    Invalid(String),
    /// Every answer of the job's first batch is malformed in the same way, so the handler is wrong and not
    /// the items.
    Malformed(String),
}

impl From<String> for ResponseError {
    fn from(message: String) -> ResponseError {
        ResponseError::Invalid(message)
    }
}

/// The outcomes of a response in the order of the batch, or what is wrong with the response. A malformed
/// answer among others makes its item fail.
pub(super) fn outcomes(
    batch: &StepBatch,
    response: &[u8],
    redactor: &Redactor,
) -> Result<Vec<Outcome>, ResponseError> {
    let excerpt = || excerpt(response, redactor);
    let parsed: Response = match serde_json::from_slice(response) {
        Ok(parsed) => parsed,
        Err(error) if error.is_data() => {
            return match serde_json::from_slice(response) {
                Ok(Answers { results }) => outcomes_of_answers(batch, results),
                Err(_) => Err(ResponseError::Invalid(format!(
                    "the response has an unexpected form: {error}: `{}`",
                    excerpt()
                ))),
            };
        }
        Err(_) => return Err(format!("the response is not JSON: `{}`", excerpt()).into()),
    };
    let outcomes = match parsed {
        Response { results: Some(results), batch_item_failures: None } => {
            outcomes_of_results(batch, results.into_iter().map(Answer::into_parts).collect())
        }
        Response { results: None, batch_item_failures: Some(failures) } => {
            outcomes_of_failures(batch, failures)
        }
        _ => Err(format!(
            "the response must have either `results` or `batchItemFailures`: `{}`",
            excerpt()
        )),
    }?;
    if !batch.items.is_empty() {
        batch.job.record_answer();
    }
    Ok(outcomes)
}

/// The outcomes of a response with a malformed answer.
fn outcomes_of_answers(
    batch: &StepBatch,
    answers: Vec<&RawValue>,
) -> Result<Vec<Outcome>, ResponseError> {
    let read: Vec<_> = answers.into_iter().map(answer::read).collect();
    let wrong = |read: &Result<(Key, Result<Outcome, String>), String>| match read {
        Ok((_, Ok(_))) => None,
        Ok((_, Err(why))) | Err(why) => Some(error_fingerprint(why)),
    };
    let first = read.first().and_then(wrong);
    let all_alike = first.is_some() && read.iter().all(|read| wrong(read) == first);
    let mut results = Vec::with_capacity(read.len());
    for read in read {
        match read {
            Ok((_, Err(why))) | Err(why) if all_alike && !batch.job.has_answered() => {
                return Err(ResponseError::Malformed(format!(
                    "every answer of the first batch is malformed: {why}"
                )));
            }
            Ok((key, Ok(outcome))) => results.push((key, outcome)),
            Ok((key, Err(why))) => {
                let error = ItemError::permanent(format!("the answer is malformed: {why}"));
                results.push((key, Outcome::Error(error)));
            }
            Err(why) => return Err(format!("an answer is malformed: {why}").into()),
        }
    }
    let outcomes = outcomes_of_results(batch, results)?;
    if !all_alike {
        batch.job.record_answer();
    }
    Ok(outcomes)
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
struct Head<'a> {
    job_id: JobId,
    job_type: &'a str,
    params: &'a BTreeMap<String, Json>,
    dry_run: bool,
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
    results: Option<Vec<Answer>>,
    #[serde(default)]
    batch_item_failures: Option<Vec<ItemFailure>>,
}

/// A response whose answers are read one by one, because one of them is malformed.
#[derive(Deserialize)]
struct Answers<'a> {
    #[serde(borrow)]
    results: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemFailure {
    item_identifier: Json,
}

fn outcomes_of_results(
    batch: &StepBatch,
    results: Vec<(Key, Outcome)>,
) -> Result<Vec<Outcome>, String> {
    let in_order = results.len() == batch.items.len()
        && results.iter().zip(&batch.items).all(|((key, _), item)| *key == item.key);
    if in_order {
        return Ok(results.into_iter().map(|(_, outcome)| outcome).collect());
    }
    let mut pending = PendingItems::new(batch);
    let mut outcomes: Vec<Option<Outcome>> = batch.items.iter().map(|_| None).collect();
    for (key, outcome) in results {
        let index = pending.take(&key)?;
        outcomes[index] = Some(outcome);
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
    use proptest::prelude::*;
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

    fn parse(keys: &[Json], response: Json) -> Result<Vec<Outcome>, ResponseError> {
        outcomes(&batch(keys), response.to_string().as_bytes(), &Redactor::default())
    }

    fn invalid(error: ResponseError) -> String {
        match error {
            ResponseError::Invalid(message) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_has_the_documented_fields() {
        let batch = batch(&[json!(7), json!(["a", 1])]);
        let sent: Json = serde_json::from_slice(&RequestLine::of(&batch).unwrap().line).unwrap();
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
            (json!({"results": [{"key": 1}, {"update": {}}]}), "malformed: missing field `key`"),
            (json!({"results": [{"key": 1}, {"key": 9, "updates": {}}]}), "key 9, which is not"),
            (json!({"results": [{"key": "1"}, {"key": 1}]}), "key 1 twice"),
            (json!({"results": [], "batchItemFailures": []}), "either"),
            (json!({}), "either"),
            (json!([1]), "`[1]`"),
            (
                json!({"batchItemFailures": [{"itemIdentifier": "9"}]}),
                "\"9\", which is not in the batch",
            ),
        ] {
            let error = invalid(parse(&keys, answer).unwrap_err());
            assert!(error.contains(expected), "`{expected}` is not in: {error}");
        }
        let wrong = outcomes(&batch(&keys), b"Traceback", &Redactor::default()).unwrap_err();
        assert!(invalid(wrong).contains("`Traceback`"));
    }

    #[test]
    fn a_malformed_answer_among_others_fails_its_item() {
        for (wrong, expected) in [
            (json!({"updates": {}}), "unknown field `updates`, expected one of `key`, `update`"),
            (json!({"update": [1]}), "`update`: invalid type: sequence, expected a map"),
            (json!({"insert": {"row": 1}}), "`insert`: unknown field `row`, expected `table` or"),
            (json!({"insert": 7}), "`insert`: invalid type: integer `7`, expected an object or a"),
            (json!({"emit": [1]}), "`emit`: invalid type: integer `1`, expected a map"),
            (json!({"error": {"msg": ""}}), "`error` is a message, or {\"message\""),
            (json!({"skip": "yes"}), "`skip`: invalid type: string \"yes\", expected a boolean"),
        ] {
            let mut wrong = wrong;
            wrong["key"] = json!(2);
            let answer = json!({"results": [{"key": 1, "skip": true}, wrong]});
            let outcomes = parse(&[json!(1), json!(2)], answer).unwrap();
            assert_eq!(outcomes[0], Outcome::Skip);
            let Outcome::Error(error) = &outcomes[1] else { panic!("{outcomes:?}") };
            assert!(error.message.contains(expected), "`{expected}` is not in: {}", error.message);
            assert!(!error.retryable);
        }
    }

    #[test]
    fn a_first_batch_of_malformed_answers_is_the_handlers_fault() {
        let batch = batch(&[json!(1), json!(2)]);
        let parse = |response: Json| {
            outcomes(&batch, response.to_string().as_bytes(), &Redactor::default())
        };
        let wrong =
            json!({"results": [{"key": 1, "updates": {"a": 1}}, {"key": 2, "updates": {}}]});
        let Err(ResponseError::Malformed(why)) = parse(wrong.clone()) else { panic!() };
        assert!(why.contains("unknown field `updates`"), "{why}");
        let Err(ResponseError::Malformed(why)) = parse(json!({"results": [{}, {}]})) else {
            panic!()
        };
        assert!(why.contains("missing field `key`"), "{why}");
        // After a well-formed answer the items are to blame.
        parse(json!({"results": [{"key": 1}, {"key": 2}]})).unwrap();
        let failed = parse(wrong).unwrap();
        assert!(failed.iter().all(|outcome| matches!(outcome, Outcome::Error(_))), "{failed:?}");
    }

    #[test]
    fn numbers_keep_their_digits() {
        let response = br#"{"results": [{"key": 1, "update": {"a": 1.10, "b": {"n": 1e400}},
            "insert": {"table": "t", "rows": [{"c": 12345678901234567890.5}]},
            "emit": [{"d": 0.1000000000000000055}]}]}"#;
        let outcomes = outcomes(&batch(&[json!(1)]), response, &Redactor::default()).unwrap();
        let Outcome::Done(change) = &outcomes[0] else { panic!("{outcomes:?}") };
        let text = |value: &Value| value.to_text().unwrap();
        assert_eq!(text(&change.update["a"]), "1.10");
        assert_eq!(text(&change.update["b"]), r#"{"n": 1e400}"#);
        assert_eq!(text(&change.insert[0].rows[0]["c"]), "12345678901234567890.5");
        assert_eq!(text(&change.emit[0]["d"]), "0.1000000000000000055");
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

    /// JSON that has about the form of a response.
    fn any_answer() -> impl Strategy<Value = Json> {
        let texts = ["7", "retry", "\u{0}"].map(Json::from);
        let leaf = prop_oneof![
            proptest::sample::select([&texts[..], &[Json::Null, true.into()]].concat()),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
        ];
        let names =
            "results batchItemFailures itemIdentifier key error set insert emit delete skip";
        let name = proptest::sample::select(names.split(' ').collect::<Vec<_>>());
        leaf.prop_recursive(5, 40, 4, move |inner| {
            let fields = proptest::collection::vec((name.clone(), inner.clone()), 0..4);
            let object = |fields: Vec<(&str, Json)>| {
                Json::Object(
                    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                )
            };
            let list = proptest::collection::vec(inner, 0..4).prop_map(Json::from);
            prop_oneof![list, fields.prop_map(object)]
        })
    }

    proptest! {
        /// A response of any form is refused, or has one outcome for each item.
        #[test]
        fn responses_of_any_form_have_all_outcomes_or_none(
            answers in proptest::collection::vec(any_answer(), 0..4),
            whole in any_answer(),
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let batch = batch(&[json!(7), json!(["a", 1])]);
            let results = json!({ "results": answers }).to_string();
            let cut = &results.as_bytes()[..results.len() / 2];
            for response in [results.as_bytes(), whole.to_string().as_bytes(), &bytes, cut] {
                if let Ok(outcomes) = outcomes(&batch, response, &Redactor::default()) {
                    prop_assert_eq!(outcomes.len(), batch.items.len());
                }
            }
        }
    }
}
