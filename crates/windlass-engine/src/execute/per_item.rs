//! Steps with an outcome per item (`command`, `http`, `handler`): a batch is read, given to the
//! step, and its outcomes are committed together with the ledger row.

use crate::EngineError;
use crate::execute::chunk_runner::{ChunkRunner, StopReason};
use crate::execute::unwritten::{self, Unwritten};
use crate::step::{StepBatch, StepError, StepItem};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use windlass_connectors::{
    Commit, ConnectorError, DeferredItem, DeferredPage, DeferredState, Effect, Item, ReadLimits,
    WriteItem, keep_emitted,
};
use windlass_core::{
    Change, ChunkId, Counts, Cursor, ItemError, Key, KeySet, Keys, Outcome, RetryPolicy,
};
use windlass_drivers::{Error, ErrorClass};

/// About how many bytes of records a batch has at most, so that wide rows do not fill the memory.
pub(super) const MAX_BATCH_BYTES: usize = 8 << 20;

/// An item that is being processed by the step.
pub(crate) struct PendingItem {
    pub(crate) item: Item,
    /// How often it has failed before.
    pub(crate) attempts: u32,
    /// How often its write has met a concurrent write before.
    pub(crate) conflicts: u32,
    /// Its position in a list of keys, from one; none in a key range.
    position: Option<u64>,
    /// How many keys the cursor passes with it: its own, and listed keys without a record.
    passed: i64,
}

/// Where the items of a batch come from. It decides what their commit does to the cursor.
pub(crate) enum BatchOrigin {
    /// The next items after the cursor. The commit moves the cursor to this position, and passes
    /// this many more listed keys.
    Cursor(Cursor, i64),
    /// Deferred items, which the cursor has passed before.
    Deferred,
    /// An item that is an exception of the cursor.
    Exception,
}

impl BatchOrigin {
    /// The origin of the first items of a batch that was split.
    fn of_first(&self, items: &[PendingItem]) -> BatchOrigin {
        match (self, items.last()) {
            (BatchOrigin::Cursor(..), Some(last)) => BatchOrigin::Cursor(last.cursor(), 0),
            (BatchOrigin::Exception, _) => BatchOrigin::Exception,
            _ => BatchOrigin::Deferred,
        }
    }
}

impl PendingItem {
    /// The cursor once everything up to this item is committed.
    fn cursor(&self) -> Cursor {
        self.position.map_or_else(|| Cursor::Key(self.item.key.clone()), Cursor::Index)
    }

    /// An item that was deferred.
    pub(crate) fn deferred(item: Item, deferred: &DeferredItem) -> PendingItem {
        // A suspect item counts an attempt when it starts, and this one has not failed yet.
        let started = u32::from(deferred.state == DeferredState::Suspect);
        let attempts = deferred.attempts.saturating_sub(started);
        PendingItem { item, attempts, conflicts: deferred.conflicts, position: None, passed: 0 }
    }
}

impl ChunkRunner {
    /// Reads the next batch, gives it to the step and commits its outcomes.
    pub(crate) async fn run_batch(&mut self, rest: KeySet) -> Result<(), StopReason> {
        let (batch, from) = self.read_next(rest, self.batch_size).await?;
        if matches!(&from, BatchOrigin::Cursor(end, _) if *end != Cursor::End) {
            // Rows beyond the byte limit were read in vain: ask for fewer next time.
            self.batch_size = (batch.len() as u32).clamp(1, self.batch_size);
        }
        self.work_batch(batch, from).await
    }

    /// Reads at most `limit` items after the cursor.
    pub(crate) async fn read_next(
        &mut self,
        rest: KeySet,
        limit: u32,
    ) -> Result<(Vec<PendingItem>, BatchOrigin), StopReason> {
        match &rest.keys {
            Keys::Range(_) => {
                let limits = ReadLimits::new(limit, MAX_BATCH_BYTES);
                let batch = match self.take_ahead(&rest, limit).await {
                    Some(batch) => batch,
                    None => self.job.source.read(&self.job.scope, &rest, limits).await?,
                };
                let last = batch.items.last().map(|item| Cursor::Key(item.key.clone()));
                let end = if batch.end { Cursor::End } else { last.unwrap_or(Cursor::End) };
                let pending = |item| PendingItem {
                    item,
                    attempts: 0,
                    conflicts: 0,
                    position: None,
                    passed: 1,
                };
                Ok((batch.items.into_iter().map(pending).collect(), BatchOrigin::Cursor(end, 0)))
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
        let done = match self.ledger.cursor.position() {
            Cursor::Index(done) => *done,
            _ => 0,
        };
        let mut take = keys.len().min(limit as usize);
        let items = loop {
            let key_set = self.of_keys(keys[..take].to_vec());
            let batch = self
                .job
                .source
                .read(&self.job.scope, &key_set, ReadLimits::new(take as u32, MAX_BATCH_BYTES))
                .await?;
            if batch.end || take == 1 || batch.items.len() == take {
                break batch.items;
            }
            // The records are wide: read fewer keys at once.
            take = take.div_ceil(2);
        };
        let mut before = 0;
        let mut batch = Vec::with_capacity(items.len());
        for (index, item) in self.by_listed_key(&keys[..take], items).await?.into_iter().enumerate()
        {
            let Some(item) = item else { continue };
            let passed = index as i64 + 1 - before;
            before = index as i64 + 1;
            let position = Some(done + index as u64 + 1);
            batch.push(PendingItem { item, attempts: 0, conflicts: 0, position, passed });
        }
        let end = if take == keys.len() { Cursor::End } else { Cursor::Index(done + take as u64) };
        Ok((batch, BatchOrigin::Cursor(end, take as i64 - before)))
    }

    /// The item of each listed key. The database may spell a stored key differently than the list
    /// (`1.0` and `1.00`, or the case of a citext); then it is asked which key is which. Counting an
    /// item at the position of another one would leave that one undone.
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

    /// Works the deferred items whose wait is over.
    pub(crate) async fn retry_deferred(&mut self) -> Result<(), StopReason> {
        let limit = self.job.commit_items();
        let page = DeferredPage::new(DeferredState::Retry, None, limit);
        let deferred = self.job.target.deferred(self.lease().chunk, page).await?;
        let Some(wait) = deferred.iter().map(|item| item.wait).min() else {
            let message = format!(
                "the ledger of {} is inconsistent: items are deferred by its counts {:?}, but none is stored",
                self.lease().chunk,
                self.ledger.counts
            );
            return Err(ConnectorError::Unreadable(message).into());
        };
        if wait > Duration::ZERO {
            return Err(StopReason::Wait(wait));
        }
        let due: Vec<DeferredItem> =
            deferred.into_iter().filter(|item| item.wait.is_zero()).collect();
        self.work_deferred(due).await
    }

    /// Reads deferred items again, gives them to the step and commits their outcomes.
    pub(crate) async fn work_deferred(&mut self, due: Vec<DeferredItem>) -> Result<(), StopReason> {
        let keys: Vec<Key> = due.iter().map(|item| item.key.clone()).collect();
        let key_set = self.of_keys(keys.clone());
        let read = self
            .job
            .source
            .read(&self.job.scope, &key_set, ReadLimits::new(due.len() as u32, MAX_BATCH_BYTES))
            .await?;
        let items = self.by_listed_key(&keys, read.items).await?;
        let mut batch = Vec::new();
        let mut deleted = Vec::new();
        for (deferred, item) in due.into_iter().zip(items) {
            match item {
                Some(item) => batch.push(PendingItem::deferred(item, &deferred)),
                // Not read because of the byte limit: the next round reads it.
                None if !read.end => {}
                None => deleted.push(deferred.key),
            }
        }
        if !deleted.is_empty() {
            // Deleted since, or no longer within the filters and claims of the job.
            let counts = Counts { skipped: deleted.len() as i64, ..Counts::default() };
            let cursor = self.ledger.cursor.clone();
            let commit = Commit {
                cursor,
                effect: Effect::Nothing,
                counts,
                defer: Vec::new(),
                resolve: deleted,
            };
            self.commit(commit).await?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.work_batch(batch, BatchOrigin::Deferred).await
    }

    /// Reads an item again that is an exception of the cursor, gives it to the step and commits its outcome.
    pub(crate) async fn work_exception(&mut self, key: Key) -> Result<(), StopReason> {
        let key_set = self.of_keys(vec![key.clone()]);
        let limits = ReadLimits::new(1, MAX_BATCH_BYTES);
        let read = self.job.source.read(&self.job.scope, &key_set, limits).await?;
        let keys = [key];
        match self.by_listed_key(&keys, read.items).await?.pop().flatten() {
            Some(item) => {
                let (attempts, conflicts, position) = (0, 0, None);
                let pending = PendingItem { item, attempts, conflicts, position, passed: 1 };
                self.work_batch(vec![pending], BatchOrigin::Exception).await
            }
            None => {
                let commit = unwritten::skip(self.ledger.cursor.clone());
                Ok(self.commit_except(commit, self.exceptions_but(&keys)).await?)
            }
        }
    }

    /// Gives a batch to the step and commits its outcomes. A batch that the step rejects as a whole
    /// is halved until the item that causes it is alone. Each half is committed as soon as it is
    /// done.
    async fn work_batch(
        &mut self,
        batch: Vec<PendingItem>,
        from: BatchOrigin,
    ) -> Result<(), StopReason> {
        let mut batches = vec![(batch, from, 0)];
        while let Some((mut batch, from, halved)) = batches.pop() {
            if halved > 0 && self.must_hand_back() {
                return Err(StopReason::HandBack);
            }
            match self.process(&batch, halved).await {
                Ok(outcomes) if self.ends_with(&from, &outcomes) => {
                    self.commit_outside_of_slot(batch, outcomes, from).await?
                }
                Ok(outcomes) => self.commit_outcomes(batch, outcomes, from).await?,
                Err(StopReason::Failed(EngineError::Step(StepError::Batch(error)))) => {
                    if batch.len() == 1 {
                        self.commit_outcomes(batch, vec![Outcome::Error(error)], from).await?;
                        continue;
                    }
                    let second = batch.split_off(batch.len() / 2);
                    let first = from.of_first(&batch);
                    batches.push((second, from, halved + 1));
                    batches.push((batch, first, halved + 1));
                }
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }

    /// Calls the step, unless the lease is lost first.
    async fn process(
        &self,
        batch: &[PendingItem],
        halved: u32,
    ) -> Result<Vec<Outcome>, StopReason> {
        let Some(step) = self.job.step.clone() else { return Ok(Vec::new()) };
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let item = |pending: &PendingItem| StepItem {
            key: pending.item.key.clone(),
            record: pending.item.record.clone(),
            attempt: pending.attempts + 1,
        };
        let items: Vec<StepItem> = batch.iter().map(item).collect();
        let mut request = StepBatch::new(&self.job.facts, Some(self.lease().chunk), items);
        request.halved = halved;
        let outcomes = tokio::select! {
            outcomes = step.process(request) => outcomes?,
            () = self.lease_state().lost() => return Err(StopReason::LeaseLost),
        };
        if outcomes.len() != batch.len() {
            let message = format!("the step answered {} of {} items", outcomes.len(), batch.len());
            return Err(StepError::ChunkFailed(message).into());
        }
        Ok(outcomes)
    }

    /// Commits outcomes. If the database rejects a value, the commit is rolled back and split in two,
    /// until the item with the value is alone.
    pub(crate) async fn commit_outcomes(
        &mut self,
        batch: Vec<PendingItem>,
        outcomes: Vec<Outcome>,
        from: BatchOrigin,
    ) -> Result<(), StopReason> {
        let retry = self.job.definition().retry.clone();
        let chunk = self.lease().chunk;
        let items = batch.iter().zip(outcomes);
        let mut outcomes: Vec<ItemResult> =
            items.map(|(pending, outcome)| ItemResult::of(outcome, chunk, pending)).collect();
        let mut slices = Vec::new();
        slices.push(0..batch.len());
        while let Some(slice) = slices.pop() {
            let last = slice.end == batch.len();
            let processed = batch[slice.clone()].iter().zip(&outcomes[slice.clone()]);
            let mut commit = commit_of(processed, &retry, matches!(from, BatchOrigin::Deferred));
            let (cursor, missing) = match &from {
                BatchOrigin::Deferred | BatchOrigin::Exception => (self.ledger.cursor.clone(), 0),
                BatchOrigin::Cursor(end, missing) if last => (end.clone(), *missing),
                BatchOrigin::Cursor(..) => (batch[slice.end - 1].cursor(), 0),
            };
            commit.counts.read += missing;
            commit.counts.skipped += missing;
            commit.cursor = cursor.clone();
            let exceptions = match from {
                BatchOrigin::Exception => {
                    let keys: Vec<Key> = batch[slice.clone()]
                        .iter()
                        .map(|pending| pending.item.key.clone())
                        .collect();
                    self.exceptions_but(&keys)
                }
                _ => self.ledger.cursor.exceptions().to_vec(),
            };
            match self.commit_except(commit, exceptions).await {
                Ok(()) => {}
                Err(error) if error.class() == Some(ErrorClass::Data) && slice.len() > 1 => {
                    let middle = slice.start + slice.len() / 2;
                    slices.push(middle..slice.end);
                    slices.push(slice.start..middle);
                }
                // The database rejects the dead letter itself.
                Err(error)
                    if error.class() == Some(ErrorClass::Data)
                        && slice.len() == 1
                        && matches!(outcomes[slice.start], ItemResult::Error(_)) =>
                {
                    let pending = &batch[slice.start];
                    let (key, record) = (&pending.item.key, &pending.item.record.to_json());
                    // The listed keys without a record that the cursor passes with it.
                    let skipped = missing + (pending.passed - 1).max(0);
                    let counts = Counts { read: skipped, skipped, ..Counts::default() };
                    let resolve = match from {
                        BatchOrigin::Deferred => vec![key.clone()],
                        _ => Vec::new(),
                    };
                    let commit = Commit { counts, resolve, ..Commit::new(cursor, Effect::Nothing) };
                    unwritten::pass(self, Unwritten { key, record, error }, commit).await?;
                }
                Err(error) if error.class() == Some(ErrorClass::Data) && slice.len() == 1 => {
                    outcomes[slice.start] =
                        ItemResult::Error(ItemError::permanent(error.to_string()));
                    slices.push(slice);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The outcome of an item as it is committed. A commit that is split uses it again.
enum ItemResult {
    Done,
    Change(Arc<Change>),
    Skip,
    Error(ItemError),
}

impl ItemResult {
    fn of(outcome: Outcome, chunk: ChunkId, pending: &PendingItem) -> ItemResult {
        match outcome {
            Outcome::Done(change) if change.is_empty() => ItemResult::Done,
            Outcome::Done(change) => {
                ItemResult::Change(Arc::new(keep_emitted(change, chunk, &pending.item.key)))
            }
            Outcome::Skip => ItemResult::Skip,
            Outcome::Error(error) => ItemResult::Error(error),
        }
    }
}

/// The commit of outcomes; the caller sets its cursor.
fn commit_of<'a>(
    processed: impl Iterator<Item = (&'a PendingItem, &'a ItemResult)>,
    retry: &RetryPolicy,
    deferred: bool,
) -> Commit {
    let mut counts = Counts::default();
    let (mut writes, mut defer, mut resolve) = (Vec::new(), Vec::new(), Vec::new());
    for (pending, outcome) in processed {
        counts.read += pending.passed;
        counts.skipped += (pending.passed - 1).max(0);
        let key = &pending.item.key;
        match outcome {
            ItemResult::Error(error) => defer.push(failed(pending, error, retry, &mut counts)),
            ItemResult::Skip => {
                counts.skipped += 1;
                resolve.extend(deferred.then(|| key.clone()));
            }
            ItemResult::Done => {
                counts.processed += 1;
                resolve.extend(deferred.then(|| key.clone()));
            }
            ItemResult::Change(change) => {
                resolve.extend(deferred.then(|| key.clone()));
                writes.push(WriteItem {
                    guard: pending.item.guard.clone(),
                    change: change.clone(),
                    key: key.clone(),
                    record: pending.item.record.clone(),
                    attempts: pending.attempts,
                    conflicts: pending.conflicts,
                });
            }
        }
    }
    Commit { cursor: Cursor::Start, effect: Effect::Write(writes), counts, defer, resolve }
}

/// Defers a failed item for another attempt, or makes it a dead letter if none is left.
fn failed(
    pending: &PendingItem,
    error: &ItemError,
    retry: &RetryPolicy,
    counts: &mut Counts,
) -> DeferredItem {
    let attempts = pending.attempts + 1;
    let wait = if error.retryable { retry.wait_after(attempts) } else { None };
    let dead = wait.is_none();
    counts.dead += i64::from(dead);
    DeferredItem {
        key: pending.item.key.clone(),
        state: if dead { DeferredState::Dead } else { DeferredState::Retry },
        attempts,
        conflicts: pending.conflicts,
        error: error.message.clone(),
        context: error.context.clone(),
        record: if dead { pending.item.record.to_json() } else { serde_json::Value::Null },
        wait: wait.unwrap_or_default(),
    }
}
