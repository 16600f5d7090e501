//! *Process*: messages in, and out which of them failed.

use crate::batch_tracker::{BatchTracker, Item};
use crate::events::rest;
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

/// Works the records that messages name. The same for every message it is given: whether it
/// comes from Lambda, from a worker's own polling or from a test makes no difference.
pub struct Process {
    sources: Sources,
    steps: Steps,
}

/// Items of a stretch: as many as one call reads.
const AT_ONCE: usize = 100;
/// Stretches of a job that are worked at once, and writes of a stretch.
const STRETCHES: usize = 4;
const WRITES: usize = 16;
/// How often a record that others keep changing is read and worked in one delivery.
const MOST_ROUNDS: u32 = 5;

impl Process {
    /// Works by this configuration, with these steps.
    pub fn new(config: Config, steps: Steps) -> Process {
        Process { sources: Sources::new(config), steps }
    }

    /// Works some messages until then, and gives the ids of those that failed or were not done in
    /// time: they come back.
    pub async fn work(&self, deliveries: &[Delivery], until: Instant) -> Vec<String> {
        let begun = Instant::now();
        let board = BatchTracker::new(deliveries);
        let groups = self.groups(deliveries, &board);
        let mut work = Vec::with_capacity(groups.len());
        for group in &groups {
            work.push(self.work_group(group, &board));
        }
        let work = join_all(work);
        let late = tokio::time::timeout_at(until.into(), work).await.is_err();
        let (failed, tally) = board.end();
        let BatchStats { processed, repeated, skipped, failed: items, conflicts, reads, writes } =
            tally;
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
            "worked"
        );
        failed
    }

    /// Ends what steps keep running.
    pub async fn rest(&self) {
        self.steps.rest(Duration::ZERO).await;
    }

    /// The items of some messages, by what is done to them. One that several messages name is one.
    fn groups(&self, deliveries: &[Delivery], board: &BatchTracker) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (place, delivery) in deliveries.iter().enumerate() {
            let read = Message::read(&delivery.body, &self.sources.config)
                .and_then(|message| Ok((message, delivery.params()?)));
            let (message, params) = match read {
                Ok(read) => read,
                Err(problem) => {
                    board.refused(place, &problem);
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
                board.open(place);
                groups[at].add(key, delivery.receives, place);
            }
        }
        groups
    }

    /// Works a group; where that cannot even begin, all of it fails.
    async fn work_group(&self, group: &Group, board: &BatchTracker) {
        let work = match self.prepare(group, board).await {
            Ok(work) => work,
            Err(error) => {
                group.items.iter().for_each(|item| board.failed(item, &error.to_string()));
                return;
            }
        };
        let mut stretches = Vec::new();
        for items in group.items.chunks(AT_ONCE) {
            stretches.push(work.items(items));
        }
        stream::iter(stretches).buffer_unordered(STRETCHES).collect::<Vec<()>>().await;
    }

    async fn prepare<'a>(&self, group: &'a Group, board: &'a BatchTracker) -> Result<Work<'a>> {
        let params = group.params.clone();
        let request = Request { params, ..Request::new(&group.job_type) };
        let (records, scope) = self.sources.scope(&request).await?;
        let step = self.steps.of(&scope.job_type, &self.sources.config)?;
        Ok(Work { group, records, scope, step, board })
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

/// What the items of a group have in common.
struct Work<'a> {
    group: &'a Group,
    records: Arc<Records>,
    scope: Scope,
    /// None where records are refreshed.
    step: Option<Arc<dyn Step>>,
    board: &'a BatchTracker,
}

impl Work<'_> {
    /// Works some items to their end: those that meet another writer are read and worked again.
    async fn items(&self, items: &[Item]) {
        let mut left: Vec<&Item> = items.iter().collect();
        for round in 0..MOST_ROUNDS {
            if round > 0 {
                tokio::time::sleep(rest(round) / 8).await;
            }
            left = self.round(&left).await;
            if left.is_empty() {
                return;
            }
        }
        for item in left {
            self.board.failed(item, "other writers keep changing the record");
        }
    }

    /// Reads, works and writes some items, and gives those that met another writer.
    async fn round<'i>(&self, items: &[&'i Item]) -> Vec<&'i Item> {
        let keys: Vec<Key> = items.iter().map(|item| item.key.clone()).collect();
        self.board.count(|tally| tally.reads += keys.len() as u64);
        let mut found: HashMap<String, TrackedItem> =
            match self.records.read(&self.scope, keys).await {
                Ok(read) => read.into_iter().map(|read| (read.item.key.to_text(), read)).collect(),
                Err(error) => {
                    items.iter().for_each(|item| self.board.failed(item, &error.to_string()));
                    return Vec::new();
                }
            };
        let mut open: Vec<(&'i Item, TrackedItem)> = Vec::with_capacity(items.len());
        for item in items {
            match found.remove(&item.text) {
                None => self.board.failed(item, "there is no record with this key"),
                Some(read) if read.has_job(self.group.job) => {
                    self.board.ended(item, |tally| tally.repeated += 1);
                }
                Some(read) => open.push((item, read)),
            }
        }
        let outcomes = self.outcomes(&open).await;
        let mut writes = Vec::with_capacity(open.len());
        for ((item, read), outcome) in open.iter().zip(outcomes) {
            writes.push(self.write(item, read, outcome));
        }
        let written: Vec<Written> = stream::iter(writes).buffered(WRITES).collect().await;
        let written = open.iter().zip(written);
        let conflicts = written.filter(|(_, written)| *written == Written::Conflict);
        conflicts.map(|((item, _), _)| *item).collect()
    }

    /// The outcome of each item. A batch that cannot be worked as it is, is halved, down to the item
    /// that cannot be worked alone.
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
                    let message = format!("the step answered {} of {count} items", some.len());
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
                self.board.failed(item, message);
                return Written::Done;
            }
            Outcome::Done(change) if self.step.is_none() || !change.is_empty() => change,
            Outcome::Done(_) | Outcome::Skip => {
                self.board.ended(item, |tally| tally.skipped += 1);
                return Written::Done;
            }
            Outcome::Error(error) => {
                self.board.failed(item, &error.message);
                return Written::Done;
            }
        };
        self.board.count(|tally| tally.writes += 1);
        match self.records.write(&self.scope, read, &change, self.group.job).await {
            Ok(Written::Done) => self.board.ended(item, |tally| tally.processed += 1),
            Ok(Written::Conflict) => {
                self.board.count(|tally| tally.conflicts += 1);
                match self.scope.job_type.step.on_conflict {
                    OnConflict::Retry => return Written::Conflict,
                    OnConflict::Skip => self.board.ended(item, |tally| tally.skipped += 1),
                    OnConflict::DeadLetter => {
                        self.board.failed(item, "another writer changed the record meanwhile");
                    }
                }
            }
            Err(error) => self.board.failed(item, &error.to_string()),
        }
        Written::Done
    }
}

fn failure(message: String) -> Outcome {
    Outcome::Error(ItemError::transient(message))
}
