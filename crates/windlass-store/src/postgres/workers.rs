//! Registers worker processes.

use async_trait::async_trait;

use super::{PostgresStore, params, sql};
use crate::control::WORKER_SILENT_AFTER_MS;
use crate::{Capabilities, Result, SilentWorker, WorkerRow, WorkerStore, rows};

#[async_trait]
impl WorkerStore for PostgresStore {
    async fn heartbeat_worker(&self, by: &Capabilities, slots: i64) -> Result<()> {
        let (connections, handlers) = (by.connections.as_slice(), by.handlers.as_slice());
        let params =
            params![&by.worker, slots, connections, handlers, by.only_job, by.process.as_deref()];
        self.single(sql!("heartbeat_worker"), params).await.map(drop)
    }

    async fn remove_worker(&self, name: &str) -> Result<()> {
        self.single(sql!("remove_worker"), params![name]).await.map(drop)
    }

    async fn silent_workers(&self, host: &str) -> Result<Vec<SilentWorker>> {
        let params = params![host, WORKER_SILENT_AFTER_MS];
        self.read(sql!("silent_workers"), params, rows::silent_worker).await
    }

    async fn workers(&self) -> Result<Vec<WorkerRow>> {
        self.read(sql!("list_workers"), &[], rows::worker).await
    }
}
