//! Stops, suspends and limits job types, jobs and connections.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::JobId;

use super::{PostgresStore, params, sql};
use crate::values::{clean, millis};
use crate::{Control, ControlStore, Lease, Result, rows};

#[async_trait]
impl ControlStore for PostgresStore {
    async fn suspend(&self, subject: &str, reason: &str, wait: Duration) -> Result<bool> {
        let params = params![subject, millis(wait), clean(reason)];
        Ok(self.execute(sql!("suspend"), params).await? > 0)
    }

    async fn stop(&self, subject: &str, stopped: bool) -> Result<()> {
        let params = params![subject, stopped];
        self.execute_and_signal(sql!(shared "set_stopped"), params).await.map(drop)
    }

    async fn set_throughput(
        &self,
        subject: &str,
        concurrency: Option<i64>,
        rate: Option<i64>,
    ) -> Result<()> {
        let params = params![subject, concurrency, rate];
        self.execute_and_signal(sql!(shared "set_throughput"), params).await.map(drop)
    }

    async fn controls(&self) -> Result<Vec<Control>> {
        self.read(sql!("list_controls"), &[], rows::control).await
    }

    async fn over_limit(&self) -> Result<Vec<Lease>> {
        self.read(sql!(shared "over_limit"), &[], rows::lease).await
    }

    async fn reserve(&self, job: JobId, items: i64, max_wait: Duration) -> Result<Duration> {
        let params = params![job, items, millis(max_wait)];
        Ok(self.read_first(sql!("reserve"), params, rows::wait).await?.unwrap_or_default())
    }
}
