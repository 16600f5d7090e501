//! Assembles the chunks of a range: decides which query comes next, and makes the chunks cover the range
//! without gaps.

use crate::{ChunkPage, CutLimits};
use windlass_core::{FilterValue, Key, KeyRange, KeySet, Keys};

/// Collects chunks cut out of a range.
pub(crate) struct ChunkCutter {
    within: Option<FilterValue>,
    range: KeyRange,
    chunk_items: u64,
    max_chunks: u64,
    max_items: Option<u64>,
    chunks: Vec<(KeySet, i64)>,
    last: Option<Key>,
}

/// What to do after the full chunks are found.
#[derive(Debug, PartialEq)]
pub(crate) enum NextCut {
    /// Return the page.
    Finish {
        /// Whether the range is used up or the limit of records is reached. False when only the page
        /// is full.
        done: bool,
    },
    /// Cut one chunk from the remaining records, of at most this many records where there is a
    /// limit. It is smaller than a full chunk.
    Tail(Option<u64>),
}

impl ChunkCutter {
    pub(crate) fn new(
        within: Option<&FilterValue>,
        range: &KeyRange,
        limits: CutLimits,
    ) -> ChunkCutter {
        ChunkCutter {
            within: within.cloned(),
            range: range.clone(),
            chunk_items: u64::from(limits.chunk_items.max(1)),
            max_chunks: u64::from(limits.max_chunks.max(1)),
            max_items: limits.max_items,
            chunks: Vec::new(),
            last: None,
        }
    }

    /// The number of records in a full chunk.
    pub(crate) fn chunk_items(&self) -> u64 {
        self.chunk_items
    }

    /// The number of full chunks that the limits allow.
    pub(crate) fn max_full_chunks(&self) -> u64 {
        self.max_items.map_or(self.max_chunks, |max| self.max_chunks.min(max / self.chunk_items))
    }

    /// The number of records that the page can hold.
    pub(crate) fn capacity(&self) -> u64 {
        let full = self.max_chunks.saturating_mul(self.chunk_items);
        self.max_items.map_or(full, |max| full.min(max))
    }

    /// The part of the range that is not cut yet.
    pub(crate) fn remaining(&self) -> KeyRange {
        KeyRange {
            after: self.last.clone().or_else(|| self.range.after.clone()),
            upto: self.range.upto.clone(),
        }
    }

    /// Adds a chunk that ends at this key.
    pub(crate) fn push(&mut self, upto: Key, items: i64) {
        let after = self.remaining().after;
        self.last = Some(upto.clone());
        let keys = Keys::Range(KeyRange { after, upto: Some(upto) });
        self.chunks.push((KeySet::new(self.within.clone(), keys), items));
    }

    /// The range of a chunk that would end at this key.
    pub(crate) fn remaining_upto(&self, key: &Key) -> KeyRange {
        KeyRange { upto: Some(key.clone()), ..self.remaining() }
    }

    /// What to do after the full chunks are found.
    pub(crate) fn next(&self) -> NextCut {
        let found = self.chunks.len() as u64;
        let at_end = match &self.range.upto {
            Some(upto) => self.remaining().after.as_ref() == Some(upto),
            None => false,
        };
        let left = self.max_items.map(|max| max.saturating_sub(found * self.chunk_items));
        if at_end || left == Some(0) {
            NextCut::Finish { done: true }
        } else if found == self.max_chunks {
            NextCut::Finish { done: false }
        } else if found == self.max_full_chunks() {
            NextCut::Tail(left)
        } else {
            NextCut::Tail(None)
        }
    }

    /// Adds the last chunk, with the `left` records that remain. It extends to the end of the range,
    /// so that the chunks cover the range. In a range without an end it extends to the last key.
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

    /// Finishes with chunks that list these keys, which are in key order, each with the number of its records.
    /// There are further keys if these are as many as the page can hold.
    pub(crate) fn finish_with_keys(mut self, keys: Vec<(Key, i64)>) -> ChunkPage {
        let are_all = (keys.len() as u64) < self.capacity();
        let (mut listed, mut items, mut total) = (Vec::new(), 0, 0);
        let mut is_limited = false;
        let mut keys = keys.into_iter().peekable();
        while let Some((key, records)) = keys.next() {
            self.last = Some(key.clone());
            listed.push(key);
            items += records;
            total += records.unsigned_abs();
            is_limited = self.max_items.is_some_and(|max| total >= max);
            if items.unsigned_abs() < self.chunk_items && !is_limited && keys.peek().is_some() {
                continue;
            }
            let chunk = Keys::List(std::mem::take(&mut listed));
            self.chunks.push((KeySet::new(self.within.clone(), chunk), std::mem::take(&mut items)));
            if is_limited || self.chunks.len() as u64 == self.max_chunks {
                break;
            }
        }
        let done = is_limited || (are_all && keys.peek().is_none());
        self.finish(done)
    }

    /// The page of chunks.
    pub(crate) fn finish(self, done: bool) -> ChunkPage {
        ChunkPage { chunks: self.chunks, last: self.last, done }
    }
}
