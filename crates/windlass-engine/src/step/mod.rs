//! The seam between the engine and what is done with records: a batch in, an outcome per item out.
//!
//! Three small implementations: `function.rs` calls a Rust function, `command/` talks to a child
//! process, `http.rs` to a service. The last two speak the JSON of `wire.rs` and give up for a
//! while, by `circuit.rs`, when nothing succeeds any more. `steps.rs` knows them all.

mod circuit_breaker;
mod command;
mod function;
mod http;
mod redact;
mod registry;
mod wire;

pub(crate) use function::FunctionStep;
pub use function::JobDefinition;
pub(crate) use registry::Refusing;
pub use registry::Steps;

use async_trait::async_trait;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;
use uuid::fmt::Simple;
use windlass_core::{ChunkId, ItemError, JobId, JobType, Key, Outcome, Record, Secret};
use windlass_store::JobSnapshot;

/// Works batches of records. What it changes it says; Windlass commits it.
#[async_trait]
pub trait Step: Send + Sync {
    /// One outcome per item, in the order of the items; an item's own failure is an
    /// [`Outcome::Error`]. A batch without items asks whether the step is there.
    async fn process(&self, batch: StepBatch) -> Result<Vec<Outcome>, StepError>;

    /// Ends what the step keeps running and has not used for so long.
    async fn rest(&self, _unused: Duration) {}
}

/// Why there are no outcomes for a batch.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The batch cannot be worked as it is: it is halved until the items that cause it are alone.
    /// Those fail with this error, the others are done.
    #[error("{}", .0.message)]
    Batch(ItemError),
    /// Nothing is wrong with the batch, but it cannot be worked now: the job type is held for so
    /// long, and no item fails.
    #[error("{reason}")]
    Unavailable {
        /// What is away, for people.
        reason: String,
        /// How long to wait before the next try.
        wait: Duration,
    },
    /// There is no room for the batch at this moment: the chunk is handed back for a little while.
    #[error("there was no room for the batch")]
    Saturated,
    /// Somebody must mend something first: the job is paused with this reason.
    #[error("{0}")]
    Fatal(String),
    /// The chunk fails, which counts as one of its attempts.
    #[error("the step failed: {0}")]
    ChunkFailed(String),
}

/// Records to work.
#[derive(Clone, Debug)]
pub struct StepBatch {
    /// What all of them share.
    pub(crate) job: Arc<JobFacts>,
    /// The chunk they are of, for logs; none in a dry run.
    pub(crate) chunk: Option<ChunkId>,
    /// How often it was halved because it could not be worked as a whole.
    pub(crate) halved: u32,
    /// The records.
    pub items: Vec<StepItem>,
}

/// One record to work.
#[derive(Clone, Debug)]
pub struct StepItem {
    /// Its key.
    pub key: Key,
    /// The record.
    pub record: Record,
    /// Which try this is, from one.
    pub attempt: u32,
}

/// What a handler may want to know beside the record.
#[derive(Clone, Debug)]
pub struct ItemContext {
    job: Arc<JobFacts>,
    key: Key,
    attempt: u32,
}

#[derive(Debug)]
pub(crate) struct JobFacts {
    id: JobId,
    /// The job that this one redrives, or itself.
    root: JobId,
    job_type: String,
    params: BTreeMap<String, Json>,
    pub(crate) dry_run: bool,
    /// The submitter's own token, where the step forwards it.
    token: Option<Secret>,
}

impl JobFacts {
    /// What the items of a job share.
    pub(crate) fn new(job: &JobSnapshot, token: Option<Secret>, dry_run: bool) -> JobFacts {
        JobFacts {
            id: job.id,
            root: job.root,
            job_type: job.definition.name.clone(),
            params: job.request.params.clone(),
            dry_run,
            token,
        }
    }

    /// The same for an item over retries, crashes and redrives, different for all others.
    fn idempotency_key(&self, item: &Key) -> Simple {
        let mut hash = Sha256::new();
        hash.update(self.root.as_bytes());
        item.write_text(&mut hash);
        short(hash)
    }
}

/// Half of a hash, which is unlike any other all the same.
fn short(hash: Sha256) -> Simple {
    Uuid::from_slice(&hash.finalize()[..16]).unwrap_or_default().simple()
}

/// No half of a batch gets less than this share of the time.
const MOST_HALVINGS_OF_TIME: u32 = 4;

impl StepBatch {
    /// A batch of a chunk; of none in a dry run.
    pub(crate) fn new(
        job: &Arc<JobFacts>,
        chunk: Option<ChunkId>,
        items: Vec<StepItem>,
    ) -> StepBatch {
        StepBatch { job: job.clone(), chunk, halved: 0, items }
    }

    /// A batch of a job that has no store: its id, its type and its params are all there is of it.
    pub fn without_store(
        id: JobId,
        job_type: &JobType,
        params: BTreeMap<String, Json>,
        items: Vec<StepItem>,
    ) -> StepBatch {
        let job_type = job_type.name.clone();
        let facts = JobFacts { id, root: id, job_type, params, dry_run: false, token: None };
        StepBatch::new(&Arc::new(facts), None, items)
    }

    /// Its second half, which is taken away from it: what could not be worked as a whole is worked
    /// in parts.
    pub fn halve(&mut self) -> StepBatch {
        let items = self.items.split_off(self.items.len() / 2);
        self.halved += 1;
        StepBatch { job: self.job.clone(), chunk: self.chunk, halved: self.halved, items }
    }

    /// The empty batch that asks whether a step is there, before there is a job.
    pub(crate) fn question(job_type: &JobType, token: Option<Secret>) -> StepBatch {
        let facts = JobFacts {
            id: JobId::nil(),
            root: JobId::nil(),
            job_type: job_type.name.clone(),
            params: BTreeMap::new(),
            dry_run: true,
            token,
        };
        StepBatch { job: Arc::new(facts), chunk: None, halved: 0, items: Vec::new() }
    }

    /// The same without items.
    fn empty(&self) -> StepBatch {
        StepBatch { job: self.job.clone(), chunk: self.chunk, halved: 0, items: Vec::new() }
    }

    /// The time it has, of the time for a whole batch. The parts of a batch that failed get less, so
    /// that one that hangs is taken apart within the claim of its chunk. An item alone gets all of
    /// it: it may not die of that.
    fn time(&self, whole: Duration) -> Duration {
        match self.items.len() {
            0 | 1 => whole,
            _ => whole / (1 << self.halved.min(MOST_HALVINGS_OF_TIME)),
        }
    }

    /// The same whenever the very same is asked for the same job: a batch that is sent again, after
    /// a crash too, but not an item's next attempt or a record that was changed meanwhile.
    fn idempotency_key(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.job.root.as_bytes());
        for item in &self.items {
            item.key.write_text(&mut hash);
            hash.update(item.attempt.to_le_bytes());
            // A record is made of plain values, which can always be written.
            let _ = serde_json::to_writer(&mut hash, &item.record);
        }
        short(hash).to_string()
    }

    /// The context of one of the items.
    pub fn context(&self, item: &StepItem) -> ItemContext {
        ItemContext { job: self.job.clone(), key: item.key.clone(), attempt: item.attempt }
    }
}

impl ItemContext {
    /// The job.
    pub fn job_id(&self) -> JobId {
        self.job.id
    }

    /// Its type.
    pub fn job_type(&self) -> &str {
        &self.job.job_type
    }

    /// The item's key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// A param of the request.
    pub fn param(&self, name: &str) -> Option<&Json> {
        self.job.params.get(name)
    }

    /// Which try this is, from one.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether nothing will be written: leave side effects out.
    pub fn dry_run(&self) -> bool {
        self.job.dry_run
    }

    /// The same for this item over retries, crashes and redrives of the same job, and different
    /// for every other: give it to services that must act once.
    pub fn idempotency_key(&self) -> String {
        self.job.idempotency_key(&self.key).to_string()
    }
}
