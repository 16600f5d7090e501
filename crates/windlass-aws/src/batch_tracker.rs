//! Which messages of a batch are done: one is when all its items are, and none of them failed.

use crate::{BatchStats, Delivery};
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_core::{Key, Problem};

pub(crate) struct BatchTracker {
    ids: Vec<String>,
    marks: Mutex<Marks>,
}

struct Marks {
    messages: Vec<Standing>,
    tally: BatchStats,
}

#[derive(Clone, Default)]
struct Standing {
    open: usize,
    failed: bool,
}

/// An item that messages name.
pub(crate) struct Item {
    pub(crate) key: Key,
    /// The key's text, by which it is found.
    pub(crate) text: String,
    pub(crate) attempt: u32,
    /// The places of the messages that name it.
    pub(crate) messages: Vec<usize>,
}

impl BatchTracker {
    pub(crate) fn new(deliveries: &[Delivery]) -> BatchTracker {
        let ids = deliveries.iter().map(|delivery| delivery.id.clone()).collect();
        let messages = vec![Standing::default(); deliveries.len()];
        BatchTracker { ids, marks: Mutex::new(Marks { messages, tally: BatchStats::default() }) }
    }

    /// An item of this message is to be done.
    pub(crate) fn open(&self, message: usize) {
        self.marks().messages[message].open += 1;
    }

    /// Nobody understands this message.
    pub(crate) fn refused(&self, message: usize, problem: &Problem) {
        tracing::error!(message = self.ids[message], error = %problem, "a message is refused");
        self.marks().messages[message].failed = true;
    }

    /// An item is done, or needed nothing.
    pub(crate) fn ended(&self, item: &Item, count: impl FnOnce(&mut BatchStats)) {
        let mut marks = self.marks();
        item.messages.iter().for_each(|message| marks.messages[*message].open -= 1);
        count(&mut marks.tally);
    }

    /// An item failed, and all messages that name it with it.
    pub(crate) fn failed(&self, item: &Item, error: &str) {
        let message = item.messages.first().map_or("", |message| self.ids[*message].as_str());
        tracing::error!(message, key = %item.key, attempt = item.attempt, error, "an item failed");
        self.ended(item, |tally| tally.failed += 1);
        let mut marks = self.marks();
        item.messages.iter().for_each(|message| marks.messages[*message].failed = true);
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut BatchStats)) {
        count(&mut self.marks().tally);
    }

    /// The messages that come back: those that failed, and those that are not done.
    pub(crate) fn end(&self) -> (Vec<String>, BatchStats) {
        let marks = self.marks();
        let comes_back = |standing: &Standing| standing.failed || standing.open > 0;
        let failed = marks.messages.iter().zip(&self.ids).filter(|(mark, _)| comes_back(mark));
        (failed.map(|(_, id)| id.clone()).collect(), marks.tally)
    }

    /// Plain values, which a panic elsewhere cannot leave half changed.
    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
