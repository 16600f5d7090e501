//! One commit: what changes together with the ledger, or not at all.

use crate::{DeferredItem, DeferredState, Ledger};
use std::time::Duration;
use windlass_core::step::MOST_CONFLICTS;
use windlass_core::{Change, Counts, Cursor, Key, KeySet, OnConflict, Record, Value};

/// What one transaction commits.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The cursor after it.
    pub cursor: Cursor,
    /// The effect on the user's data.
    pub effect: Effect,
    /// What is known of the counts before the effect: records read, skipped and dead items.
    /// Items processed and conflicts are counted by the effect itself. Of a statement, what is
    /// expected: where it comes true, the ledger is touched only once.
    pub counts: Counts,
    /// Items to hold; a row that is held already is overwritten.
    pub hold: Vec<DeferredItem>,
    /// DeferredItem items that are settled and no longer held.
    pub settle: Vec<Key>,
}

impl Commit {
    /// A commit of this effect that moves the cursor here, with nothing else to say.
    pub fn new(cursor: Cursor, effect: Effect) -> Commit {
        let counts = Counts::default();
        Commit { cursor, effect, counts, hold: Vec::new(), settle: Vec::new() }
    }
}

/// The effect of a commit on the user's data.
#[derive(Clone, Debug)]
pub enum Effect {
    /// None: only the ledger moves.
    Nothing,
    /// The statement of a `sql` or `refresh` step on a batch. The rows of the batch are counted
    /// as read in the same transaction; rows affected are processed, the others skipped. Clears
    /// the mark, where there is one.
    Statement(KeySet),
    /// The changes of single items.
    Write(Vec<WriteItem>),
    /// Clears the mark of a chunk that ends without its statement.
    Unmark(KeySet),
}

impl Effect {
    /// Whether only the ledger moves.
    pub(crate) fn is_none(&self) -> bool {
        match self {
            Effect::Nothing => true,
            Effect::Write(items) => items.is_empty(),
            Effect::Statement(_) | Effect::Unmark(_) => false,
        }
    }
}

/// One item to write back.
#[derive(Clone, Debug)]
pub struct WriteItem {
    /// Its key.
    pub key: Key,
    /// The version it was read at.
    pub version: Value,
    /// What changes.
    pub change: Change,
    /// The record it was computed from, kept if the item becomes a dead letter.
    pub record: Record,
    /// How often it has failed before.
    pub attempts: u32,
    /// How often it met a concurrent write before.
    pub conflicts: u32,
}

/// What a commit came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// The ledger row after it.
    pub ledger: Ledger,
}

impl WriteItem {
    /// What a version conflict of this item comes to: held for another try, a dead letter, or
    /// skipped (`None`). Counts the conflict and the end, if it is one.
    pub fn conflicted(self, on_conflict: OnConflict, counts: &mut Counts) -> Option<DeferredItem> {
        counts.conflicts += 1;
        let conflicts = self.conflicts + 1;
        let state = match on_conflict {
            OnConflict::Skip => {
                counts.skipped += 1;
                return None;
            }
            OnConflict::Retry if conflicts < MOST_CONFLICTS => DeferredState::Retry,
            OnConflict::Retry | OnConflict::DeadLetter => DeferredState::Dead,
        };
        let dead = state == DeferredState::Dead;
        counts.dead += i64::from(dead);
        Some(DeferredItem {
            key: self.key,
            state,
            attempts: self.attempts,
            conflicts,
            error: format!("version conflict: another writer changed the record {conflicts} times"),
            context: serde_json::Value::Null,
            record: if dead { self.record.to_json() } else { serde_json::Value::Null },
            wait: Duration::ZERO,
        })
    }
}
