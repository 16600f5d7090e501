//! Running one job in this process, to its end.

use crate::Result;
use crate::engine::Engine;
use crate::worker::{Options, Worker};
use std::time::Duration;
use windlass_core::{Job, JobStatus, Request};

impl Engine {
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
                    self.store().changed(Duration::from_millis(200)).await;
                }
                ended => break ended,
            }
        };
        handle.shutdown();
        let _ = working.await;
        ended
    }
}
