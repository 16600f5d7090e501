//! One commit: changes that are applied together with the ledger, or not at all.

use crate::{DeferredItem, DeferredState, Ledger};
use std::sync::Arc;
use std::time::Duration;
use windlass_core::step::MAX_CONFLICTS;
use windlass_core::{Change, Counts, Cursor, Key, KeySet, OnConflict, Record, Value};

/// The changes of one transaction.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The cursor after the commit.
    pub cursor: Cursor,
    /// The effect on the user's data.
    pub effect: Effect,
    /// The counts that are known before the effect: records read, skipped and dead items. The effect
    /// itself counts processed items and conflicts. For a statement these are the expected counts: if
    /// they are right, the ledger row is written only once.
    pub counts: Counts,
    /// Items to defer. Overwrites the row of an item that is deferred already.
    pub defer: Vec<DeferredItem>,
    /// Deferred items that need no further try.
    pub resolve: Vec<Key>,
}

impl Commit {
    /// A commit of this effect and cursor, without counts and deferred items.
    pub fn new(cursor: Cursor, effect: Effect) -> Commit {
        let counts = Counts::default();
        Commit { cursor, effect, counts, defer: Vec::new(), resolve: Vec::new() }
    }
}

/// The effect of a commit on the user's data.
#[derive(Clone, Debug)]
pub enum Effect {
    /// None: only the ledger changes.
    Nothing,
    /// The statement of a `sql` or `refresh` step on a batch. Counts the rows of the batch as read in
    /// the same transaction, affected rows as processed, and the others as skipped. Clears the mark, if
    /// there is one.
    Statement(KeySet),
    /// The changes of single items.
    Write(Vec<WriteItem>),
    /// Clears the mark of a chunk that ends without running its statement.
    Unmark(KeySet),
}

impl Effect {
    /// Whether only the ledger changes.
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
    /// The guard it was read with.
    pub guard: Value,
    /// What changes. Shared, since a commit that is split is tried again.
    pub change: Arc<Change>,
    /// The record that the change was computed from, stored if the item becomes a dead letter.
    pub record: Record,
    /// How often it has failed before.
    pub attempts: u32,
    /// How often it had a concurrent write before.
    pub conflicts: u32,
}

/// The result of a commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// The ledger row after the commit.
    pub ledger: Ledger,
}

impl WriteItem {
    /// The consequence of a conflict: the item is deferred for another try, dead, or skipped
    /// (`None`). Adds the conflict and the outcome to the counts.
    pub fn conflicted(&self, on_conflict: OnConflict, counts: &mut Counts) -> Option<DeferredItem> {
        counts.conflicts += 1;
        let conflicts = self.conflicts + 1;
        let state = match on_conflict {
            OnConflict::Skip => {
                counts.skipped += 1;
                return None;
            }
            OnConflict::Retry if conflicts < MAX_CONFLICTS => DeferredState::Retry,
            OnConflict::Retry | OnConflict::DeadLetter => DeferredState::Dead,
        };
        let dead = state == DeferredState::Dead;
        counts.dead += i64::from(dead);
        Some(DeferredItem {
            key: self.key.clone(),
            state,
            attempts: self.attempts,
            conflicts,
            error: format!("conflict: another writer changed the record {conflicts} times"),
            context: serde_json::Value::Null,
            record: if dead { self.record.to_json() } else { serde_json::Value::Null },
            wait: Duration::ZERO,
        })
    }
}
