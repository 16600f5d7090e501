//! Running one job in this process, to its end.

use crate::Result;
use crate::engine::Engine;
use crate::worker::{Options, Worker};
use std::time::Duration;
use windlass_core::{Job, JobStatus, Request};

/// The shortest time between two looks at a job: each adds up its chunks, and a job that works
/// changes many times in a moment.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

impl Engine {
    /// Waits until a job that was just looked at is worth another look, at most so long.
    pub async fn next_look(&self, at_most: Duration) {
        tokio::time::sleep(BETWEEN_LOOKS.min(at_most)).await;
        self.store().changed(at_most.saturating_sub(BETWEEN_LOOKS)).await;
    }

    /// Submits a request under the local identity and works it here until it has ended or is
    /// paused. Other processes may help.
    pub async fn run(&self, request: Request) -> Result<Job> {
        let id = self.submit(request, Engine::local_identity()).await?.id();
        let options = Options { only: Some(id), ..Options::default() };
        let (worker, handle) = Worker::new(self.clone(), options);
        let working = tokio::spawn(worker.run());
        let ended = loop {
            match self.job(id).await {
                Ok(job) if !job.status.is_final() && job.status != JobStatus::Paused => {
                    self.next_look(Duration::from_millis(200)).await;
                }
                ended => break ended,
            }
        };
        handle.shutdown();
        let _ = working.await;
        ended
    }
}
