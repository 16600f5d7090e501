//! The rows of the ledger's table. The partition key is the job, and the sort key the kind of row:
//! `ledger#CHUNK`, `deferred#CHUNK#KEY`, `emitted#CHUNK#KEY#SEQ`. A job without a store has `job`, `plan` and
//! `outcome#KEY`.

use super::expression::Attributes;
use crate::ledger::item_key;
use crate::{ConnectorError, DeferredItem, DeferredState, Emitted, EmittedCursor, Ledger, Result};
use chrono::Utc;
use std::time::Duration;
use windlass_core::{ChunkId, Counts, Cursor, JobId, Key, Value};
use windlass_drivers::dynamodb::sdk::types::AttributeValue;

/// Identifies a row.
#[derive(Clone, Copy)]
pub(super) enum Row<'a> {
    /// The progress of a chunk.
    Ledger(ChunkId),
    /// A deferred item of a chunk, by the text of its key.
    Deferred(ChunkId, &'a str),
    /// A row that an item emitted.
    Emitted(JobId, &'a EmittedCursor),
    /// The counters of a job without a store.
    Job(JobId),
    /// The request and the segments of a job without a store.
    Plan(JobId),
    /// How an item of a job without a store ended, by the text of its key.
    Outcome(JobId, &'a str),
}

impl Row<'_> {
    /// Its key.
    pub(super) fn key(&self) -> Attributes {
        let job = match self {
            Row::Ledger(chunk) | Row::Deferred(chunk, _) => chunk.job,
            Row::Emitted(job, _) | Row::Job(job) | Row::Plan(job) | Row::Outcome(job, _) => *job,
        };
        Attributes::from([
            ("job".to_owned(), AttributeValue::S(job.to_string())),
            ("row".to_owned(), AttributeValue::S(self.sort())),
        ])
    }

    /// Its sort key. Numbers are padded with zeros, so that their texts sort like the numbers.
    pub(super) fn sort(&self) -> String {
        match self {
            Row::Ledger(chunk) => format!("ledger#{}", digits(chunk.number)),
            Row::Deferred(chunk, key) => {
                format!("deferred#{}#{}", digits(chunk.number), item_key(key))
            }
            Row::Emitted(_, EmittedCursor { chunk, item_key: key, seq }) => {
                format!("emitted#{}#{}#{}", digits(*chunk), item_key(key), digits(*seq))
            }
            Row::Job(_) => "job".to_owned(),
            Row::Plan(_) => "plan".to_owned(),
            Row::Outcome(_, key) => format!("outcome#{}", item_key(key)),
        }
    }
}

/// The chunk number of a load is −1, which sorts before all others.
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

/// Reads a ledger row, and the number of commits at which its epoch began.
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

/// The row of a deferred item. DynamoDB has no clock to ask, so the due time is by this process's clock.
pub(super) fn deferred(chunk: ChunkId, deferred: &DeferredItem) -> Attributes {
    let key = deferred.key.to_text();
    let mut row = Row::Deferred(chunk, &key).key();
    let due = Utc::now().timestamp_millis().saturating_add(deferred.wait.as_millis() as i64);
    let due = if deferred.wait.is_zero() { 0 } else { due };
    row.extend([
        ("key".to_owned(), AttributeValue::S(key)),
        ("state".to_owned(), AttributeValue::S(deferred.state.as_str().to_owned())),
        ("attempts".to_owned(), number(deferred.attempts.into())),
        ("conflicts".to_owned(), number(deferred.conflicts.into())),
        ("error".to_owned(), AttributeValue::S(truncate(&deferred.error, MAX_ERROR_BYTES))),
        ("context".to_owned(), AttributeValue::S(shrink(&deferred.context, MAX_CONTEXT_BYTES))),
        ("record".to_owned(), AttributeValue::S(shrink(&deferred.record, MAX_RECORD_BYTES))),
        ("due".to_owned(), number(due)),
    ]);
    row
}

/// An item of DynamoDB may have 400 KB, and a record of that size grows as JSON.
const MAX_ERROR_BYTES: usize = 32 << 10;
const MAX_CONTEXT_BYTES: usize = 32 << 10;
const MAX_RECORD_BYTES: usize = 300 << 10;

/// Writes a document as text. While it is too large, replaces its largest field by a note of its size.
fn shrink(json: &serde_json::Value, max_bytes: usize) -> String {
    let mut text = json.to_string();
    let mut json = json.clone();
    while text.len() > max_bytes {
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

const LEFT_OUT: &str = "left out of the dead letter because it is too large";

fn truncate(text: &str, max_bytes: usize) -> String {
    let end = (0..=max_bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned()
}

/// Reads a deferred item.
pub(super) fn to_deferred(item: &Attributes) -> Result<DeferredItem> {
    let state = match text(item, "state")? {
        "retry" => DeferredState::Retry,
        "suspect" => DeferredState::Suspect,
        "dead" => DeferredState::Dead,
        other => {
            return Err(ConnectorError::Unreadable(format!(
                "a deferred item has the unknown state `{other}`"
            )));
        }
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

/// The item of an emitted row, made from the row of [`crate::keep_emitted`].
pub(super) fn emitted(chunk: ChunkId, row: &windlass_core::Row) -> Result<Attributes> {
    let missing = |name: &str| ConnectorError::Unreadable(format!("an emitted row has no {name}"));
    let Some(Value::Text(key)) = row.get("item_key") else { return Err(missing("key")) };
    let Some(Value::Int(seq)) = row.get("seq") else { return Err(missing("seq")) };
    let fields = row.get("fields").and_then(Value::to_text).ok_or_else(|| missing("fields"))?;
    let cursor = EmittedCursor { chunk: chunk.number, item_key: key.clone(), seq: *seq };
    let mut item = Row::Emitted(chunk.job, &cursor).key();
    item.extend([
        ("chunk".to_owned(), number(cursor.chunk)),
        ("key".to_owned(), AttributeValue::S(cursor.item_key)),
        ("seq".to_owned(), number(cursor.seq)),
        ("fields".to_owned(), AttributeValue::S(fields)),
    ]);
    Ok(item)
}

/// Reads an emitted row.
pub(super) fn to_emitted(item: &Attributes) -> Result<Emitted> {
    let cursor = EmittedCursor {
        chunk: int(item, "chunk")?,
        item_key: text(item, "key")?.to_owned(),
        seq: int(item, "seq")?,
    };
    Ok(Emitted { cursor, fields: text(item, "fields")?.to_owned() })
}

/// The chunk of a row, by its sort key.
pub(super) fn chunk_of(item: &Attributes) -> Result<i64> {
    let sort = text(item, "row")?;
    let number = sort.split('#').nth(1).and_then(|digits| digits.parse::<i64>().ok());
    let number =
        number.ok_or_else(|| ConnectorError::Unreadable(format!("a row of the ledger: {sort}")))?;
    Ok(number - 1)
}

/// The number of rows that the commits of a chunk emitted, from its ledger row.
pub(super) fn emitted_count(item: &Attributes) -> i64 {
    int(item, "emitted").unwrap_or_default()
}

/// The state of a deferred item.
pub(super) fn state_of(item: &Attributes) -> Option<&str> {
    text(item, "state").ok()
}

pub(super) fn number(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub(super) fn int(item: &Attributes, name: &str) -> Result<i64> {
    let read = item.get(name).and_then(|value| value.as_n().ok()).and_then(|n| n.parse().ok());
    read.ok_or_else(|| ConnectorError::Unreadable(format!("`{name}` of a row is not a number")))
}

pub(super) fn text<'a>(item: &'a Attributes, name: &str) -> Result<&'a str> {
    let read = item.get(name).and_then(|value| value.as_s().ok());
    let read =
        read.ok_or_else(|| ConnectorError::Unreadable(format!("`{name}` of a row is not a text")))?;
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
    fn sort_keys_order_rows_by_number() {
        let sort = |number| Row::Deferred(chunk(number), "[1]").sort();
        assert!(sort(-1) < sort(0) && sort(9) < sort(10) && sort(99) < sort(i64::MAX));
    }

    #[test]
    fn a_long_key_is_shortened_and_stays_unique() {
        let key = |last: &str| format!("[\"{}{last}\"]", "é".repeat(1500));
        let (one, other) = (key("1"), key("2"));
        let sort = |key: &str| Row::Deferred(chunk(1), key).sort();
        assert!(sort(&one).len() <= 1024);
        assert_ne!(sort(&one), sort(&other));
        assert_eq!(sort(&one), sort(&one));
    }

    #[test]
    fn an_oversized_dead_letter_leaves_out_its_largest_fields() {
        let record = json!({ "id": 7, "text": "x".repeat(500_000), "note": "kept" });
        let text = shrink(&record, MAX_RECORD_BYTES);
        let kept: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&kept["id"], &kept["note"]), (&json!(7), &json!("kept")));
        assert!(kept["text"].as_str().unwrap().contains("500002 bytes"), "{kept}");
        let list = json!(vec!["x"; 200_000]);
        assert!(shrink(&list, MAX_RECORD_BYTES).len() < 200);
    }
}
