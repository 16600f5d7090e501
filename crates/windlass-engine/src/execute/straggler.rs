//! Splits a chunk whose rest would take longer than a lease while slots are free: the chunk ends at its cursor, and its
//! remaining records become new chunks.
//!
//! It happens right after a commit of this lease was acknowledged, so no commit is in flight that could still pass the
//! cursor. See "Splitting a chunk" in docs/design/commit-protocol.md.

use crate::Result;
use crate::execute::chunk_runner::ChunkRunner;
use std::time::{Duration, Instant};
use windlass_connectors::{CutLimits, CutRange};
use windlass_core::{ChunkStatus, Cursor, Key, KeyRange, KeySet, Keys};
use windlass_store::{NewChunk, Split};

/// How many commits must remain. A split costs about as much as two commits.
const MIN_BATCHES: i64 = 4;
/// The most chunks that the rest becomes.
const MAX_CHUNKS: i64 = 16;

/// How fast a chunk is, and when it was last considered for a split.
pub(crate) struct ChunkSpeed {
    /// The shortest time per item of a batch. A batch that waited, for example for a lock, tells nothing about the
    /// others.
    per_item: Option<Duration>,
    considered: Instant,
}

impl ChunkSpeed {
    pub(super) fn new() -> ChunkSpeed {
        ChunkSpeed { per_item: None, considered: Instant::now() }
    }

    /// Records the time of a batch.
    pub(super) fn record(&mut self, items: u32, elapsed: Duration) {
        if let Some(per_item) = elapsed.checked_div(items) {
            self.per_item = Some(self.per_item.map_or(per_item, |known| known.min(per_item)));
        }
    }
}

impl ChunkRunner {
    /// Cuts the remaining records into new chunks, if they take long and slots are free. Returns whether the chunk ends
    /// here.
    pub(super) async fn split_if_slow(&mut self) -> bool {
        let Some((cursor, rest, items)) = self.slow_rest() else { return false };
        self.speed.considered = Instant::now();
        match self.cut_rest(&cursor, &rest, items).await {
            Ok(split) => self.split = split,
            Err(error) => {
                let chunk = self.lease().chunk;
                tracing::debug!(%chunk, %error, "failed to split the chunk; it continues");
            }
        }
        self.split.is_some()
    }

    /// The cursor, the range behind it and the number of its records, if that takes longer than a lease.
    fn slow_rest(&self) -> Option<(Key, KeyRange, i64)> {
        let definition = self.job.definition();
        let lease = definition.chunk.lease;
        if self.speed.considered.elapsed() < lease / 3
            || definition.step.kind.makes_parts()
            // The rows behind the cursor have the mark of this chunk.
            || definition.step.mark.is_some()
            || self.job.is_redrive()
            // Items wait for another attempt in this chunk.
            || !self.ledger.counts.add_up()
        {
            return None;
        }
        let items = self.leased.items - self.ledger.counts.read;
        let is_slow = u32::try_from(items).is_ok_and(|items| {
            self.speed.per_item.is_some_and(|time| time.saturating_mul(items) > lease)
        });
        match (&self.ledger.cursor, self.remaining()?.keys) {
            (Cursor::Key(cursor), Keys::Range(rest))
                if is_slow && items >= MIN_BATCHES * i64::from(self.batch_size) =>
            {
                Some((cursor.clone(), rest, items))
            }
            _ => None,
        }
    }

    /// The rest in as many chunks as there are free slots, its own included. `None` if no slot is free, or if they have
    /// other chunks of the job to work on.
    async fn cut_rest(&self, cursor: &Key, rest: &KeyRange, items: i64) -> Result<Option<Split>> {
        let (store, job) = (self.lease.store(), self.lease().chunk.job);
        let workers = store.workers().await?.into_iter().filter(|worker| !worker.vanished);
        let free: i64 = workers.map(|worker| (worker.slots - worker.chunks).max(0)).sum();
        if free == 0 || !store.chunks(job, Some(ChunkStatus::Pending), None, 1).await?.is_empty() {
            return Ok(None);
        }
        let batches = items / i64::from(self.batch_size).max(1);
        let wanted = (free + 1).min(batches / 2).min(MAX_CHUNKS);
        let size = u32::try_from(items / wanted + 1).unwrap_or(u32::MAX);
        let within = self.leased.key_set.within.as_ref();
        let limits = CutLimits::new(size, wanted as u32 + 1, None);
        let cut = self.job.source.cut(&self.job.scope, CutRange::new(within, rest), limits).await?;
        // Otherwise many records were added since the chunk was planned.
        Ok(if cut.done { self.split_at(cursor, rest, &cut.chunks) } else { None })
    }

    /// The chunk up to the cursor, and the rest cut as these chunks are. `None` if they are no ranges, or fewer than two.
    fn split_at(&self, cursor: &Key, rest: &KeyRange, cut: &[(KeySet, i64)]) -> Option<Split> {
        let Keys::Range(whole) = &self.leased.key_set.keys else { return None };
        let new = |after: Option<Key>, upto: Option<Key>, items: i64| NewChunk {
            key_set: KeySet {
                keys: Keys::Range(KeyRange { after, upto }),
                ..self.leased.key_set.clone()
            },
            items,
        };
        let mut chunks = Vec::new();
        let mut after = cursor.clone();
        let (last, others) = cut.split_last().filter(|(_, others)| !others.is_empty())?;
        for (key_set, items) in others {
            let Keys::Range(KeyRange { upto: Some(upto), .. }) = &key_set.keys else { return None };
            chunks.push(new(Some(after), Some(upto.clone()), *items));
            after = upto.clone();
        }
        chunks.push(new(Some(after), rest.upto.clone(), last.1));
        // The planned number stays the same in all. If records were added or deleted since, the difference is here.
        let items = self.leased.items - chunks.iter().map(|chunk| chunk.items).sum::<i64>();
        let kept = new(whole.after.clone(), Some(cursor.clone()), items);
        (items >= 0).then_some(Split { kept, rest: chunks })
    }
}
