//! What operators say of job types, as this process last heard it: twice a second.

use crate::Result;
use crate::engine::Engine;
use std::collections::{BTreeMap, HashSet};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use windlass_store::{Control, EVERYTHING, JobSnapshot, Lease};

/// The controls of the store, and the chunks that are to be handed back.
#[derive(Default)]
pub(crate) struct Controls {
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    controls: BTreeMap<String, Control>,
    over_limit: HashSet<Lease>,
}

impl Controls {
    /// Whether nothing of a job type may be loaded or worked.
    pub(crate) fn is_stopped(&self, job_type: &str) -> bool {
        let known = self.known();
        let stopped = |subject| known.controls.get(subject).is_some_and(|control| control.stopped);
        stopped(EVERYTHING) || stopped(job_type)
    }

    /// Whether a chunk is at work beyond a limit that was lowered.
    pub(crate) fn is_over_limit(&self, lease: Lease) -> bool {
        self.known().over_limit.contains(&lease)
    }

    /// How many items of a job may be worked a second, by its type's limit and its own.
    pub(crate) fn rate(&self, job: &JobSnapshot) -> Option<i64> {
        let known = self.known();
        let of_type = match known.controls.get(&job.definition.name) {
            Some(control) => control.rate,
            // Its first job may be at work before we hear of it.
            None => job.definition.throughput.items_per_second.map(i64::from),
        };
        let own = known.controls.get(&job.id.to_string()).and_then(|control| control.rate);
        of_type.into_iter().chain(own).min()
    }

    /// Plain values, which a panic elsewhere cannot leave half changed.
    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Hears what is said now.
    pub(crate) async fn refresh_controls(&self) -> Result<()> {
        let controls = self.store().controls().await?;
        let limited = controls.iter().any(|control| control.concurrency.is_some());
        let over_limit = if limited { self.store().over_limit().await? } else { Vec::new() };
        let controls =
            controls.into_iter().map(|control| (control.subject.clone(), control)).collect();
        let known = Known { controls, over_limit: over_limit.into_iter().collect() };
        *self.shared.controls.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }
}
