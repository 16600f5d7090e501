//! Table `windlass_workers`: the processes that work chunks.

use async_trait::async_trait;

use crate::{Capabilities, Result, SilentWorker, WorkerRow};

/// Registers worker processes.
#[async_trait]
pub trait WorkerStore: Send + Sync {
    /// Records that a process is alive, what it can work on, and its number of slots.
    async fn heartbeat_worker(&self, by: &Capabilities, slots: i64) -> Result<()>;
    /// Removes a process that has shut down.
    async fn remove_worker(&self, name: &str) -> Result<()>;
    /// Lists the processes that ran on this host (a prefix of [`Capabilities::process`]) and missed
    /// their last heartbeats.
    async fn silent_workers(&self, host: &str) -> Result<Vec<SilentWorker>>;
    /// Lists the worker processes.
    async fn workers(&self) -> Result<Vec<WorkerRow>>;
}
