//! A worker that polls the queue itself, without Lambda.

use crate::queue::{Queue, Received};
use crate::{Process, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Works the messages of a queue until it is stopped. It works several batches at once, and keeps the messages of a
/// batch hidden while it works them.
pub struct Worker {
    process: Arc<Process>,
    queue: Queue,
    slots: usize,
    batch_size: usize,
    stopped: watch::Receiver<bool>,
}

/// Stops a worker.
pub struct WorkerHandle(watch::Sender<bool>);

/// The longest time for a batch. After it the messages count as stuck and are delivered again.
const LONGEST: Duration = Duration::from_secs(12 * 3600);
/// The most messages that a slot works at a time: SQS's limit of messages per request.
pub const MAX_BATCH_SIZE: usize = 10;
/// The pause after the queue could not be reached.
const REST: Duration = Duration::from_secs(1);

impl WorkerHandle {
    /// Stops receiving. Received messages are finished.
    pub fn shutdown(&self) {
        self.0.send_replace(true);
    }
}

impl Worker {
    /// A worker for this queue with `slots` slots.
    pub fn new(process: Process, queue: Queue, slots: usize) -> (Worker, WorkerHandle) {
        let (stop, stopped) = watch::channel(false);
        let process = Arc::new(process);
        let worker = Worker { process, queue, slots, batch_size: MAX_BATCH_SIZE, stopped };
        (worker, WorkerHandle(stop))
    }

    /// Works at most this many messages at a time in a slot, 1 to [`MAX_BATCH_SIZE`].
    pub fn with_batch_size(self, batch_size: usize) -> Worker {
        Worker { batch_size, ..self }
    }

    /// Works until it is stopped. Reads the visibility timeout first, which fails if the queue does not
    /// exist.
    pub async fn run(self) -> Result<()> {
        let hidden = self.queue.hidden().await?;
        let mut slots = JoinSet::new();
        for _ in 0..self.slots {
            let slot = Slot {
                process: self.process.clone(),
                queue: self.queue.clone(),
                batch_size: self.batch_size,
                hidden,
                stopped: self.stopped.clone(),
            };
            slots.spawn(slot.run());
        }
        slots.join_all().await;
        self.process.close_idle().await;
        Ok(())
    }
}

struct Slot {
    process: Arc<Process>,
    queue: Queue,
    batch_size: usize,
    hidden: Duration,
    stopped: watch::Receiver<bool>,
}

impl Slot {
    async fn run(mut self) {
        while !*self.stopped.borrow() {
            let received = tokio::select! {
                // Messages that SQS hands out during the shutdown are delivered again after their timeout.
                _ = self.stopped.wait_for(|stopped| *stopped) => return,
                received = self.queue.receive_some(self.batch_size, Duration::MAX, None) => received,
            };
            let worked = match received {
                Ok(received) if received.is_empty() => Ok(()),
                Ok(received) => self.work(received).await,
                Err(error) => Err(error),
            };
            if let Err(error) = worked {
                tracing::warn!(%error, "failed to receive or delete messages; retrying");
                tokio::select! {
                    _ = self.stopped.wait_for(|stopped| *stopped) => return,
                    () = tokio::time::sleep(REST) => {}
                }
            }
        }
    }

    /// Works messages and deletes those that succeeded. The others are delivered again.
    async fn work(&self, received: Vec<Received>) -> Result<()> {
        let deliveries: Vec<_> = received.iter().map(|one| one.delivery.clone()).collect();
        let failed = tokio::select! {
            failed = self.process.work(&deliveries, Instant::now() + LONGEST) => failed,
            () = self.keep(&received) => return Ok(()),
        };
        let done = received.into_iter().filter(|one| !failed.contains(&one.delivery.id));
        self.queue.delete(&done.collect::<Vec<_>>()).await
    }

    /// Extends the visibility timeout while the batch is worked. If that fails, messages may be delivered twice, which
    /// is harmless.
    async fn keep(&self, received: &[Received]) {
        loop {
            tokio::time::sleep(self.hidden.max(REST) / 2).await;
            if let Err(error) = self.queue.hide(received, self.hidden).await {
                tracing::warn!(%error, "failed to extend the visibility timeout; messages may be delivered twice");
            }
        }
    }
}
