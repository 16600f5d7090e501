//! The ledger: the progress of each chunk, its epoch, and its deferred items.

use crate::ConnectorError;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::time::Duration;
use windlass_core::problem::{Code, Problem};
use windlass_core::{ChunkId, Counts, Cursor, Key};

/// A chunk to fence.
#[derive(Clone, Copy, Debug)]
pub struct Fence {
    /// The chunk.
    pub chunk: ChunkId,
    /// The epoch of the lease.
    pub epoch: i64,
    /// The random number of the lease.
    pub nonce: i64,
    /// Whether the previous lease was lost. Lost leases without a commit in between count as stalls.
    pub lost: bool,
}

/// A chunk's ledger row.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    /// The chunk.
    pub chunk: ChunkId,
    /// The epoch of the fence.
    pub epoch: i64,
    /// The nonce of the lease that fenced it. A store restored from a backup issues epochs a second time.
    pub nonce: i64,
    /// The number of commits. Each commit expects the number that it read and adds one. So a commit whose
    /// answer was lost is detected, even if it only deferred items.
    pub commits: i64,
    /// The progress.
    pub cursor: Cursor,
    /// The outcomes of its items.
    pub counts: Counts,
    /// The number of consecutive lost leases without a commit.
    pub stalls: u32,
}

/// A chunk's ledger row with the counts of the rows next to it, for the audit.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerRow {
    /// The row.
    pub ledger: Ledger,
    /// Items that are deferred for another try. Zero when the chunk is completed.
    pub deferred: i64,
    /// Dead items. They stay until the ledger is pruned.
    pub dead: i64,
    /// The number of emitted rows, as counted by the commits.
    pub emitted: i64,
    /// The number of emitted rows in the table. They stay until the ledger is pruned.
    pub emitted_rows: i64,
}

/// An item that the cursor has passed, and that is not done or is dead.
#[derive(Clone, Debug, PartialEq)]
pub struct DeferredItem {
    /// Its key.
    pub key: Key,
    /// Why it is deferred.
    pub state: DeferredState,
    /// How often it has failed.
    pub attempts: u32,
    /// How often it had a concurrent write.
    pub conflicts: u32,
    /// Its last error.
    pub error: String,
    /// Details about the error.
    pub context: serde_json::Value,
    /// The record as it was read. Null for items that will be read again.
    pub record: serde_json::Value,
    /// The time until it may be tried. Zero when it is due.
    pub wait: Duration,
}

/// Why an item is deferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeferredState {
    /// It will be read and tried again.
    Retry,
    /// It is processed alone, since an item of this chunk seems to crash the process.
    Suspect,
    /// It failed permanently and becomes a dead letter when the chunk ends.
    Dead,
}

impl DeferredState {
    /// The name in the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            DeferredState::Retry => "retry",
            DeferredState::Suspect => "suspect",
            DeferredState::Dead => "dead",
        }
    }
}

/// The problem of a ledger whose tables are missing and cannot be created.
pub(crate) fn missing_ledger(why: &str) -> ConnectorError {
    let detail = format!(
        "the ledger's tables are missing and cannot be created: {why}; \
         run `windlass migrate --print` and have them created"
    );
    Problem::new(Code::Ledger, detail).into()
}

/// The most bytes of an item's key in an index of the ledger's tables. Index entries may have 3072 bytes in
/// InnoDB and 2704 in PostgreSQL, and sort keys 1024 in DynamoDB, each including the job and the chunk.
const MAX_KEY_BYTES: usize = 600;

/// The text that identifies an item in the ledger's tables: the text of its key, or the beginning of a long
/// text and a digest. The text of a key ends with a bracket, so no key equals the short form of another.
pub(crate) fn item_key(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_KEY_BYTES {
        return Cow::Borrowed(text);
    }
    let end = (0..=MAX_KEY_BYTES - 100).rev().find(|end| text.is_char_boundary(*end));
    let beginning = &text[..end.unwrap_or_default()];
    Cow::Owned(format!("{beginning}…{}", hex::encode(Sha256::digest(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_is_shortened_and_stays_unique() {
        let key = |last: &str| format!("[\"{}{last}\"]", "é".repeat(1500));
        let (one, other) = (key("1"), key("2"));
        assert!(item_key(&one).len() <= MAX_KEY_BYTES);
        assert_ne!(item_key(&one), item_key(&other));
        assert_eq!(item_key(&item_key(&one)), item_key(&one));
        assert_eq!(item_key("[7]"), "[7]");
    }
}
