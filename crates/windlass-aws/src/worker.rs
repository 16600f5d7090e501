//! A worker that polls the queue itself, where no Lambda does it.

use crate::queue::{Queue, Received};
use crate::{Process, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Works a queue's messages until it is told to stop: several batches at once, each of which stays
/// hidden from others for as long as it is worked.
pub struct Worker {
    process: Arc<Process>,
    queue: Queue,
    slots: usize,
    stopped: watch::Receiver<bool>,
}

/// Stops a worker.
pub struct WorkerHandle(watch::Sender<bool>);

/// How long one batch may take in all. A message that is longer at work is stuck, and comes back.
const LONGEST: Duration = Duration::from_secs(12 * 3600);
/// How long to rest where the queue cannot be reached.
const REST: Duration = Duration::from_secs(1);

impl WorkerHandle {
    /// Receives nothing more; what is in hand is finished.
    pub fn shutdown(&self) {
        self.0.send_replace(true);
    }
}

impl Worker {
    /// Works this queue in so many slots.
    pub fn new(process: Process, queue: Queue, slots: usize) -> (Worker, WorkerHandle) {
        let (stop, stopped) = watch::channel(false);
        let worker = Worker { process: Arc::new(process), queue, slots, stopped };
        (worker, WorkerHandle(stop))
    }

    /// Works until it is stopped. How long the queue hides messages is asked first, so that a queue
    /// that is not there is noticed.
    pub async fn run(self) -> Result<()> {
        let hidden = self.queue.hidden().await?;
        let mut slots = JoinSet::new();
        for _ in 0..self.slots {
            let slot = Slot {
                process: self.process.clone(),
                queue: self.queue.clone(),
                hidden,
                stopped: self.stopped.clone(),
            };
            slots.spawn(slot.run());
        }
        slots.join_all().await;
        self.process.rest().await;
        Ok(())
    }
}

struct Slot {
    process: Arc<Process>,
    queue: Queue,
    hidden: Duration,
    stopped: watch::Receiver<bool>,
}

impl Slot {
    async fn run(mut self) {
        while !*self.stopped.borrow() {
            let received = tokio::select! {
                // What the queue hands out while we leave comes back to others in its time.
                _ = self.stopped.wait_for(|stopped| *stopped) => return,
                received = self.queue.receive(Duration::MAX, None) => received,
            };
            let worked = match received {
                Ok(received) if received.is_empty() => Ok(()),
                Ok(received) => self.work(received).await,
                Err(error) => Err(error),
            };
            if let Err(error) = worked {
                tracing::warn!(%error, "the queue is not well; trying again");
                tokio::select! {
                    _ = self.stopped.wait_for(|stopped| *stopped) => return,
                    () = tokio::time::sleep(REST) => {}
                }
            }
        }
    }

    /// Works some messages and deletes those that succeeded; the others come back.
    async fn work(&self, received: Vec<Received>) -> Result<()> {
        let deliveries: Vec<_> = received.iter().map(|one| one.delivery.clone()).collect();
        let failed = tokio::select! {
            failed = self.process.work(&deliveries, Instant::now() + LONGEST) => failed,
            () = self.keep(&received) => return Ok(()),
        };
        let done = received.into_iter().filter(|one| !failed.contains(&one.delivery.id));
        self.queue.delete(&done.collect::<Vec<_>>()).await
    }

    /// Keeps messages hidden for as long as this runs. Where that fails they may come to others as
    /// well, which is harmless.
    async fn keep(&self, received: &[Received]) {
        loop {
            tokio::time::sleep(self.hidden.max(REST) / 2).await;
            if let Err(error) = self.queue.hide(received, self.hidden).await {
                tracing::warn!(%error, "messages may be delivered twice");
            }
        }
    }
}
