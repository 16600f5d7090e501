//! The arithmetic of cutting: which jump comes next, and how the chunks come to tile the range.

use crate::ChunkPage;
use windlass_core::{FilterValue, Key, KeyRange, KeySet, Keys};

/// A page of chunks being cut out of a range.
pub(crate) struct Page {
    within: Option<FilterValue>,
    range: KeyRange,
    items: u64,
    most_chunks: u64,
    most_items: Option<u64>,
    chunks: Vec<(KeySet, i64)>,
    last: Option<Key>,
}

/// What is to be done after the jumps of a full chunk each.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Nothing: the range is used up or the limit reached, or the page is full.
    Finish {
        /// Whether the range is used up, or the limit reached.
        done: bool,
    },
    /// Fewer records than a chunk are left, or fewer are allowed: at most so many, if that is some.
    Tail(Option<u64>),
}

impl Page {
    pub(crate) fn new(
        within: Option<&FilterValue>,
        range: &KeyRange,
        items: u32,
        most_chunks: u32,
        most_items: Option<u64>,
    ) -> Page {
        Page {
            within: within.cloned(),
            range: range.clone(),
            items: u64::from(items.max(1)),
            most_chunks: u64::from(most_chunks.max(1)),
            most_items,
            chunks: Vec::new(),
            last: None,
        }
    }

    /// How many records a full chunk has.
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    /// How many full chunks may be jumped over at most.
    pub(crate) fn jumps(&self) -> u64 {
        self.most_items.map_or(self.most_chunks, |most| self.most_chunks.min(most / self.items))
    }

    /// How many records the page holds at most.
    pub(crate) fn capacity(&self) -> u64 {
        let full = self.most_chunks.saturating_mul(self.items);
        self.most_items.map_or(full, |most| full.min(most))
    }

    /// What of the range is not cut yet.
    pub(crate) fn rest(&self) -> KeyRange {
        KeyRange {
            after: self.last.clone().or_else(|| self.range.after.clone()),
            upto: self.range.upto.clone(),
        }
    }

    /// A chunk that ends at this key.
    pub(crate) fn push(&mut self, upto: Key, items: i64) {
        let after = self.rest().after;
        self.last = Some(upto.clone());
        let part = Keys::Range(KeyRange { after, upto: Some(upto) });
        self.chunks.push((KeySet { within: self.within.clone(), keys: part }, items));
    }

    /// What a chunk that ends at this key would reach.
    pub(crate) fn upto(&self, key: &Key) -> KeyRange {
        KeyRange { upto: Some(key.clone()), ..self.rest() }
    }

    /// What is to be done after the jumps.
    pub(crate) fn next(&self) -> Next {
        let found = self.chunks.len() as u64;
        let at_end = match &self.range.upto {
            Some(upto) => self.rest().after.as_ref() == Some(upto),
            None => false,
        };
        let left = self.most_items.map(|most| most.saturating_sub(found * self.items));
        if at_end || left == Some(0) {
            Next::Finish { done: true }
        } else if found == self.most_chunks {
            Next::Finish { done: false }
        } else if found == self.jumps() {
            Next::Tail(left)
        } else {
            Next::Tail(None)
        }
    }

    /// The last chunk reaches to the end of the range, so that the chunks tile it, and takes the
    /// records that are left. Without an end it reaches to the last key there is.
    pub(crate) fn end(&mut self, left: i64, last: Option<Key>) {
        match (self.range.upto.clone(), last) {
            (Some(upto), _) if left == 0 && !self.chunks.is_empty() => {
                if let Some((KeySet { keys: Keys::Range(range), .. }, _)) = self.chunks.last_mut() {
                    range.upto = Some(upto.clone());
                }
                self.last = Some(upto);
            }
            (Some(upto), _) => self.push(upto, left),
            (None, Some(last)) => self.push(last, left),
            (None, None) => {}
        }
    }

    /// Explicit keys, in key order, in chunks of their own.
    pub(crate) fn keys(mut self, keys: Vec<Key>) -> ChunkPage {
        let found = keys.len() as u64;
        let limited = self.most_items.is_some_and(|most| found >= most);
        let done = limited || found < self.capacity();
        self.last = keys.last().cloned();
        for keys in keys.chunks(self.items as usize) {
            let count = keys.len() as i64;
            let part = Keys::List(keys.to_vec());
            self.chunks.push((KeySet { within: self.within.clone(), keys: part }, count));
        }
        self.finish(done)
    }

    /// The page.
    pub(crate) fn finish(self, done: bool) -> ChunkPage {
        ChunkPage { chunks: self.chunks, last: self.last, done }
    }
}
