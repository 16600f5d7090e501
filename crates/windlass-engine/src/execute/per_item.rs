//! Steps that give an outcome per item: a batch is read, worked, and its outcomes committed with
//! the ledger.

use crate::EngineError;
use crate::execute::chunk_runner::{Chunk, StopReason};
use crate::step::{StepBatch, StepError, StepItem};
use std::collections::HashMap;
use std::time::Duration;
use windlass_connectors::{
    Commit, ConnectorError, DeferredItem, DeferredPage, DeferredState, Effect, Item, ReadLimits,
    WriteItem, keep_emitted,
};
use windlass_core::{ChunkId, Counts, Cursor, ItemError, Key, KeySet, Keys, Outcome, RetryPolicy};
use windlass_drivers::{Error, ErrorClass};

/// About how many bytes of records one batch holds, so that wide rows do not fill the memory.
const BATCH_BYTES: usize = 8 << 20;

/// An item on its way through the step.
pub(crate) struct PendingItem {
    pub(crate) item: Item,
    /// How often it has failed before.
    pub(crate) attempts: u32,
    /// How often it met a concurrent write before.
    pub(crate) conflicts: u32,
    /// Its place in a list of keys, from one; none in a range, which is walked by key.
    place: Option<u64>,
    /// How many keys the cursor passes with it: itself, and listed keys without a record.
    passed: i64,
}

/// Where a batch comes from, which decides what its commit does to the cursor.
pub(crate) enum BatchOrigin {
    /// The cursor moves over it: to this place at its end, passing this many more listed keys.
    Cursor(Cursor, i64),
    /// The cursor has passed it before.
    Deferred,
}

impl BatchOrigin {
    /// The same for a part of the batch that others come after.
    fn before(&self, part: &[PendingItem]) -> BatchOrigin {
        match (self, part.last()) {
            (BatchOrigin::Cursor(..), Some(last)) => BatchOrigin::Cursor(last.cursor(), 0),
            _ => BatchOrigin::Deferred,
        }
    }
}

impl PendingItem {
    /// The cursor once everything up to this item is committed.
    fn cursor(&self) -> Cursor {
        self.place.map_or_else(|| Cursor::Key(self.item.key.clone()), Cursor::Index)
    }

    /// An item that was held.
    pub(crate) fn held(item: Item, held: &DeferredItem) -> PendingItem {
        // A trial counts its tries as they begin, so the one that begins now has not failed yet.
        let on_trial = u32::from(held.state == DeferredState::Suspect);
        let attempts = held.attempts.saturating_sub(on_trial);
        PendingItem { item, attempts, conflicts: held.conflicts, place: None, passed: 0 }
    }
}

impl Chunk {
    /// Reads the next batch, works it and commits it.
    pub(crate) async fn run_batch(&mut self, rest: KeySet) -> Result<(), StopReason> {
        let (batch, from) = self.read_next(rest, self.size).await?;
        if matches!(&from, BatchOrigin::Cursor(end, _) if *end != Cursor::End) {
            // What was read beyond the limit of bytes was thrown away: do not ask for it again.
            self.size = (batch.len() as u32).clamp(1, self.size);
        }
        self.work_batch(batch, from).await
    }

    /// Reads at most so many items from where the cursor stands.
    pub(crate) async fn read_next(
        &self,
        rest: KeySet,
        limit: u32,
    ) -> Result<(Vec<PendingItem>, BatchOrigin), StopReason> {
        match &rest.keys {
            Keys::Range(_) => {
                let batch = self
                    .job
                    .source
                    .read(&self.job.scope, &rest, ReadLimits::new(limit, BATCH_BYTES))
                    .await?;
                let last = batch.items.last().map(|item| Cursor::Key(item.key.clone()));
                let end = if batch.end { Cursor::End } else { last.unwrap_or(Cursor::End) };
                let tried =
                    |item| PendingItem { item, attempts: 0, conflicts: 0, place: None, passed: 1 };
                Ok((batch.items.into_iter().map(tried).collect(), BatchOrigin::Cursor(end, 0)))
            }
            Keys::List(keys) => self.read_listed(keys, limit).await,
        }
    }

    /// Reads listed keys in the order of the list, so that the cursor can count them.
    async fn read_listed(
        &self,
        keys: &[Key],
        limit: u32,
    ) -> Result<(Vec<PendingItem>, BatchOrigin), StopReason> {
        let done = match self.ledger.cursor {
            Cursor::Index(done) => done,
            _ => 0,
        };
        let mut take = keys.len().min(limit as usize);
        let items = loop {
            let key_set = self.of_keys(keys[..take].to_vec());
            let batch = self
                .job
                .source
                .read(&self.job.scope, &key_set, ReadLimits::new(take as u32, BATCH_BYTES))
                .await?;
            if batch.end || take == 1 || batch.items.len() == take {
                break batch.items;
            }
            // Wide records: fewer keys at once.
            take = take.div_ceil(2);
        };
        let mut before = 0;
        let mut batch = Vec::with_capacity(items.len());
        for (place, item) in self.by_listed_key(&keys[..take], items).await?.into_iter().enumerate()
        {
            let Some(item) = item else { continue };
            let passed = place as i64 + 1 - before;
            before = place as i64 + 1;
            let place = Some(done + place as u64 + 1);
            batch.push(PendingItem { item, attempts: 0, conflicts: 0, place, passed });
        }
        let end = if take == keys.len() { Cursor::End } else { Cursor::Index(done + take as u64) };
        Ok((batch, BatchOrigin::Cursor(end, take as i64 - before)))
    }

    /// The item of each listed key, under the key as it is listed. The stored key may be written in
    /// another way since it was listed (`1.0` and `1.00`, the letters of a citext): then the
    /// database says which is which. An item counted at the place of another would be left undone.
    async fn by_listed_key(
        &self,
        keys: &[Key],
        items: Vec<Item>,
    ) -> Result<Vec<Option<Item>>, StopReason> {
        let mut items: HashMap<String, Item> =
            items.into_iter().map(|item| (item.key.to_text(), item)).collect();
        let mut found: Vec<Option<Item>> =
            keys.iter().map(|key| items.remove(&key.to_text())).collect();
        for (key, found) in keys.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
            if items.is_empty() {
                break;
            }
            let (scope, row) = (&self.job.scope, vec![key.0.clone()]);
            let stored = self.job.source.distinct(scope, scope.key(), row).await?.pop();
            let item = stored.and_then(|stored| items.remove(&Key(stored).to_text()));
            *found = item.map(|item| Item { key: key.clone(), ..item });
        }
        if let Some(item) = items.into_values().next() {
            let message = format!("the key {} changed while its batch was read", item.key);
            return Err(ConnectorError::Database(Error::new(ErrorClass::Retry, message)).into());
        }
        Ok(found)
    }

    /// Tries held items again whose time has come.
    pub(crate) async fn retry_held(&mut self) -> Result<(), StopReason> {
        let limit = self.job.commit_items();
        let held = self
            .job
            .target
            .deferred(self.lease().chunk, DeferredPage::new(DeferredState::Retry, None, limit))
            .await?;
        let Some(wait) = held.iter().map(|held| held.wait).min() else {
            let message = format!(
                "the ledger of {} does not add up: {:?}",
                self.lease().chunk,
                self.ledger.counts
            );
            return Err(ConnectorError::Unreadable(message).into());
        };
        if wait > Duration::ZERO {
            return Err(StopReason::Wait(wait));
        }
        let due: Vec<DeferredItem> = held.into_iter().filter(|held| held.wait.is_zero()).collect();
        self.try_held(due).await
    }

    /// Reads held items again, works them and commits what comes of it.
    pub(crate) async fn try_held(&mut self, due: Vec<DeferredItem>) -> Result<(), StopReason> {
        let keys: Vec<Key> = due.iter().map(|held| held.key.clone()).collect();
        let key_set = self.of_keys(keys.clone());
        let read = self
            .job
            .source
            .read(&self.job.scope, &key_set, ReadLimits::new(due.len() as u32, BATCH_BYTES))
            .await?;
        let items = self.by_listed_key(&keys, read.items).await?;
        let mut batch = Vec::new();
        let mut gone = Vec::new();
        for (held, item) in due.into_iter().zip(items) {
            match item {
                Some(item) => batch.push(PendingItem::held(item, &held)),
                // Not read for want of room: the next round takes it.
                None if !read.end => {}
                None => gone.push(held.key),
            }
        }
        if !gone.is_empty() {
            // Deleted meanwhile, or moved out of what the job may reach.
            let counts = Counts { skipped: gone.len() as i64, ..Counts::default() };
            let cursor = self.ledger.cursor.clone();
            let commit = Commit {
                cursor,
                effect: Effect::Nothing,
                counts,
                defer: Vec::new(),
                resolve: gone,
            };
            self.commit(commit).await?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.work_batch(batch, BatchOrigin::Deferred).await
    }

    /// Works a batch and commits it. A batch that cannot be worked as it is, is halved, down to
    /// the item that cannot be worked alone; every part is committed as soon as it is done.
    async fn work_batch(
        &mut self,
        batch: Vec<PendingItem>,
        from: BatchOrigin,
    ) -> Result<(), StopReason> {
        let mut parts = vec![(batch, from, 0)];
        while let Some((mut batch, from, halved)) = parts.pop() {
            if halved > 0 && self.is_called_back() {
                return Err(StopReason::HandBack);
            }
            match self.process(&batch, halved).await {
                Ok(outcomes) => self.commit_outcomes(batch, outcomes, from).await?,
                Err(StopReason::Failed(EngineError::Step(StepError::Batch(error)))) => {
                    if batch.len() == 1 {
                        self.commit_outcomes(batch, vec![Outcome::Error(error)], from).await?;
                        continue;
                    }
                    let second = batch.split_off(batch.len() / 2);
                    let first = from.before(&batch);
                    parts.push((second, from, halved + 1));
                    parts.push((batch, first, halved + 1));
                }
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }

    /// Gives a batch to the step, unless the lease is lost first.
    async fn process(
        &self,
        batch: &[PendingItem],
        halved: u32,
    ) -> Result<Vec<Outcome>, StopReason> {
        let Some(step) = self.job.step.clone() else { return Ok(Vec::new()) };
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let item = |tried: &PendingItem| StepItem {
            key: tried.item.key.clone(),
            record: tried.item.record.clone(),
            attempt: tried.attempts + 1,
        };
        let items: Vec<StepItem> = batch.iter().map(item).collect();
        let mut request = StepBatch::new(&self.job.facts, Some(self.lease().chunk), items);
        request.halved = halved;
        let outcomes = tokio::select! {
            outcomes = step.process(request) => outcomes?,
            () = self.pulse().lost() => return Err(StopReason::Lost),
        };
        if outcomes.len() != batch.len() {
            let message = format!("the step answered {} of {} items", outcomes.len(), batch.len());
            return Err(StepError::ChunkFailed(message).into());
        }
        Ok(outcomes)
    }

    /// Commits outcomes. When the database refuses a value, nothing is kept of the attempt and
    /// each half is a commit of its own, down to the item that fails alone.
    pub(crate) async fn commit_outcomes(
        &mut self,
        batch: Vec<PendingItem>,
        mut outcomes: Vec<Outcome>,
        from: BatchOrigin,
    ) -> Result<(), StopReason> {
        let retry = self.job.definition().retry.clone();
        let mut slices = Vec::new();
        slices.push(0..batch.len());
        while let Some(slice) = slices.pop() {
            let last = slice.end == batch.len();
            let worked = batch[slice.clone()].iter().zip(&outcomes[slice.clone()]);
            let chunk = self.lease().chunk;
            let mut commit =
                commit_of(worked, chunk, &retry, matches!(from, BatchOrigin::Deferred));
            commit.cursor = match &from {
                BatchOrigin::Deferred => self.ledger.cursor.clone(),
                BatchOrigin::Cursor(end, missing) if last => {
                    commit.counts.read += missing;
                    commit.counts.skipped += missing;
                    end.clone()
                }
                BatchOrigin::Cursor(..) => batch[slice.end - 1].cursor(),
            };
            match self.commit(commit).await {
                Ok(()) => {}
                Err(error) if error.class() == Some(ErrorClass::Data) && slice.len() > 1 => {
                    let middle = slice.start + slice.len() / 2;
                    slices.push(middle..slice.end);
                    slices.push(slice.start..middle);
                }
                // The item is a dead letter already, and it is the letter that was refused. The cursor
                // stays before it, so that nothing is lost while the chunk fails.
                Err(error)
                    if error.class() == Some(ErrorClass::Data)
                        && slice.len() == 1
                        && matches!(outcomes[slice.start], Outcome::Error(_)) =>
                {
                    let key = &batch[slice.start].item.key;
                    tracing::error!(%chunk, %key, %error, "a failed item could not be set aside");
                    return Err(error.into());
                }
                Err(error) if error.class() == Some(ErrorClass::Data) && slice.len() == 1 => {
                    outcomes[slice.start] = Outcome::Error(ItemError::permanent(error.to_string()));
                    slices.push(slice);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The commit of some items' outcomes; the caller says where the cursor goes.
fn commit_of<'a>(
    worked: impl Iterator<Item = (&'a PendingItem, &'a Outcome)>,
    chunk: ChunkId,
    retry: &RetryPolicy,
    held: bool,
) -> Commit {
    let mut counts = Counts::default();
    let (mut writes, mut hold, mut settle) = (Vec::new(), Vec::new(), Vec::new());
    for (tried, outcome) in worked {
        counts.read += tried.passed;
        counts.skipped += (tried.passed - 1).max(0);
        let key = &tried.item.key;
        match outcome {
            Outcome::Error(error) => hold.push(failed(tried, error, retry, &mut counts)),
            Outcome::Skip => {
                counts.skipped += 1;
                settle.extend(held.then(|| key.clone()));
            }
            Outcome::Done(change) if change.is_empty() => {
                counts.processed += 1;
                settle.extend(held.then(|| key.clone()));
            }
            Outcome::Done(change) => {
                settle.extend(held.then(|| key.clone()));
                writes.push(WriteItem {
                    version: tried.item.version.clone(),
                    change: keep_emitted(change.clone(), chunk, key),
                    key: key.clone(),
                    record: tried.item.record.clone(),
                    attempts: tried.attempts,
                    conflicts: tried.conflicts,
                });
            }
        }
    }
    Commit {
        cursor: Cursor::Start,
        effect: Effect::Write(writes),
        counts,
        defer: hold,
        resolve: settle,
    }
}

/// A failed item is held: for another try while it has attempts left, for good otherwise.
fn failed(
    tried: &PendingItem,
    error: &ItemError,
    retry: &RetryPolicy,
    counts: &mut Counts,
) -> DeferredItem {
    let attempts = tried.attempts + 1;
    let wait = if error.retryable { retry.wait_after(attempts) } else { None };
    let dead = wait.is_none();
    counts.dead += i64::from(dead);
    DeferredItem {
        key: tried.item.key.clone(),
        state: if dead { DeferredState::Dead } else { DeferredState::Retry },
        attempts,
        conflicts: tried.conflicts,
        error: error.message.clone(),
        context: error.context.clone(),
        record: if dead { tried.item.record.to_json() } else { serde_json::Value::Null },
        wait: wait.unwrap_or_default(),
    }
}
