//! *Process*: works messages and returns those that failed.

use crate::batch_tracker::{BatchTracker, Item};
use crate::events::backoff;
use crate::message::Delivery;
use crate::sources::Sources;
use crate::{BatchStats, Message, Result};
use futures::future::join_all;
use futures::{StreamExt, stream};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_connectors::Scope;
use windlass_connectors::dynamodb::{Records, TrackedItem, Written};
use windlass_core::{Change, Config, ItemError, JobId, Key, OnConflict, Outcome, Request};
use windlass_engine::{Step, StepBatch, StepError, StepItem, Steps};

/// Works the records that messages name. It does not matter whether the messages come from Lambda, from a
/// worker's polling or from a test.
pub struct Process {
    sources: Sources,
    steps: Steps,
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
        Process { sources: Sources::new(config), steps }
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
        let (failed, stats) = tracker.end();
        let BatchStats { processed, repeated, skipped, failed: items, conflicts, reads, writes } =
            stats;
        tracing::info!(
            messages = deliveries.len(),
            failed_messages = failed.len(),
            processed,
            repeated,
            skipped,
            failed = items,
            conflicts,
            reads,
            writes,
            late,
            ms = begun.elapsed().as_millis() as u64,
            "batch worked"
        );
        failed
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
                tracker.open(index);
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
struct Group {
    job: JobId,
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
struct Work<'a> {
    group: &'a Group,
    records: Arc<Records>,
    scope: Scope,
    /// `None` for job types that refresh records.
    step: Option<Arc<dyn Step>>,
    tracker: &'a BatchTracker,
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
        let mut found: HashMap<String, TrackedItem> =
            match self.records.read(&self.scope, keys, self.group.job).await {
                Ok(read) => read.into_iter().map(|read| (read.item.key.to_text(), read)).collect(),
                Err(error) => {
                    items.iter().for_each(|item| self.tracker.failed(item, &error.to_string()));
                    return Vec::new();
                }
            };
        let mut open: Vec<(&'i Item, TrackedItem)> = Vec::with_capacity(items.len());
        for item in items {
            match found.remove(&item.text) {
                None => self.tracker.failed(item, "there is no record with this key"),
                Some(read) if read.has_job(self.group.job) => {
                    self.tracker.ended(item, |stats| stats.repeated += 1);
                }
                Some(read) if !read.is_match() => {
                    tracing::info!(key = %item.key, "record skipped: it does not match source.match");
                    self.tracker.ended(item, |stats| stats.skipped += 1);
                }
                Some(read) => open.push((item, read)),
            }
        }
        let outcomes = self.outcomes(&open).await;
        let mut writes = Vec::with_capacity(open.len());
        for ((item, read), outcome) in open.iter().zip(outcomes) {
            writes.push(self.write(item, read, outcome));
        }
        let written: Vec<Written> =
            stream::iter(writes).buffered(CONCURRENT_WRITES).collect().await;
        let written = open.iter().zip(written);
        let conflicts = written.filter(|(_, written)| *written == Written::Conflict);
        conflicts.map(|((item, _), _)| *item).collect()
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

    async fn write(&self, item: &Item, read: &TrackedItem, outcome: Outcome) -> Written {
        let change = match outcome {
            Outcome::Done(change) if !change.emit.is_empty() => {
                let message = "the step emits rows, which need a store";
                self.tracker.failed(item, message);
                return Written::Done;
            }
            Outcome::Done(change) if self.step.is_none() || !change.is_empty() => change,
            Outcome::Done(_) | Outcome::Skip => {
                self.tracker.ended(item, |stats| stats.skipped += 1);
                return Written::Done;
            }
            Outcome::Error(error) => {
                self.tracker.failed(item, &error.message);
                return Written::Done;
            }
        };
        self.tracker.count(|stats| stats.writes += 1);
        match self.records.write(&self.scope, read, &change, self.group.job).await {
            Ok(Written::Done) => self.tracker.ended(item, |stats| stats.processed += 1),
            Ok(Written::Conflict) => {
                self.tracker.count(|stats| stats.conflicts += 1);
                match self.scope.job_type.step.on_conflict {
                    OnConflict::Retry => return Written::Conflict,
                    OnConflict::Skip => self.tracker.ended(item, |stats| stats.skipped += 1),
                    OnConflict::DeadLetter => {
                        self.tracker.failed(item, "another writer changed the record meanwhile");
                    }
                }
            }
            Err(error) => self.tracker.failed(item, &error.to_string()),
        }
        Written::Done
    }
}

fn failure(message: String) -> Outcome {
    Outcome::Error(ItemError::transient(message))
}
