//! The history of the ledger.

use super::row::{get, ledger};
use super::{LEDGER_SETTINGS, PostgresConnection, fence};
use crate::{Ledger, LedgerHistory, Result};
use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::JobId;
use windlass_drivers::{Param, Row};

impl PostgresConnection {
    /// The rows of a statement on the ledger. None when there is no ledger.
    async fn history(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        match fence::exists(self).await? {
            true => Ok(self.db.single(LEDGER_SETTINGS, sql, params).await?),
            false => Ok(Vec::new()),
        }
    }
}

#[async_trait]
impl LedgerHistory for PostgresConnection {
    async fn generation(&self, store: Uuid, connection: &str) -> Result<i64> {
        let params = [store.into(), connection.to_owned().into()];
        let sql = include_str!("../../sql/postgres/generation.sql");
        self.history(sql, &params).await?.first().map_or(Ok(0), |row| get(row, 0))
    }

    async fn raise_generation(&self, store: Uuid, connection: &str, generation: i64) -> Result<()> {
        let params = [store.into(), connection.to_owned().into(), generation.into()];
        let sql = include_str!("../../sql/postgres/raise_generation.sql");
        self.history(sql, &params).await.map(drop)
    }

    async fn rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<Ledger>> {
        let params = [job.into(), after.into(), i64::from(limit).into()];
        let sql = include_str!("../../sql/postgres/history_rows.sql");
        self.history(sql, &params).await?.iter().map(ledger).collect()
    }

    async fn jobs(&self) -> Result<Vec<(JobId, u64)>> {
        let sql = include_str!("../../sql/postgres/history_jobs.sql");
        let rows = self.history(sql, &[]).await?;
        rows.iter().map(|row| Ok((get(row, 0)?, get::<i64>(row, 1)?.unsigned_abs()))).collect()
    }
}
