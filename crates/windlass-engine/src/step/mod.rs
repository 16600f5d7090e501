//! Steps: the user's code that turns a batch of records into one outcome per item.
//!
//! There are three implementations: `function.rs` calls a Rust function, `command/` talks to a child
//! process, `http.rs` to an HTTP endpoint. The last two use the JSON of `wire.rs`, and stop for a while
//! when nothing succeeds (`circuit_breaker.rs`). `registry.rs` finds the step of a job type.

mod answer;
mod circuit_breaker;
mod command;
mod function;
mod http;
mod redact;
mod registry;
mod wire;

pub(crate) use function::FunctionStep;
pub use function::JobDefinition;
pub(crate) use registry::FailingStep;
pub use registry::Steps;

use async_trait::async_trait;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use uuid::Uuid;
use uuid::fmt::Simple;
use windlass_core::{ChunkId, ItemError, JobId, JobType, Key, Outcome, Record, Secret};
use windlass_store::JobSnapshot;

/// Processes batches of records. It returns the changes, and Windlass commits them.
///
/// ```
/// use async_trait::async_trait;
/// use windlass_core::Outcome;
/// use windlass_engine::{Step, StepBatch, StepError};
///
/// /// Skips every item.
/// struct SkipAll;
///
/// #[async_trait]
/// impl Step for SkipAll {
///     async fn process(&self, batch: StepBatch) -> Result<Vec<Outcome>, StepError> {
///         Ok(batch.items.iter().map(|_| Outcome::Skip).collect())
///     }
/// }
/// ```
#[async_trait]
pub trait Step: Send + Sync {
    /// Returns one outcome per item, in the order of the items. If a single item fails, its outcome is
    /// an [`Outcome::Error`]. An empty batch checks that the step is available.
    async fn process(&self, batch: StepBatch) -> Result<Vec<Outcome>, StepError>;

    /// Closes what the step keeps open, such as child processes, if unused for `idle_for` or longer.
    async fn close_idle(&self, _idle_for: Duration) {}
}

/// Why a batch has no outcomes.
///
/// ```
/// use std::time::Duration;
/// use windlass_engine::StepError;
///
/// let down = StepError::Unavailable { reason: "the service is down".into(), wait: Duration::from_secs(5) };
/// assert_eq!(down.to_string(), "the service is down");
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The batch failed, perhaps because of some of its items. The engine halves it until those items
    /// are alone. They fail with this error; the rest of the batch is processed.
    #[error("{}", .0.message)]
    Batch(ItemError),
    /// The command or endpoint is unavailable. The job type is suspended for `wait`, and no item fails.
    #[error("{reason}")]
    Unavailable {
        /// What is unavailable, and why.
        reason: String,
        /// How long to wait before the next attempt.
        wait: Duration,
    },
    /// All permitted concurrent requests are in use. The chunk is handed back for a truncated time.
    #[error("the step is at its concurrency limit")]
    Saturated,
    /// An operator must fix something first. The job is paused with this reason.
    #[error("{0}")]
    Fatal(String),
    /// The chunk fails. This counts as one of its attempts.
    #[error("the step failed: {0}")]
    ChunkFailed(String),
}

/// A batch of records to process.
///
/// ```
/// use windlass_engine::StepBatch;
///
/// fn keys(batch: &StepBatch) -> Vec<String> {
///     batch.items.iter().map(|item| item.key.to_string()).collect()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct StepBatch {
    /// What all items of the job share.
    pub(crate) job: Arc<JobFacts>,
    /// The chunk of the items, for logs; `None` in a dry run.
    pub(crate) chunk: Option<ChunkId>,
    /// How often the batch was halved after a failure.
    pub(crate) halved: u32,
    /// The records.
    pub items: Vec<StepItem>,
}

/// One record to process.
///
/// ```
/// use windlass_core::Value;
/// use windlass_engine::StepItem;
///
/// fn county(item: &StepItem) -> Option<&Value> {
///     item.record.get("county")
/// }
/// ```
#[derive(Clone, Debug)]
pub struct StepItem {
    /// Its key.
    pub key: Key,
    /// The record.
    pub record: Record,
    /// The attempt, starting at 1.
    pub attempt: u32,
}

/// Information for a handler besides the record.
///
/// ```
/// use windlass_core::{ItemError, Outcome};
/// use windlass_engine::ItemContext;
///
/// async fn charge(_: serde_json::Value, context: ItemContext) -> Result<Outcome, ItemError> {
///     // The receiver stores this key and does nothing when it sees it again.
///     println!("idempotency-key: {}", context.idempotency_key());
///     Ok(Outcome::Skip)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ItemContext {
    job: Arc<JobFacts>,
    key: Key,
    attempt: u32,
}

/// What all items of a job share.
#[derive(Debug)]
pub(crate) struct JobFacts {
    id: JobId,
    /// The original job if this one is a redrive, else the job itself.
    root: JobId,
    job_type: String,
    params: BTreeMap<String, Json>,
    pub(crate) dry_run: bool,
    /// The submitter's token, if the step forwards it.
    token: Option<Secret>,
    /// Whether the step has answered an item of the job in the right form.
    answered: AtomicBool,
}

impl JobFacts {
    pub(crate) fn new(job: &JobSnapshot, token: Option<Secret>, dry_run: bool) -> JobFacts {
        JobFacts {
            id: job.id,
            root: job.root,
            job_type: job.definition.name.clone(),
            params: job.request.params.clone(),
            dry_run,
            token,
            answered: AtomicBool::new(false),
        }
    }

    fn record_answer(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// The idempotency key of an item: the same over retries, crashes and redrives, unique per item.
    fn idempotency_key(&self, item: &Key) -> Simple {
        let mut hash = Sha256::new();
        hash.update(self.root.as_bytes());
        item.write_text(&mut hash);
        truncated(hash)
    }
}

/// The first half of a hash, which is still unique enough, in the form of a UUID.
fn truncated(hash: Sha256) -> Simple {
    Uuid::from_slice(&hash.finalize()[..16]).unwrap_or_default().simple()
}

/// The timeout of a batch is halved with the batch, at most this many times.
const MAX_TIMEOUT_HALVINGS: u32 = 4;

impl StepBatch {
    /// A batch of a chunk, or of no chunk in a dry run.
    pub(crate) fn new(
        job: &Arc<JobFacts>,
        chunk: Option<ChunkId>,
        items: Vec<StepItem>,
    ) -> StepBatch {
        StepBatch { job: job.clone(), chunk, halved: 0, items }
    }

    /// A batch of a job without a store: only its id, type and params are known.
    pub fn without_store(
        id: JobId,
        job_type: &JobType,
        params: BTreeMap<String, Json>,
        items: Vec<StepItem>,
    ) -> StepBatch {
        let job_type = job_type.name.clone();
        let (dry_run, token, answered) = (false, None, AtomicBool::new(false));
        let facts = JobFacts { id, root: id, job_type, params, dry_run, token, answered };
        StepBatch::new(&Arc::new(facts), None, items)
    }

    /// Splits off and returns the second half of the batch, to find the items that make it fail.
    pub fn halve(&mut self) -> StepBatch {
        let items = self.items.split_off(self.items.len() / 2);
        self.halved += 1;
        StepBatch { job: self.job.clone(), chunk: self.chunk, halved: self.halved, items }
    }

    /// An empty batch that checks a step before there is a job.
    pub(crate) fn probe(job_type: &JobType, token: Option<Secret>) -> StepBatch {
        let facts = JobFacts {
            id: JobId::nil(),
            root: JobId::nil(),
            job_type: job_type.name.clone(),
            params: BTreeMap::new(),
            dry_run: true,
            token,
            answered: AtomicBool::new(false),
        };
        StepBatch { job: Arc::new(facts), chunk: None, halved: 0, items: Vec::new() }
    }

    /// The batch without its items, to check whether the step is available.
    fn to_probe(&self) -> StepBatch {
        StepBatch { job: self.job.clone(), chunk: self.chunk, halved: 0, items: Vec::new() }
    }

    /// The timeout of this batch, given that of a whole batch. The halves of a failed batch get less, so
    /// that an item that hangs is found before the lease of the chunk ends. A single item gets the whole
    /// timeout, so that it does not become a dead letter because of the halving.
    fn timeout(&self, whole: Duration) -> Duration {
        match self.items.len() {
            0 | 1 => whole,
            _ => whole / (1 << self.halved.min(MAX_TIMEOUT_HALVINGS)),
        }
    }

    /// The context of one of the items.
    pub fn context(&self, item: &StepItem) -> ItemContext {
        ItemContext { job: self.job.clone(), key: item.key.clone(), attempt: item.attempt }
    }
}

impl ItemContext {
    /// The id of the job.
    pub fn job_id(&self) -> JobId {
        self.job.id
    }

    /// The job type.
    pub fn job_type(&self) -> &str {
        &self.job.job_type
    }

    /// The key of the item.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// A param of the request.
    pub fn param(&self, name: &str) -> Option<&Json> {
        self.job.params.get(name)
    }

    /// The attempt, starting at 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether this is a dry run. Nothing will be written, so the handler should skip side effects.
    pub fn dry_run(&self) -> bool {
        self.job.dry_run
    }

    /// The idempotency key of the item: the same over retries, crashes and redrives of the job, and
    /// unique per item. Pass it to services that must act only once.
    pub fn idempotency_key(&self) -> String {
        self.job.idempotency_key(&self.key).to_string()
    }
}
