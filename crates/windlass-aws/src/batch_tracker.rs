//! Tracks which messages of a batch are complete: all items processed, and none failed.

use crate::{BatchStats, Delivery};
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_core::{Key, Problem};

pub(crate) struct BatchTracker {
    ids: Vec<String>,
    marks: Mutex<Marks>,
}

struct Marks {
    messages: Vec<MessageState>,
    stats: BatchStats,
}

#[derive(Clone, Default)]
struct MessageState {
    open: usize,
    failed: bool,
}

/// An item that one or more messages name.
pub(crate) struct Item {
    pub(crate) key: Key,
    /// The text of the key, which identifies the item.
    pub(crate) text: String,
    pub(crate) attempt: u32,
    /// The indexes of the messages that name it.
    pub(crate) messages: Vec<usize>,
}

impl BatchTracker {
    pub(crate) fn new(deliveries: &[Delivery]) -> BatchTracker {
        let ids = deliveries.iter().map(|delivery| delivery.id.clone()).collect();
        let messages = vec![MessageState::default(); deliveries.len()];
        BatchTracker { ids, marks: Mutex::new(Marks { messages, stats: BatchStats::default() }) }
    }

    /// Adds an item that is still to be processed to a message.
    pub(crate) fn open(&self, message: usize) {
        self.marks().messages[message].open += 1;
    }

    /// Marks a message that is malformed.
    pub(crate) fn refused(&self, message: usize, problem: &Problem) {
        tracing::error!(message = self.ids[message], error = %problem, "malformed message refused");
        self.marks().messages[message].failed = true;
    }

    /// Marks an item that was processed or skipped.
    pub(crate) fn ended(&self, item: &Item, count: impl FnOnce(&mut BatchStats)) {
        let mut marks = self.marks();
        item.messages.iter().for_each(|message| marks.messages[*message].open -= 1);
        count(&mut marks.stats);
    }

    /// Marks a failed item, and all messages that name it.
    pub(crate) fn failed(&self, item: &Item, error: &str) {
        let message = item.messages.first().map_or("", |message| self.ids[*message].as_str());
        tracing::error!(message, key = %item.key, attempt = item.attempt, error, "item failed");
        self.ended(item, |stats| stats.failed += 1);
        let mut marks = self.marks();
        item.messages.iter().for_each(|message| marks.messages[*message].failed = true);
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut BatchStats)) {
        count(&mut self.marks().stats);
    }

    /// The messages to deliver again: those that failed, and those that are incomplete.
    pub(crate) fn end(&self) -> (Vec<String>, BatchStats) {
        let marks = self.marks();
        let is_redelivered = |message: &MessageState| message.failed || message.open > 0;
        let failed = marks.messages.iter().zip(&self.ids).filter(|(mark, _)| is_redelivered(mark));
        (failed.map(|(_, id)| id.clone()).collect(), marks.stats)
    }

    /// The values are plain counters, so a poisoned lock is still consistent.
    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
