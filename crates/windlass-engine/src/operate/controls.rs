//! The operators' runtime controls (stop, concurrency, rate), refreshed from the store twice a second.

use crate::Result;
use crate::engine::Engine;
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashSet};
use windlass_store::{Control, EVERYTHING, JobSnapshot, Lease};

/// The controls as last read from the store.
#[derive(Default)]
pub(crate) struct Controls {
    current: RwLock<Current>,
}

#[derive(Default)]
struct Current {
    /// By job type or job id.
    controls: BTreeMap<String, Control>,
    /// Chunks that run beyond a lowered concurrency limit and must be handed back.
    over_limit: HashSet<Lease>,
}

impl Controls {
    /// Whether planning and executing jobs of this type is stopped.
    pub(crate) fn is_stopped(&self, job_type: &str) -> bool {
        let current = self.current.read();
        let stopped =
            |subject| current.controls.get(subject).is_some_and(|control| control.stopped);
        stopped(EVERYTHING) || stopped(job_type)
    }

    /// Whether a chunk runs beyond a concurrency limit that was lowered.
    pub(crate) fn is_over_limit(&self, lease: Lease) -> bool {
        self.current.read().over_limit.contains(&lease)
    }

    /// The items per second allowed for a job: the lower of the limits of its type and its own.
    pub(crate) fn rate(&self, job: &JobSnapshot) -> Option<i64> {
        let current = self.current.read();
        let own = current.controls.get(&job.id.to_string()).and_then(|control| control.rate);
        current.rate_of_type(job).into_iter().chain(own).min()
    }

    /// What the rate limit of a job belongs to: its type if that has a limit, or else the job.
    pub(crate) fn rate_subject(&self, job: &JobSnapshot) -> String {
        match self.current.read().rate_of_type(job) {
            Some(_) => job.definition.name.clone(),
            None => job.id.to_string(),
        }
    }
}

impl Current {
    fn rate_of_type(&self, job: &JobSnapshot) -> Option<i64> {
        match self.controls.get(&job.definition.name) {
            Some(control) => control.rate,
            // The first job of a type may run before its control was read.
            None => job.definition.throughput.items_per_second.map(i64::from),
        }
    }
}

impl Engine {
    /// Reads the controls from the store.
    pub(crate) async fn refresh_controls(&self) -> Result<()> {
        let controls = self.store().controls().await?;
        let limited = controls.iter().any(|control| control.concurrency.is_some());
        let over_limit = if limited { self.store().over_limit().await? } else { Vec::new() };
        let controls =
            controls.into_iter().map(|control| (control.subject.clone(), control)).collect();
        let current = Current { controls, over_limit: over_limit.into_iter().collect() };
        *self.shared.controls.current.write() = current;
        Ok(())
    }
}
