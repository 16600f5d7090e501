//! *Process*: works messages and returns those that failed.

use crate::batch_tracker::{BatchTracker, Item};
use crate::events::backoff;
use crate::message::Delivery;
use crate::sources::Sources;
use crate::{BatchStats, DeadLetterQueue, Events, Message, Result};
use futures::future::join_all;
use futures::{StreamExt, stream};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_connectors::Scope;
use windlass_connectors::dynamodb::{ItemOutcome, KnownOutcomes, Records, TrackedItem, Written};
use windlass_core::{Change, Config, ItemError, JobId, Key, OnConflict, Outcome, Request};
use windlass_engine::{Step, StepBatch, StepError, StepItem, Steps};

/// Works the records that messages name. It does not matter whether the messages come from Lambda, from a
/// worker's polling or from a test.
pub struct Process {
    pub(crate) sources: Sources,
    steps: Steps,
    dead_letters: Option<DeadLetterQueue>,
    pub(crate) events: Option<Events>,
}

/// Items per batch: as many as one request reads.
const BATCH_ITEMS: usize = 100;
/// Batches of a job that are worked concurrently, and concurrent writes of a batch.
const CONCURRENT_BATCHES: usize = 4;
const CONCURRENT_WRITES: usize = 16;
/// How often a record is read and worked in one delivery while other writers keep changing it.
const MAX_ROUNDS: u32 = 5;

impl Process {
    /// A processor for the job types of this configuration, with these steps.
    pub fn new(config: Config, steps: Steps) -> Process {
        Process { sources: Sources::new(config), steps, dead_letters: None, events: None }
    }

    /// Sends the items of messages that failed in their last delivery to this queue, with their errors.
    pub fn with_dead_letters(self, queue: DeadLetterQueue) -> Process {
        Process { dead_letters: Some(queue), ..self }
    }

    /// Announces the end of jobs with events.
    pub fn with_events(self, events: Events) -> Process {
        Process { events: Some(events), ..self }
    }

    /// Works messages until a time. Returns the ids of those that failed or are incomplete, which the queue
    /// delivers again.
    pub async fn work(&self, deliveries: &[Delivery], until: Instant) -> Vec<String> {
        let begun = Instant::now();
        let tracker = BatchTracker::new(deliveries);
        let groups = self.groups(deliveries, &tracker);
        let mut work = Vec::with_capacity(groups.len());
        for group in &groups {
            work.push(self.work_group(group, &tracker));
        }
        let work = join_all(work);
        let late = tokio::time::timeout_at(until.into(), work).await.is_err();
        let mut failed = tracker.failures();
        if let Some(queue) = &self.dead_letters {
            failed = queue.take(self, deliveries, failed, &tracker).await;
        }
        let stats = tracker.stats();
        let BatchStats { processed, repeated, skipped, failed: items, dead, .. } = stats;
        let BatchStats { conflicts, reads, writes, .. } = stats;
        tracing::info!(
            messages = deliveries.len(),
            failed_messages = failed.len(),
            processed,
            repeated,
            skipped,
            failed = items,
            dead,
            conflicts,
            reads,
            writes,
            late,
            ms = begun.elapsed().as_millis() as u64,
            "batch worked"
        );
        failed.into_iter().map(|message| deliveries[message.index].id.clone()).collect()
    }

    /// Stops the child processes and connections of idle steps.
    pub async fn close_idle(&self) {
        self.steps.close_idle(Duration::ZERO).await;
    }

    /// Groups the items of the messages by job. An item that several messages name is worked once.
    fn groups(&self, deliveries: &[Delivery], tracker: &BatchTracker) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (index, delivery) in deliveries.iter().enumerate() {
            let read = Message::read(&delivery.body, &self.sources.config)
                .and_then(|message| Ok((message, delivery.params()?)));
            let (message, params) = match read {
                Ok(read) => read,
                Err(problem) => {
                    tracker.refused(index, &problem);
                    continue;
                }
            };
            let job = delivery.job();
            let known = groups.iter().position(|group| {
                group.job == job && group.job_type == message.job_type && group.params == params
            });
            let at = known.unwrap_or_else(|| {
                let job_type = message.job_type.clone();
                groups.push(Group { job, job_type, params, items: Vec::new() });
                groups.len() - 1
            });
            for key in message.keys {
                tracker.open(index, &key);
                groups[at].add(key, delivery.receives, index);
            }
        }
        groups
    }

    /// Works a group. If its job type cannot be prepared, all its items fail.
    async fn work_group(&self, group: &Group, tracker: &BatchTracker) {
        let work = match self.prepare(group, tracker).await {
            Ok(work) => work,
            Err(error) => {
                group.items.iter().for_each(|item| tracker.failed(item, &error.to_string()));
                return;
            }
        };
        let mut batches = Vec::new();
        for items in group.items.chunks(BATCH_ITEMS) {
            batches.push(work.items(items));
        }
        stream::iter(batches).buffer_unordered(CONCURRENT_BATCHES).collect::<Vec<()>>().await;
        if let Err(error) = work.complete(self.events.as_ref()).await {
            tracing::error!(job = %group.job, %error, "failed to end the job; its messages are delivered again");
            let messages = group.items.iter().flat_map(|item| &item.messages);
            messages.for_each(|message| tracker.repeat(*message));
        }
    }

    async fn prepare<'a>(&self, group: &'a Group, tracker: &'a BatchTracker) -> Result<Work<'a>> {
        let params = group.params.clone();
        let request = Request { params, ..Request::new(&group.job_type) };
        let (records, scope) = self.sources.scope(&request).await?;
        let step = self.steps.of(&scope.job_type, &self.sources.config)?;
        Ok(Work { group, records, scope, step, tracker })
    }
}

/// Items of one job.
pub(crate) struct Group {
    pub(crate) job: JobId,
    job_type: String,
    params: BTreeMap<String, serde_json::Value>,
    items: Vec<Item>,
}

impl Group {
    fn add(&mut self, key: Key, attempt: u32, message: usize) {
        let text = key.to_text();
        match self.items.iter_mut().find(|item| item.text == text) {
            Some(item) => item.messages.push(message),
            None => self.items.push(Item { key, text, attempt, messages: vec![message] }),
        }
    }
}

/// The shared state of a group's items.
pub(crate) struct Work<'a> {
    pub(crate) group: &'a Group,
    pub(crate) records: Arc<Records>,
    pub(crate) scope: Scope,
    /// `None` for job types that refresh records.
    step: Option<Arc<dyn Step>>,
    pub(crate) tracker: &'a BatchTracker,
}

impl Work<'_> {
    /// Works items to their end. Those that conflict with another writer are read and worked again.
    async fn items(&self, items: &[Item]) {
        let mut left: Vec<&Item> = items.iter().collect();
        for round in 0..MAX_ROUNDS {
            if round > 0 {
                tokio::time::sleep(backoff(round) / 8).await;
            }
            left = self.round(&left).await;
            if left.is_empty() {
                return;
            }
        }
        for item in left {
            self.tracker.failed(item, "other writers keep changing the record");
        }
    }

    /// Reads, works and writes items. Returns those that conflicted with another writer.
    async fn round<'i>(&self, items: &[&'i Item]) -> Vec<&'i Item> {
        let keys: Vec<Key> = items.iter().map(|item| item.key.clone()).collect();
        self.tracker.count(|stats| stats.reads += keys.len() as u64);
        let read = match self.read(keys).await {
            Ok(read) => read,
            Err(error) => {
                items.iter().for_each(|item| self.tracker.failed(item, &error.to_string()));
                return Vec::new();
            }
        };
        let (mut found, known) = read;
        let mut open: Vec<(&'i Item, TrackedItem)> = Vec::with_capacity(items.len());
        let mut unmatched: Vec<(&'i Item, TrackedItem)> = Vec::new();
        for item in items {
            let outcome = known.as_ref().and_then(|known| known.of(&item.key));
            let has_ended = outcome.is_some_and(|outcome| outcome != ItemOutcome::Dead);
            match found.remove(&item.text) {
                Some(read) if !has_ended && !read.has_job(self.group.job) => {
                    if read.is_match() {
                        open.push((item, read));
                    } else {
                        tracing::info!(key = %item.key, "record skipped: it does not match source.match");
                        unmatched.push((item, read));
                    }
                }
                None if !has_ended => self.tracker.failed(item, "there is no record with this key"),
                _ => self.tracker.ended(item, |stats| stats.repeated += 1),
            }
        }
        let outcomes = self.outcomes(&open).await;
        let mut decided: Vec<Decided<'i, '_>> = Vec::with_capacity(items.len());
        for (item, read) in &unmatched {
            decided.push(Decided { item, read, change: None });
        }
        for ((item, read), outcome) in open.iter().zip(outcomes) {
            match self.decide(outcome) {
                Decision::Fail(error) => self.tracker.failed(item, &error),
                Decision::Write(change) => {
                    decided.push(Decided { item, read, change: Some(change) })
                }
                Decision::Skip => decided.push(Decided { item, read, change: None }),
            }
        }
        match known {
            Some(known) => self.write_counted(decided, known).await,
            None => self.write_all(decided).await,
        }
    }

    /// The records with these keys, and which of them have ended otherwise if the job is counted.
    async fn read(
        &self,
        keys: Vec<Key>,
    ) -> windlass_connectors::Result<(HashMap<String, TrackedItem>, Option<KnownOutcomes>)> {
        let known = match self.scope.job_type.queue.progress {
            true => self.records.known_outcomes(self.group.job, &keys).await?,
            false => None,
        };
        let read = self.records.read(&self.scope, keys, self.group.job).await?.into_iter();
        Ok((read.map(|read| (read.item.key.to_text(), read)).collect(), known))
    }

    /// Writes each record by itself. Returns the items that conflicted.
    async fn write_all<'i>(&self, decided: Vec<Decided<'i, '_>>) -> Vec<&'i Item> {
        let writes = decided.iter().map(|one| self.write(one)).collect::<Vec<_>>();
        let written: Vec<Written> =
            stream::iter(writes).buffered(CONCURRENT_WRITES).collect().await;
        let written = decided.iter().zip(written);
        let conflicts = written.filter(|(_, written)| *written == Written::Conflict);
        conflicts.map(|(one, _)| one.item).collect()
    }

    /// The outcome of each item. If a batch fails as a whole, it is halved until the failing item is
    /// alone.
    async fn outcomes(&self, open: &[(&Item, TrackedItem)]) -> Vec<Outcome> {
        let Some(step) = &self.step else {
            return open.iter().map(|_| Outcome::Done(Change::default())).collect();
        };
        if open.is_empty() {
            return Vec::new();
        }
        let item = |(item, read): &(&Item, TrackedItem)| StepItem {
            key: item.key.clone(),
            record: read.item.record.clone(),
            attempt: item.attempt,
        };
        let items = open.iter().map(item).collect();
        let params = self.group.params.clone();
        let batch = StepBatch::without_store(self.group.job, &self.scope.job_type, params, items);
        let mut outcomes = Vec::with_capacity(open.len());
        let mut parts = vec![batch];
        while let Some(mut batch) = parts.pop() {
            let count = batch.items.len();
            match step.process(batch.clone()).await {
                Ok(some) if some.len() == count => outcomes.extend(some),
                Ok(some) => {
                    let message =
                        format!("the step returned {} results for {count} items", some.len());
                    outcomes.extend(vec![failure(message); count]);
                }
                Err(StepError::Batch(_)) if count > 1 => {
                    let second = batch.halve();
                    parts.push(second);
                    parts.push(batch);
                }
                Err(StepError::Batch(error)) => outcomes.push(Outcome::Error(error)),
                Err(error) => outcomes.extend(vec![failure(error.to_string()); count]),
            }
        }
        outcomes
    }

    /// What to do with the outcome of a step.
    fn decide(&self, outcome: Outcome) -> Decision {
        match outcome {
            Outcome::Done(change) if !change.emit.is_empty() => {
                Decision::Fail("the step emits rows, which need a store".to_owned())
            }
            Outcome::Done(change) if self.step.is_none() || !change.is_empty() => {
                Decision::Write(change)
            }
            Outcome::Done(_) | Outcome::Skip => Decision::Skip,
            Outcome::Error(error) => Decision::Fail(error.message),
        }
    }

    async fn write(&self, one: &Decided<'_, '_>) -> Written {
        let Some(change) = &one.change else {
            self.tracker.ended(one.item, |stats| stats.skipped += 1);
            return Written::Done;
        };
        self.tracker.count(|stats| stats.writes += 1);
        let written = self.records.write(&self.scope, one.read, change, self.group.job).await;
        self.written(one, written)
    }

    /// Marks the result of a write. A conflict is returned if the item is to be worked again.
    pub(crate) fn written(
        &self,
        one: &Decided<'_, '_>,
        written: windlass_connectors::Result<Written>,
    ) -> Written {
        match (written, &one.change) {
            (Ok(Written::Done), Some(_)) => {
                self.tracker.ended(one.item, |stats| stats.processed += 1);
            }
            (Ok(Written::Done), None) => self.tracker.ended(one.item, |stats| stats.skipped += 1),
            (Ok(Written::Conflict), Some(_)) => {
                self.tracker.count(|stats| stats.conflicts += 1);
                match self.scope.job_type.step.on_conflict {
                    OnConflict::Retry => return Written::Conflict,
                    OnConflict::Skip => self.tracker.ended(one.item, |stats| stats.skipped += 1),
                    OnConflict::DeadLetter => {
                        let error = "another writer changed the record meanwhile";
                        self.tracker.failed(one.item, error);
                    }
                }
            }
            // Another delivery of the item ended first.
            (Ok(Written::Conflict), None) => return Written::Conflict,
            (Err(error), _) => self.tracker.failed(one.item, &error.to_string()),
        }
        Written::Done
    }
}

/// What to do with an item.
enum Decision {
    Write(Change),
    Skip,
    Fail(String),
}

/// An item to end: with a change, or skipped without one.
pub(crate) struct Decided<'i, 'r> {
    pub(crate) item: &'i Item,
    pub(crate) read: &'r TrackedItem,
    pub(crate) change: Option<Change>,
}

fn failure(message: String) -> Outcome {
    Outcome::Error(ItemError::transient(message))
}
