//! The seam between the engine and what is done with records: a batch in, an outcome per item out.

mod function;

pub(crate) use function::FunctionStep;

use async_trait::async_trait;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_core::{JobId, Key, Outcome, Record};
use windlass_store::Pinned;

/// Works batches of records. What it changes it says; Windlass commits it.
#[async_trait]
pub trait Step: Send + Sync {
    /// One outcome per item, in the order of the items. An error fails the whole batch, which is
    /// tried again with backoff; an item's own failure is an [`Outcome::Error`].
    async fn process(&self, batch: StepBatch) -> Result<Vec<Outcome>, StepError>;
}

/// A step that could not work a batch at all.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the step failed: {0}")]
pub struct StepError(pub String);

/// Records to work.
#[derive(Clone, Debug)]
pub struct StepBatch {
    /// What all of them share.
    pub(crate) job: Arc<JobFacts>,
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
    root: JobId,
    job_type: String,
    params: BTreeMap<String, Json>,
    dry_run: bool,
}

impl StepBatch {
    pub(crate) fn new(job: &Pinned, items: Vec<StepItem>, dry_run: bool) -> StepBatch {
        let facts = JobFacts {
            id: job.id,
            root: job.root,
            job_type: job.definition.name.clone(),
            params: job.request.params.clone(),
            dry_run,
        };
        StepBatch { job: Arc::new(facts), items }
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
        let mut hash = Sha256::new();
        hash.update(self.job.root.as_bytes());
        hash.update(self.key.to_text());
        hex::encode(&hash.finalize()[..16])
    }
}
