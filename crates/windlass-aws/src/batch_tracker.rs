//! Tracks which messages of a batch are complete: all items processed, and none failed.

use crate::{BatchStats, Delivery};
use std::collections::BTreeMap;
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
    /// The items by the text of their keys.
    items: BTreeMap<String, (Key, ItemState)>,
    /// Why the whole message failed.
    error: Option<MessageError>,
}

#[derive(Clone, PartialEq)]
enum ItemState {
    Open,
    Ended,
    Failed(String),
}

/// Why a whole message failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MessageError {
    /// It is malformed. No delivery will succeed.
    Malformed(String),
    /// Its items are done, but something after them failed: the next delivery repeats only that.
    Afterwards,
}

/// A message that is not done.
pub(crate) struct FailedMessage {
    /// Its index in the batch.
    pub(crate) index: usize,
    /// The items that failed, or were not done in time, with their errors.
    pub(crate) items: Vec<(Key, String)>,
    pub(crate) error: Option<MessageError>,
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
    pub(crate) fn open(&self, message: usize, key: &Key) {
        let items = &mut self.marks().messages[message].items;
        items.insert(key.to_text(), (key.clone(), ItemState::Open));
    }

    /// Marks a message that is malformed.
    pub(crate) fn refused(&self, message: usize, problem: &Problem) {
        tracing::error!(message = self.ids[message], error = %problem, "malformed message refused");
        let error = MessageError::Malformed(problem.to_string());
        self.marks().messages[message].error = Some(error);
    }

    /// Marks a message whose items are done and which must be delivered again nevertheless.
    pub(crate) fn repeat(&self, message: usize) {
        self.marks().messages[message].error = Some(MessageError::Afterwards);
    }

    /// Marks an item that was processed or skipped.
    pub(crate) fn ended(&self, item: &Item, count: impl FnOnce(&mut BatchStats)) {
        self.mark(item, &ItemState::Ended, count);
    }

    /// Marks a failed item, and all messages that name it.
    pub(crate) fn failed(&self, item: &Item, error: &str) {
        let message = item.messages.first().map_or("", |message| self.ids[*message].as_str());
        tracing::error!(message, key = %item.key, attempt = item.attempt, error, "item failed");
        self.mark(item, &ItemState::Failed(error.to_owned()), |stats| stats.failed += 1);
    }

    fn mark(&self, item: &Item, state: &ItemState, count: impl FnOnce(&mut BatchStats)) {
        let mut marks = self.marks();
        for message in &item.messages {
            if let Some((_, known)) = marks.messages[*message].items.get_mut(&item.text) {
                *known = state.clone();
            }
        }
        count(&mut marks.stats);
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut BatchStats)) {
        count(&mut self.marks().stats);
    }

    pub(crate) fn stats(&self) -> BatchStats {
        self.marks().stats
    }

    /// The messages that failed, and those that are incomplete.
    pub(crate) fn failures(&self) -> Vec<FailedMessage> {
        let marks = self.marks();
        let failed = marks.messages.iter().enumerate().map(|(index, message)| {
            let items = message.items.values().filter_map(|(key, state)| match state {
                ItemState::Ended => None,
                ItemState::Open => Some((key.clone(), "was not done in time".to_owned())),
                ItemState::Failed(error) => Some((key.clone(), error.clone())),
            });
            FailedMessage { index, items: items.collect(), error: message.error.clone() }
        });
        failed.filter(|message| message.error.is_some() || !message.items.is_empty()).collect()
    }

    /// The values are plain counters, so a poisoned lock is still consistent.
    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
