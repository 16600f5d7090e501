//! Stops, suspends and limits job types, jobs and connections.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::JobId;
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::values::{clean, millis};
use crate::{Control, ControlStore, Lease, Result, rows};

#[async_trait]
impl ControlStore for SqliteStore {
    async fn suspend(&self, subject: &str, reason: &str, wait: Duration) -> Result<bool> {
        let (subject, wait, reason) = (subject.to_owned(), millis(wait), clean(reason));
        let suspend = move |tx: &Transaction<'_>| {
            // A throttled database is available.
            let outage = if reason.starts_with("throttled") { 0 } else { wait };
            let extended = tx.execute(sql!("extend_outage"), params![subject, outage])?;
            if extended == 0 && outage > 0 {
                tx.execute(sql!("begin_outage"), params![subject, outage])?;
            }
            tx.execute(sql!("delete_outages"), params![subject])?;
            Ok(tx.execute(sql!("suspend"), params![subject, wait, reason])? > 0)
        };
        self.write(suspend).await
    }

    async fn stop(&self, subject: &str, stopped: bool) -> Result<()> {
        let params = (subject.to_owned(), stopped);
        self.execute_and_signal(sql!(shared "set_stopped"), params).await.map(drop)
    }

    async fn set_throughput(
        &self,
        subject: &str,
        concurrency: Option<i64>,
        rate: Option<i64>,
    ) -> Result<()> {
        let params = (subject.to_owned(), concurrency, rate);
        self.execute_and_signal(sql!(shared "set_throughput"), params).await.map(drop)
    }

    async fn controls(&self) -> Result<Vec<Control>> {
        self.query(sql!("list_controls"), [], |row| rows::control(row)).await
    }

    async fn over_limit(&self) -> Result<Vec<Lease>> {
        self.query(sql!(shared "over_limit"), [], |row| rows::lease(row)).await
    }

    async fn reserve(&self, job: JobId, items: i64, max_wait: Duration) -> Result<Duration> {
        let reserve = move |tx: &Transaction<'_>| {
            let job = job.to_string();
            let wait = tx.query_one(sql!("time_until_free"), [&job], |row| rows::wait(row))?;
            if wait <= max_wait {
                tx.execute(sql!("reserve"), params![job, items])?;
            }
            Ok(wait)
        };
        self.write(reserve).await
    }
}
