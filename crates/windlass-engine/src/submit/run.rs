//! Runs one job to its end in this process.

use crate::Result;
use crate::engine::Engine;
use crate::execute::slots::WorkerStats;
use crate::execute::worker::{Options, Worker};
use std::future::{Future, pending};
use std::time::{Duration, Instant};
use windlass_core::{Job, JobId, JobStatus, Request};
use windlass_store::Subscription;

/// Minimum time between two reads of a job: a running job changes many times a second.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time between two reads when no change notification arrives.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Reading a job sums up its chunks. A read that took `t` is followed by a pause of up to 20 `t`, so
/// that reading costs about 5 % of the time.
const POLL_COST_FACTOR: u32 = 20;

impl Engine {
    /// Waits before a caller reads a job again; returns at once when the job ends or is paused. The
    /// longer the last read took (`read_time`), the longer it waits.
    pub async fn wait_for_progress(
        &self,
        changes: &mut Subscription,
        id: JobId,
        read_time: Duration,
    ) {
        let until = Instant::now() + (read_time * POLL_COST_FACTOR).max(POLL_INTERVAL);
        while Instant::now() < until {
            tokio::time::sleep(MIN_POLL_INTERVAL).await;
            changes.changed(POLL_INTERVAL - MIN_POLL_INTERVAL).await;
            match self.store().status(id).await {
                Ok(Some(status)) if !has_settled(status) => {}
                _ => return,
            }
        }
    }

    /// Submits a request under the local identity and works on the job until it has ended or is
    /// paused. Workers in other processes may take some of its chunks.
    ///
    /// # Errors
    /// Those of [`Engine::submit`]. A job that fails is not an error: its status says so.
    pub async fn run(&self, request: Request) -> Result<Job> {
        let id = self.submit(request, Engine::local_identity()).await?.id();
        self.work(id, Options::default(), pending()).await;
        self.job(id).await
    }

    /// Works on a job until it has ended or is paused, the store fails, or `stop` is ready. Then it takes no
    /// new chunk, finishes the commits in progress and hands the remaining chunks back. Workers in other
    /// processes may take some of the job's chunks.
    pub async fn work(
        &self,
        id: JobId,
        options: Options,
        stop: impl Future<Output = ()>,
    ) -> WorkerStats {
        let (worker, handle) = Worker::new(self.clone(), options.with_only(id));
        let working = tokio::spawn(worker.run());
        tokio::select! {
            () = self.settled(id) => {}
            () = stop => {}
        }
        handle.shutdown();
        working.await.unwrap_or_default()
    }

    /// Waits until the job has ended or is paused, or the store fails.
    async fn settled(&self, id: JobId) {
        let mut changes = self.store().subscribe();
        while let Ok(Some(status)) = self.store().status(id).await {
            if has_settled(status) {
                return;
            }
            tokio::time::sleep(MIN_POLL_INTERVAL).await;
            changes.changed(POLL_INTERVAL - MIN_POLL_INTERVAL).await;
        }
    }
}

/// Whether the job has ended or is paused, so that its status changes only by an operator.
fn has_settled(status: JobStatus) -> bool {
    status.is_final() || status == JobStatus::Paused
}
