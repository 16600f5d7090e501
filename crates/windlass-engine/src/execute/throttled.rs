//! Chunks that have left their slot to wait for a rate limit or for the health of their database.

use crate::execute::chunk_runner::{self, ChunkRunner, LeaseOutcome, ThrottleCause};
use crate::job_context::JobContext;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tokio::task::{Id, JoinError, JoinSet};
use windlass_store::Capabilities;

/// The throttled chunks of a worker. They keep their leases.
#[derive(Default)]
pub(crate) struct ThrottledChunks {
    waiting: JoinSet<Result<ChunkRunner, LeaseOutcome>>,
    jobs: HashMap<Id, (Arc<JobContext>, ThrottleCause)>,
}

/// What a worker does not acquire, because enough of its chunks are throttled or about to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saturated {
    /// Connections whose database is unhealthy.
    connections: BTreeSet<String>,
    /// Job types and jobs that have reached their rate limit.
    subjects: BTreeSet<String>,
}

impl Saturated {
    /// The capabilities without what is saturated.
    pub(crate) fn restrict(&self, mut by: Capabilities) -> Capabilities {
        by.connections.retain(|name| !self.connections.contains(name));
        by.except.extend(self.subjects.iter().cloned());
        by
    }
}

impl ThrottledChunks {
    pub(crate) fn push(&mut self, chunk: ChunkRunner, cause: ThrottleCause) {
        let job = chunk.job.clone();
        let task = self.waiting.spawn(chunk_runner::wait_outside(chunk, cause));
        self.jobs.insert(task.id(), (job, cause));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Waits for the next chunk that may continue, or whose lease has ended. `None` without any chunk.
    pub(crate) async fn next(
        &mut self,
    ) -> Option<Result<Result<ChunkRunner, LeaseOutcome>, JoinError>> {
        let joined = self.waiting.join_next_with_id().await?;
        let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        self.jobs.remove(&id);
        Some(joined.map(|(_, result)| result))
    }

    /// What is saturated, and how many chunks may be acquired at once. `others` are the jobs of the chunks in
    /// slots and in reserve. Something throttled is saturated while its chunks need more than half of the
    /// slots. Until then it is not leased ahead: more chunks would only wait here while another worker could
    /// take them, and each would weaken the throttle of an unhealthy database.
    pub(crate) fn saturated<'a>(
        &'a self,
        slots: usize,
        others: impl Iterator<Item = &'a JobContext> + Clone,
    ) -> (Saturated, usize) {
        let (mut saturated, mut most) = (Saturated::default(), usize::MAX);
        let all = || others.clone().chain(self.jobs.values().map(|(job, _)| job.as_ref()));
        for (job, cause) in self.jobs.values() {
            let (names, of): (_, fn(&JobContext) -> String) = match cause {
                ThrottleCause::Health => (&mut saturated.connections, connection),
                ThrottleCause::Rate(_) => (&mut saturated.subjects, rate_subject),
            };
            let name = of(job);
            if names.contains(&name) {
                continue;
            }
            let chunks = all().filter(|job| of(job) == name).count();
            match chunks * 2 > slots {
                true => _ = names.insert(name),
                false => most = slots,
            }
        }
        (saturated, most)
    }
}

fn connection(job: &JobContext) -> String {
    job.definition().source.connection.clone()
}

fn rate_subject(job: &JobContext) -> String {
    job.controls.rate_subject(&job.snapshot)
}
