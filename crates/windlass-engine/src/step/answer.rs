//! The answer for one item in a response: what a handler may write, and what is wrong with it otherwise.

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use windlass_core::{Change, ExactValue, Insert, ItemError, Key, Outcome, Row};

/// The answer for one item. Unknown fields are rejected: a misspelt field would otherwise be ignored, and
/// the item would count as processed. Rare fields are boxed, because many answers are moved around.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    #[serde(with = "windlass_core::key::id")]
    key: Key,
    #[serde(default)]
    update: Option<Fields>,
    #[serde(default)]
    insert: Option<Box<OneOrMany<InsertField>>>,
    #[serde(default)]
    emit: Option<Box<OneOrMany<Fields>>>,
    #[serde(default)]
    skip: Option<bool>,
    #[serde(default)]
    error: Option<Box<ErrorField>>,
}

/// The key of an answer whose other fields cannot be read.
#[derive(serde::Deserialize)]
struct KeyOnly {
    #[serde(with = "windlass_core::key::id")]
    key: Key,
}

type Fields = BTreeMap<String, ExactValue>;

/// `{table, rows}`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct InsertField {
    table: String,
    rows: Vec<Fields>,
}

/// One value, or a list of values.
struct OneOrMany<T>(Vec<T>);

/// An error with all its fields, or only its message.
#[derive(serde::Deserialize)]
#[serde(
    untagged,
    expecting = "`error` is a message, or {\"message\": …, \"retryable\": …, \"context\": …}"
)]
enum ErrorField {
    Full(ItemError),
    Message(String),
}

impl Answer {
    /// The key, and the outcome that the answer stands for.
    pub(super) fn into_parts(mut self) -> (Key, Outcome) {
        (std::mem::replace(&mut self.key, Key(Vec::new())), self.outcome())
    }

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
                update: self.update.map(row).unwrap_or_default(),
                insert: self.insert.map(|many| inserts(many.0)).unwrap_or_default(),
                emit: self.emit.map(|many| rows(many.0)).unwrap_or_default(),
            }),
        }
    }
}

fn contradiction(what: &str) -> Outcome {
    Outcome::Error(ItemError::permanent(format!("the response for this item has {what}")))
}

fn row(fields: Fields) -> Row {
    fields.into_iter().map(|(name, ExactValue(value))| (name, value)).collect()
}

fn rows(list: Vec<Fields>) -> Vec<Row> {
    list.into_iter().map(row).collect()
}

fn inserts(list: Vec<InsertField>) -> Vec<Insert> {
    list.into_iter().map(|insert| Insert { table: insert.table, rows: rows(insert.rows) }).collect()
}

/// Reads one answer of a response that is wrong somewhere: its key and outcome, or its key and what is wrong
/// with the answer.
///
/// # Errors
/// The answer does not even have a key.
pub(super) fn read(answer: &RawValue) -> Result<(Key, Result<Outcome, String>), String> {
    match serde_json::from_str::<Answer>(answer.get()) {
        Ok(answer) => {
            let (key, outcome) = answer.into_parts();
            Ok((key, Ok(outcome)))
        }
        Err(error) => {
            let why = wrong_field(answer).unwrap_or_else(|| reason(&error));
            match serde_json::from_str::<KeyOnly>(answer.get()) {
                Ok(KeyOnly { key }) => Ok((key, Err(why))),
                Err(_) => Err(why),
            }
        }
    }
}

/// The first field of an answer that does not have its form.
fn wrong_field(answer: &RawValue) -> Option<String> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(answer.get()).ok()?;
    fields.into_iter().find_map(|(name, raw)| {
        let error = match name.as_str() {
            "update" => check::<Fields>(raw),
            "insert" => check::<OneOrMany<InsertField>>(raw),
            "emit" => check::<OneOrMany<Fields>>(raw),
            "skip" => check::<bool>(raw),
            "error" => check::<ErrorField>(raw),
            _ => None,
        };
        error.map(|error| format!("`{name}`: {}", reason(&error)))
    })
}

fn check<T: for<'de> Deserialize<'de>>(raw: &RawValue) -> Option<serde_json::Error> {
    serde_json::from_str::<Option<T>>(raw.get()).err()
}

/// The error without the place in the text, which differs between items.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text).to_owned()
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrManyVisitor(PhantomData)).map(OneOrMany)
    }
}

/// Not an untagged enum, which would round the numbers of its fields.
struct OneOrManyVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrManyVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object or a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|one| vec![one])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq))
    }
}
