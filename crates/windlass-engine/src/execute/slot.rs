//! A slot of a worker as its chunk sees it. The chunk leaves it while its last batch is committed, so that the step
//! works on the next chunk meanwhile.

use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The slots of one worker.
#[derive(Clone)]
pub(crate) struct Slots {
    count: usize,
    free: Arc<Semaphore>,
    left: Arc<Notify>,
}

/// A chunk's place in a slot. The chunk leaves and enters it; the pool of the worker sees whether the chunk is in it,
/// and frees it at the end.
#[derive(Clone)]
pub(crate) struct Slot {
    slots: Slots,
    permit: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Slots {
    pub(crate) fn new(count: usize) -> Slots {
        Slots { count, free: Arc::new(Semaphore::new(count)), left: Arc::default() }
    }

    /// The slots in use.
    pub(crate) fn busy(&self) -> usize {
        self.count - self.free.available_permits()
    }

    /// A place for a chunk. It is in a slot if one is free; otherwise the chunk must enter one. A chunk that waits for
    /// a slot gets it before a new chunk does.
    pub(crate) fn place(&self) -> Slot {
        let permit = self.free.clone().try_acquire_owned().ok();
        Slot { slots: self.clone(), permit: Arc::new(Mutex::new(permit)) }
    }

    /// Waits until a chunk leaves its slot.
    pub(crate) async fn left(&self) {
        self.left.notified().await;
    }
}

impl Slot {
    pub(crate) fn is_entered(&self) -> bool {
        self.permit.lock().is_some()
    }

    /// Frees the slot, and wakes the pool so that another chunk can start.
    pub(crate) fn leave(&self) {
        self.free();
        self.slots.left.notify_one();
    }

    /// Frees the slot at the end of its chunk.
    pub(crate) fn free(&self) {
        *self.permit.lock() = None;
    }

    /// Waits for a free slot, unless the chunk is in one.
    pub(crate) async fn enter(&self) {
        if !self.is_entered() {
            // The semaphore is never closed.
            let permit = self.slots.free.clone().acquire_owned().await.ok();
            *self.permit.lock() = permit;
        }
    }
}
