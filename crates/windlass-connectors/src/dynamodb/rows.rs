//! The rows of the ledger's table. Its partition is the job; the sort key says what a row is:
//! `ledger#CHUNK`, `held#CHUNK#KEY`, `emitted#CHUNK#KEY#PLACE`.

use super::expression::Attributes;
use crate::ledger::item_key;
use crate::{DataError, DeferredItem, DeferredState, Emitted, Ledger, Result};
use chrono::Utc;
use std::time::Duration;
use windlass_core::{ChunkId, Counts, Cursor, JobId, Key, Value};
use windlass_drivers::dynamodb::sdk::types::AttributeValue;

/// A row by its place.
#[derive(Clone, Copy)]
pub(super) enum Row<'a> {
    /// How far a chunk is.
    Ledger(ChunkId),
    /// An item of a chunk, by its key's text.
    DeferredItem(ChunkId, &'a str),
    /// A row that an item emitted.
    Emitted(JobId, &'a (i64, String, i64)),
}

impl Row<'_> {
    /// Its key.
    pub(super) fn key(&self) -> Attributes {
        let job = match self {
            Row::Ledger(chunk) | Row::DeferredItem(chunk, _) => chunk.job,
            Row::Emitted(job, _) => *job,
        };
        Attributes::from([
            ("job".to_owned(), AttributeValue::S(job.to_string())),
            ("row".to_owned(), AttributeValue::S(self.sort())),
        ])
    }

    /// Its sort key. Numbers have as many digits as any, so that their texts are in their order.
    pub(super) fn sort(&self) -> String {
        match self {
            Row::Ledger(chunk) => format!("ledger#{}", digits(chunk.number)),
            Row::DeferredItem(chunk, key) => {
                format!("held#{}#{}", digits(chunk.number), item_key(key))
            }
            Row::Emitted(_, (chunk, key, place)) => {
                format!("emitted#{}#{}#{}", digits(*chunk), item_key(key), digits(*place))
            }
        }
    }
}

/// A chunk of a load is −1, which comes before all others.
pub(super) fn digits(number: i64) -> String {
    format!("{:019}", number.saturating_add(1))
}

/// The attributes that a commit changes.
pub(super) fn progress(ledger: &Ledger) -> [(&'static str, AttributeValue); 7] {
    let Counts { read, processed, skipped, dead, conflicts, .. } = ledger.counts;
    [
        ("cursor", AttributeValue::S(ledger.cursor.to_text())),
        ("commits", number(ledger.commits)),
        ("read", number(read)),
        ("processed", number(processed)),
        ("skipped", number(skipped)),
        ("dead", number(dead)),
        ("conflicts", number(conflicts)),
    ]
}

/// Reads a ledger row, and at how many commits its epoch began.
pub(super) fn ledger(chunk: ChunkId, item: &Attributes) -> Result<(Ledger, i64)> {
    let counts = Counts {
        read: int(item, "read")?,
        processed: int(item, "processed")?,
        skipped: int(item, "skipped")?,
        dead: int(item, "dead")?,
        conflicts: int(item, "conflicts")?,
    };
    let ledger = Ledger {
        chunk,
        epoch: int(item, "epoch")?,
        nonce: int(item, "nonce")?,
        commits: int(item, "commits")?,
        cursor: Cursor::from_text(text(item, "cursor")?)?,
        counts,
        stalls: int(item, "stalls")?.try_into().unwrap_or(0),
    };
    Ok((ledger, int(item, "opened_at_commits")?))
}

/// A held item as a row. DynamoDB has no clock to ask, so when it is due is by ours.
pub(super) fn held(chunk: ChunkId, held: &DeferredItem) -> Attributes {
    let key = held.key.to_text();
    let mut row = Row::DeferredItem(chunk, &key).key();
    let due = Utc::now().timestamp_millis().saturating_add(held.wait.as_millis() as i64);
    let due = if held.wait.is_zero() { 0 } else { due };
    row.extend([
        ("key".to_owned(), AttributeValue::S(key)),
        ("state".to_owned(), AttributeValue::S(held.state.as_str().to_owned())),
        ("attempts".to_owned(), number(held.attempts.into())),
        ("conflicts".to_owned(), number(held.conflicts.into())),
        ("error".to_owned(), AttributeValue::S(cut(&held.error, MOST_ERROR))),
        ("context".to_owned(), AttributeValue::S(within(&held.context, MOST_CONTEXT))),
        ("record".to_owned(), AttributeValue::S(within(&held.record, MOST_RECORD))),
        ("due".to_owned(), number(due)),
    ]);
    row
}

/// An item of DynamoDB has 400 KB. A record that has as many becomes larger as JSON.
const MOST_ERROR: usize = 32 << 10;
const MOST_CONTEXT: usize = 32 << 10;
const MOST_RECORD: usize = 300 << 10;

/// A document as text; where it is too large, its largest fields say only how large they were.
fn within(json: &serde_json::Value, most: usize) -> String {
    let mut text = json.to_string();
    let mut json = json.clone();
    while text.len() > most {
        let sized =
            |(name, value): (&String, &serde_json::Value)| (value.to_string().len(), name.clone());
        let largest = json.as_object().and_then(|fields| fields.iter().map(sized).max());
        match (largest, json.as_object_mut()) {
            (Some((size, name)), Some(fields)) if size > LEFT_OUT.len() + 30 => {
                fields.insert(name, format!("{LEFT_OUT}: {size} bytes").into());
            }
            _ => json = format!("{LEFT_OUT}: {} bytes", text.len()).into(),
        }
        text = json.to_string();
    }
    text
}

const LEFT_OUT: &str = "left out of the letter, since it is too large";

fn cut(text: &str, most: usize) -> String {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned()
}

/// Reads a held item.
pub(super) fn to_held(item: &Attributes) -> Result<DeferredItem> {
    let state = match text(item, "state")? {
        "retry" => DeferredState::Retry,
        "trial" => DeferredState::Suspect,
        "dead" => DeferredState::Dead,
        other => return Err(DataError::Unreadable(format!("an item is held as `{other}`"))),
    };
    let wait = int(item, "due")?.saturating_sub(Utc::now().timestamp_millis());
    Ok(DeferredItem {
        key: serde_json::from_str::<Key>(text(item, "key")?)?,
        state,
        attempts: int(item, "attempts")?.try_into().unwrap_or(u32::MAX),
        conflicts: int(item, "conflicts")?.try_into().unwrap_or(u32::MAX),
        error: text(item, "error")?.to_owned(),
        context: serde_json::from_str(text(item, "context")?)?,
        record: serde_json::from_str(text(item, "record")?)?,
        wait: Duration::from_millis(wait.max(0) as u64),
    })
}

/// An emitted row, of the row that [`crate::keep_emitted`] made of it.
pub(super) fn emitted(chunk: ChunkId, row: &windlass_core::Row) -> Result<Attributes> {
    let missing = |name: &str| DataError::Unreadable(format!("an emitted row has no {name}"));
    let Some(Value::Text(key)) = row.get("item_key") else { return Err(missing("key")) };
    let Some(Value::Int(place)) = row.get("place") else { return Err(missing("place")) };
    let fields = row.get("fields").and_then(Value::to_text).ok_or_else(|| missing("fields"))?;
    let place = (chunk.number, key.clone(), *place);
    let mut item = Row::Emitted(chunk.job, &place).key();
    item.extend([
        ("chunk".to_owned(), number(place.0)),
        ("key".to_owned(), AttributeValue::S(place.1)),
        ("place".to_owned(), number(place.2)),
        ("fields".to_owned(), AttributeValue::S(fields)),
    ]);
    Ok(item)
}

/// Reads an emitted row.
pub(super) fn to_emitted(item: &Attributes) -> Result<Emitted> {
    let place = (int(item, "chunk")?, text(item, "key")?.to_owned(), int(item, "place")?);
    Ok(Emitted { place, fields: text(item, "fields")?.to_owned() })
}

/// The chunk of a row, by its sort key.
pub(super) fn chunk_of(item: &Attributes) -> Result<i64> {
    let sort = text(item, "row")?;
    let number = sort.split('#').nth(1).and_then(|digits| digits.parse::<i64>().ok());
    let number =
        number.ok_or_else(|| DataError::Unreadable(format!("a row of the ledger: {sort}")))?;
    Ok(number - 1)
}

/// How many rows the commits of a chunk emitted, as its ledger row has it.
pub(super) fn emitted_count(item: &Attributes) -> i64 {
    int(item, "emitted").unwrap_or_default()
}

/// The state of a held item.
pub(super) fn state_of(item: &Attributes) -> Option<&str> {
    text(item, "state").ok()
}

pub(super) fn number(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub(super) fn int(item: &Attributes, name: &str) -> Result<i64> {
    let read = item.get(name).and_then(|value| value.as_n().ok()).and_then(|n| n.parse().ok());
    read.ok_or_else(|| DataError::Unreadable(format!("`{name}` of a row is not a number")))
}

pub(super) fn text<'a>(item: &'a Attributes, name: &str) -> Result<&'a str> {
    let read = item.get(name).and_then(|value| value.as_s().ok());
    let read =
        read.ok_or_else(|| DataError::Unreadable(format!("`{name}` of a row is no text")))?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chunk(number: i64) -> ChunkId {
        ChunkId { job: JobId::nil(), number }
    }

    #[test]
    fn rows_are_in_the_order_of_their_numbers() {
        let sort = |number| Row::DeferredItem(chunk(number), "[1]").sort();
        assert!(sort(-1) < sort(0) && sort(9) < sort(10) && sort(99) < sort(i64::MAX));
    }

    #[test]
    fn a_long_key_fits_and_stays_itself() {
        let key = |last: &str| format!("[\"{}{last}\"]", "é".repeat(1500));
        let (one, other) = (key("1"), key("2"));
        let sort = |key: &str| Row::DeferredItem(chunk(1), key).sort();
        assert!(sort(&one).len() <= 1024);
        assert_ne!(sort(&one), sort(&other));
        assert_eq!(sort(&one), sort(&one));
    }

    #[test]
    fn a_letter_that_is_too_large_leaves_its_largest_fields_out() {
        let record = json!({ "id": 7, "text": "x".repeat(500_000), "note": "kept" });
        let text = within(&record, MOST_RECORD);
        let kept: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&kept["id"], &kept["note"]), (&json!(7), &json!("kept")));
        assert!(kept["text"].as_str().unwrap().contains("500002 bytes"), "{kept}");
        let list = json!(vec!["x"; 200_000]);
        assert!(within(&list, MOST_RECORD).len() < 200);
    }
}
