//! The ledger: how far a chunk is committed, under which epoch, and which of its items wait.

use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::time::Duration;
use windlass_core::{ChunkId, Counts, Cursor, Key};

/// A chunk to fence.
#[derive(Clone, Copy, Debug)]
pub struct Fence {
    /// The chunk.
    pub chunk: ChunkId,
    /// The epoch it was claimed at.
    pub epoch: i64,
    /// The claim's random number.
    pub nonce: i64,
    /// Whether the claim before ended by a lost lease. Such claims without any commit in between
    /// are counted as stalls.
    pub lost: bool,
}

/// A chunk's ledger row.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    /// The chunk.
    pub chunk: ChunkId,
    /// The epoch it is fenced at.
    pub epoch: i64,
    /// The nonce of the claim that fenced it: a store that was restored gives epochs a second time.
    pub nonce: i64,
    /// How many commits it has seen. Each commit expects the number it read and adds one, so that
    /// a commit whose answer was lost is found out, held items included.
    pub commits: i64,
    /// How far it is.
    pub cursor: Cursor,
    /// What became of its items.
    pub counts: Counts,
    /// How many claims in a row were lost without a single commit.
    pub stalls: u32,
}

/// A chunk's ledger row with what is kept beside it, as the audit reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerRow {
    /// The row.
    pub ledger: Ledger,
    /// Items that wait for another try. None are left when the chunk is completed.
    pub deferred: i64,
    /// Items that failed for good. They stay until the ledger is pruned.
    pub dead: i64,
    /// Rows that its items emitted, as their commits counted them.
    pub emitted: i64,
    /// Emitted rows that are there. They stay as long as the ledger.
    pub emitted_rows: i64,
}

/// An item that the cursor has passed but that is not done, or that failed for good.
#[derive(Clone, Debug, PartialEq)]
pub struct DeferredItem {
    /// Its key.
    pub key: Key,
    /// Why it is held.
    pub state: DeferredState,
    /// How often it has failed.
    pub attempts: u32,
    /// How often it met a concurrent write.
    pub conflicts: u32,
    /// Its last error.
    pub error: String,
    /// What helps to understand the error.
    pub context: serde_json::Value,
    /// The record as it was read; null for items that will be read again.
    pub record: serde_json::Value,
    /// How long from now until it may be tried; zero when it is due.
    pub wait: Duration,
}

/// Why an item is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeferredState {
    /// It will be read and tried again.
    Retry,
    /// It is being tried alone, since an item of this chunk seems to kill its process.
    Suspect,
    /// It failed for good and becomes a dead letter with the chunk's end.
    Dead,
}

impl DeferredState {
    /// The name in the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            DeferredState::Retry => "retry",
            DeferredState::Suspect => "trial",
            DeferredState::Dead => "dead",
        }
    }
}

/// The most bytes of an item's key in an index of the ledger's tables. InnoDB's entries have room for
/// 3072 bytes, PostgreSQL's for 2704, DynamoDB's sort keys for 1024, each with the job and the chunk.
const MOST_KEY_BYTES: usize = 600;

/// The text by which the ledger's tables find an item: its key's, or where that is longer than an
/// index entry may be, the beginning of it and a digest. A key's text ends with a bracket, so that no
/// key is another one's short form.
pub(crate) fn item_key(text: &str) -> Cow<'_, str> {
    if text.len() <= MOST_KEY_BYTES {
        return Cow::Borrowed(text);
    }
    let end = (0..=MOST_KEY_BYTES - 100).rev().find(|end| text.is_char_boundary(*end));
    let beginning = &text[..end.unwrap_or_default()];
    Cow::Owned(format!("{beginning}…{}", hex::encode(Sha256::digest(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_fits_and_stays_itself() {
        let key = |last: &str| format!("[\"{}{last}\"]", "é".repeat(1500));
        let (one, other) = (key("1"), key("2"));
        assert!(item_key(&one).len() <= MOST_KEY_BYTES);
        assert_ne!(item_key(&one), item_key(&other));
        assert_eq!(item_key(&item_key(&one)), item_key(&one));
        assert_eq!(item_key("[7]"), "[7]");
    }
}
