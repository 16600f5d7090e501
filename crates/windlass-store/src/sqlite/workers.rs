//! Registers worker processes.

use async_trait::async_trait;

use super::{SqliteStore, sql};
use crate::control::WORKER_SILENT_AFTER_MS;
use crate::{Capabilities, Result, SilentWorker, WorkerRow, WorkerStore, rows};

#[async_trait]
impl WorkerStore for SqliteStore {
    async fn heartbeat_worker(&self, by: &Capabilities, slots: i64) -> Result<()> {
        let connections = serde_json::to_string(&by.connections)?;
        let handlers = serde_json::to_string(&by.handlers)?;
        let only_job = by.only_job.map(|id| id.to_string());
        let process = by.process.clone();
        let params = (by.worker.clone(), slots, connections, handlers, only_job, process);
        self.execute(sql!("heartbeat_worker"), params).await.map(drop)
    }

    async fn remove_worker(&self, name: &str) -> Result<()> {
        self.execute(sql!("remove_worker"), [name.to_owned()]).await.map(drop)
    }

    async fn silent_workers(&self, host: &str) -> Result<Vec<SilentWorker>> {
        let params = (host.to_owned(), WORKER_SILENT_AFTER_MS);
        self.query(sql!("silent_workers"), params, |row| rows::silent_worker(row)).await
    }

    async fn workers(&self) -> Result<Vec<WorkerRow>> {
        self.query(sql!("list_workers"), [], |row| rows::worker(row)).await
    }
}
