//! *Process*: messages in, and out which of them failed.

use crate::board::{Board, Item};
use crate::effect::{AT_ONCE, Effect, Found, Written};
use crate::events::rest;
use crate::message::Delivery;
use crate::tables::{Tables, table_of};
use crate::{Message, Result, Tally};
use futures::{StreamExt, stream};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_core::{
    Change, Config, ItemError, JobId, JobType, Key, OnConflict, Outcome, StepKind,
};
use windlass_db::dynamodb::sdk::Client;
use windlass_engine::{Step, StepBatch, StepError, StepItem, Steps};

/// Works the records that messages name. The same for every message it is given: whether it
/// comes from Lambda, from a worker's own polling or from a test makes no difference.
pub struct Process {
    config: Config,
    steps: Steps,
    tables: Tables,
}

/// Stretches of a job that are worked at once, and writes of a stretch.
const STRETCHES: usize = 4;
const WRITES: usize = 16;
/// How often a record that others keep changing is read and worked in one delivery.
const MOST_ROUNDS: u32 = 5;

impl Process {
    /// Works by this configuration, with these steps.
    pub fn new(config: Config, steps: Steps) -> Process {
        Process { config, steps, tables: Tables::default() }
    }

    /// Works some messages until then, and gives the ids of those that failed or were not done in
    /// time: they come back.
    pub async fn work(&self, deliveries: &[Delivery], until: Instant) -> Vec<String> {
        let begun = Instant::now();
        let board = Board::new(deliveries);
        let groups = self.groups(deliveries, &board);
        let work = stream::iter(&groups).for_each_concurrent(None, |group| async {
            if let Err(error) = self.work_group(group, &board).await {
                for item in &group.items {
                    board.failed(item, &error.to_string());
                }
            }
        });
        let late = tokio::time::timeout_at(until.into(), work).await.is_err();
        let (failed, tally) = board.end();
        let Tally { processed, repeated, skipped, failed: items, conflicts, reads, writes } = tally;
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
    fn groups(&self, deliveries: &[Delivery], board: &Board) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (place, delivery) in deliveries.iter().enumerate() {
            let read = Message::read(&delivery.body, &self.config)
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

    async fn work_group(&self, group: &Group, board: &Board) -> Result<()> {
        let job_type = self.config.job_type(&group.job_type)?;
        let job_type = self.tables.resolved(&self.config, job_type).await?;
        let step = self.steps.of(&job_type, &self.config)?;
        if step.is_none() && job_type.step.kind != StepKind::Refresh {
            let detail = "is not worked item by item, and so needs a store";
            return Err(job_type.problem(job_type.step.kind.field(), detail).into());
        }
        let client = self.tables.client(&self.config, &job_type).await?;
        let work =
            Work { group, client, table: table_of(&job_type)?, job_type: &job_type, step, board };
        let stretches = group.items.chunks(AT_ONCE);
        stream::iter(stretches).for_each_concurrent(STRETCHES, |items| work.items(items)).await;
        Ok(())
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
    client: Client,
    table: &'a str,
    job_type: &'a JobType,
    /// None where records are refreshed.
    step: Option<Arc<dyn Step>>,
    board: &'a Board,
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
        let effect = Effect {
            client: &self.client,
            table: self.table,
            job_type: self.job_type,
            job: self.group.job,
        };
        let keys: Vec<Key> = items.iter().map(|item| item.key.clone()).collect();
        self.board.count(|tally| tally.reads += keys.len() as u64);
        let mut found = match effect.read(&keys).await {
            Ok(found) => found,
            Err(error) => {
                items.iter().for_each(|item| self.board.failed(item, &error.to_string()));
                return Vec::new();
            }
        };
        let mut open: Vec<(&'i Item, Found)> = Vec::with_capacity(items.len());
        for item in items {
            match found.remove(&item.text) {
                None => self.board.failed(item, "there is no record with this key"),
                Some(found) if found.remembers(self.group.job) => {
                    self.board.ended(item, |tally| tally.repeated += 1);
                }
                Some(found) => open.push((item, found)),
            }
        }
        let outcomes = self.outcomes(&open).await;
        let mut writes = Vec::with_capacity(open.len());
        for ((item, found), outcome) in open.iter().zip(outcomes) {
            writes.push(self.write(&effect, item, found, outcome));
        }
        let written: Vec<Written> = stream::iter(writes).buffered(WRITES).collect().await;
        let written = open.iter().zip(written);
        let conflicts = written.filter(|(_, written)| *written == Written::Conflict);
        conflicts.map(|((item, _), _)| *item).collect()
    }

    /// The outcome of each item. A batch that cannot be worked as it is, is halved, down to the item
    /// that cannot be worked alone.
    async fn outcomes(&self, open: &[(&Item, Found)]) -> Vec<Outcome> {
        let Some(step) = &self.step else {
            return open.iter().map(|_| Outcome::Done(Change::default())).collect();
        };
        if open.is_empty() {
            return Vec::new();
        }
        let item = |(item, found): &(&Item, Found)| StepItem {
            key: item.key.clone(),
            record: found.record(),
            attempt: item.attempt,
        };
        let items = open.iter().map(item).collect();
        let params = self.group.params.clone();
        let batch = StepBatch::without_store(self.group.job, self.job_type, params, items);
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

    async fn write(
        &self,
        effect: &Effect<'_>,
        item: &Item,
        found: &Found,
        outcome: Outcome,
    ) -> Written {
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
        match effect.write(&item.key, found, &change).await {
            Ok(Written::Done) => self.board.ended(item, |tally| tally.processed += 1),
            Ok(Written::Conflict) => {
                self.board.count(|tally| tally.conflicts += 1);
                match self.job_type.step.on_conflict {
                    OnConflict::Retry => return Written::Conflict,
                    OnConflict::Skip => self.board.ended(item, |tally| tally.skipped += 1),
                    OnConflict::DeadLetter => {
                        self.board.failed(item, "another writer changed the record meanwhile");
                    }
                }
            }
            Err(message) => self.board.failed(item, &message),
        }
        Written::Done
    }
}

fn failure(message: String) -> Outcome {
    Outcome::Error(ItemError::transient(message))
}
