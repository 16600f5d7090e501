//! The history of the ledger.

use super::row::{int, ledger, text};
use super::{MysqlConnection, fence, finish};
use crate::{ConnectorError, Ledger, LedgerHistory, Result};
use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::JobId;
use windlass_drivers::mysql::{Row, Value};

impl MysqlConnection {
    /// The rows of a statement on the ledger. None when there is no ledger.
    async fn history(&self, sql: &str, params: Vec<Value>) -> Result<Vec<Row>> {
        let mut transaction = self.ledger_tx().await?;
        let outcome = async {
            match fence::has_tables(&mut transaction).await? {
                true => Ok(transaction.query(sql, params).await?),
                false => Ok(Vec::new()),
            }
        };
        let outcome = outcome.await;
        finish(transaction, outcome).await
    }
}

#[async_trait]
impl LedgerHistory for MysqlConnection {
    async fn generation(&self, store: Uuid, connection: &str) -> Result<i64> {
        let params = vec![store.to_string().into(), connection.into()];
        let sql = include_str!("../../sql/mysql/generation.sql");
        self.history(sql, params).await?.first().map_or(Ok(0), |row| int(row, 0))
    }

    async fn raise_generation(&self, store: Uuid, connection: &str, generation: i64) -> Result<()> {
        let params = vec![store.to_string().into(), connection.into(), generation.into()];
        let sql = include_str!("../../sql/mysql/raise_generation.sql");
        self.history(sql, params).await.map(drop)
    }

    async fn rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<Ledger>> {
        let params = vec![job.to_string().into(), after.into(), i64::from(limit).into()];
        let sql = include_str!("../../sql/mysql/history_rows.sql");
        self.history(sql, params).await?.iter().map(ledger).collect()
    }

    async fn jobs(&self) -> Result<Vec<(JobId, u64)>> {
        let sql = include_str!("../../sql/mysql/history_jobs.sql");
        let rows = self.history(sql, Vec::new()).await?;
        let job = |row: &Row| {
            let job = text(row, 0)?;
            let unreadable = || ConnectorError::Unreadable(format!("`{job}` is not a job"));
            Ok((job.parse().map_err(|_| unreadable())?, int(row, 1)?.unsigned_abs()))
        };
        rows.iter().map(job).collect()
    }
}
