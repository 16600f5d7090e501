//! Creates the ledger's tables, and fences its rows.

use super::row::{int, ledger};
use super::{MysqlConnection, finish, release};
use crate::ledger::missing_ledger;
use crate::{ConnectorError, Fence, Fencing, Ledger, LedgerRow, LedgerSchema, Result};
use async_trait::async_trait;
use std::collections::HashMap;
use windlass_core::JobId;
use windlass_drivers::mysql::{Transaction, Value};

/// The statements that create the ledger.
pub(super) const LEDGER: &str = include_str!("../../sql/mysql/ledger.sql");

#[async_trait]
impl LedgerSchema for MysqlConnection {
    async fn prepare(&self) -> Result<()> {
        let mut transaction = self.ledger_tx().await?;
        let outcome = async {
            if !has_tables(&mut transaction).await? {
                transaction.batch(LEDGER).await?;
            }
            Ok(())
        };
        let outcome: Result<()> = outcome.await;
        match release(transaction, outcome).await {
            Err(error) if !error.is_retryable() => Err(missing_ledger(&error.to_string())),
            outcome => outcome,
        }
    }

    async fn check_ledger(&self) -> Result<()> {
        let mut transaction = self.ledger_tx().await?;
        let checked = async {
            Ok(has_tables(&mut transaction).await? || may_create(&mut transaction).await?)
        };
        let checked = checked.await;
        match release(transaction, checked).await? {
            true => Ok(()),
            false => Err(missing_ledger("this user may not create tables in the database")),
        }
    }

    fn ledger_ddl(&self) -> &'static str {
        LEDGER
    }
}

#[async_trait]
impl Fencing for MysqlConnection {
    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        if fences.is_empty() {
            return Ok(Vec::new());
        }
        let mut sorted: Vec<&Fence> = fences.iter().collect();
        // Locks in key order, so that two processes cannot deadlock.
        sorted.sort_by_key(|fence| (fence.chunk.job.to_string(), fence.chunk.number));
        let rows: Vec<serde_json::Value> = sorted
            .into_iter()
            .map(|Fence { chunk, epoch, lost, nonce }| {
                let lost = i32::from(*lost);
                serde_json::json!([chunk.job.to_string(), chunk.number, epoch, lost, nonce])
            })
            .collect();
        let rows = Value::from(serde_json::Value::Array(rows).to_string());
        let mut transaction = self.ledger_tx().await?;
        let outcome = async {
            let raise = include_str!("../../sql/mysql/fence.sql");
            transaction.execute(raise, vec![rows.clone()]).await?;
            let read = include_str!("../../sql/mysql/fenced.sql");
            Ok(transaction.query(read, vec![rows]).await?)
        };
        let outcome = outcome.await;
        let rows = finish(transaction, outcome).await?;
        let mut raised = HashMap::new();
        for row in &rows {
            let row = ledger(row)?;
            raised.insert(row.chunk, row);
        }
        // A row with a higher epoch or another nonce did not change: another lease has the chunk.
        let ours = |fence: &Fence| {
            let is_ours = |row: &Ledger| row.epoch == fence.epoch && row.nonce == fence.nonce;
            raised.remove(&fence.chunk).filter(is_ours)
        };
        Ok(fences.iter().map(ours).collect())
    }

    async fn fence_again(&self, own: &Ledger) -> Result<Option<Ledger>> {
        let mut transaction = self.ledger_tx().await?;
        let sql = include_str!("../../sql/mysql/lock.sql");
        let rows = transaction.query(sql, lock(own)).await;
        let rows = finish(transaction, rows.map_err(ConnectorError::from)).await?;
        rows.first().map(ledger).transpose()
    }

    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>> {
        let params = vec![job.to_string().into(), after.into(), limit.into()];
        let mut transaction = self.ledger_tx().await?;
        let sql = include_str!("../../sql/mysql/ledger_rows.sql");
        let rows = transaction.query(sql, params).await;
        let rows = release(transaction, rows.map_err(ConnectorError::from)).await?;
        let row = |row| {
            Ok(LedgerRow {
                ledger: ledger(row)?,
                deferred: int(row, 12)?,
                dead: int(row, 13)?,
                emitted: int(row, 14)?,
                emitted_rows: int(row, 15)?,
            })
        };
        rows.iter().map(row).collect()
    }
}

/// The parameters that identify the row of a lease.
pub(super) fn lock(ledger: &Ledger) -> Vec<Value> {
    let chunk = ledger.chunk;
    vec![
        chunk.job.to_string().into(),
        chunk.number.into(),
        ledger.epoch.into(),
        ledger.nonce.into(),
    ]
}

pub(super) async fn has_tables(transaction: &mut Transaction) -> Result<bool> {
    let sql = "SELECT count(*) FROM information_schema.tables WHERE table_schema = DATABASE() \
               AND table_name IN ('windlass_ledger', 'windlass_deferred', 'windlass_emitted', \
               'windlass_stores')";
    let rows = transaction.query(sql, Vec::new()).await?;
    Ok(rows.first().map_or(Ok(0), |row| int(row, 0))? == 4)
}

/// Checks the privileges of the user itself. Privileges of roles are not visible everywhere, so a user with
/// a role passes.
async fn may_create(transaction: &mut Transaction) -> Result<bool> {
    let rows =
        transaction.query(include_str!("../../sql/mysql/may_create.sql"), Vec::new()).await?;
    Ok(rows.first().map_or(Ok(0), |row| int(row, 0))? > 0)
}
