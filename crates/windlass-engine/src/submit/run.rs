//! Running one job in this process, to its end.

use crate::Result;
use crate::engine::Engine;
use crate::execute::worker::{Options, Worker};
use std::time::{Duration, Instant};
use windlass_core::{Job, JobId, JobStatus, Request};
use windlass_store::Subscription;

/// The shortest time between two looks at a job: one that works changes many times in a moment.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// The longest, where nobody says that something has changed.
const LONGEST: Duration = Duration::from_millis(200);
/// A look adds up the job's chunks; all looks together take one part in so many of the time.
const SHARE: u32 = 20;

impl Engine {
    /// Waits until a job that was just looked at is worth another look, or has come to an end. The
    /// longer the look took, the longer it waits for the next.
    pub async fn next_look(&self, changes: &mut Subscription, id: JobId, took: Duration) {
        let until = Instant::now() + (took * SHARE).max(LONGEST);
        while Instant::now() < until {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            changes.changed(LONGEST - BETWEEN_LOOKS).await;
            match self.store().status(id).await {
                Ok(Some(status)) if !stands(status) => {}
                _ => return,
            }
        }
    }

    /// Submits a request under the local identity and works it here until it has ended or is
    /// paused. Other processes may help.
    pub async fn run(&self, request: Request) -> Result<Job> {
        let id = self.submit(request, Engine::local_identity()).await?.id();
        let options = Options { only: Some(id), ..Options::default() };
        let (worker, handle) = Worker::new(self.clone(), options);
        let working = tokio::spawn(worker.run());
        let mut changes = self.store().subscribe();
        let ended = loop {
            match self.store().status(id).await {
                Ok(Some(status)) if !stands(status) => {
                    tokio::time::sleep(BETWEEN_LOOKS).await;
                    changes.changed(LONGEST - BETWEEN_LOOKS).await;
                }
                _ => break self.job(id).await,
            }
        };
        handle.shutdown();
        let _ = working.await;
        ended
    }
}

/// Whether nothing more happens to a job by itself.
fn stands(status: JobStatus) -> bool {
    status.is_final() || status == JobStatus::Paused
}
