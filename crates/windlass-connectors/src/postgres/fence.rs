//! Creates the ledger's tables, and fences its rows.

use super::row::{get, ledger};
use super::{LEDGER_SETTINGS, PostgresConnection, finish, release};
use crate::ledger::missing_ledger;
use crate::{ConnectorError, Fence, Fencing, Ledger, LedgerRow, LedgerSchema, Result};
use async_trait::async_trait;
use std::collections::HashMap;
use windlass_core::JobId;
use windlass_drivers::{Param, Transaction};

/// The statements that create the ledger.
pub(super) const LEDGER: &str = include_str!("../../sql/postgres/ledger.sql");

#[async_trait]
impl LedgerSchema for PostgresConnection {
    async fn prepare(&self) -> Result<()> {
        if exists(self).await? {
            return Ok(());
        }
        match create(self, LEDGER).await {
            Err(error) if !error.is_retryable() => Err(missing_ledger(&error.to_string())),
            outcome => outcome,
        }
    }

    async fn check_ledger(&self) -> Result<()> {
        let transaction = self.ledger_tx().await?;
        let checked = async {
            let may = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)";
            Ok(has_tables(&transaction).await? || get(&transaction.query_one(may, &[]).await?, 0)?)
        };
        let checked = checked.await;
        match release(transaction, checked).await? {
            true => Ok(()),
            false => Err(missing_ledger("this user may not create tables in the schema")),
        }
    }

    fn ledger_ddl(&self) -> &'static str {
        LEDGER
    }
}

#[async_trait]
impl Fencing for PostgresConnection {
    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        if fences.is_empty() {
            return Ok(Vec::new());
        }
        let jobs: Vec<_> = fences.iter().map(|fence| fence.chunk.job).collect();
        let chunks: Vec<_> = fences.iter().map(|fence| fence.chunk.number).collect();
        let epochs: Vec<_> = fences.iter().map(|fence| fence.epoch).collect();
        let lost: Vec<_> = fences.iter().map(|fence| fence.lost).collect();
        let nonces: Vec<_> = fences.iter().map(|fence| fence.nonce).collect();
        let params = [jobs.into(), chunks.into(), epochs.into(), lost.into(), nonces.into()];
        let sql = include_str!("../../sql/postgres/fence.sql");
        let rows = self.db.single(&fence_settings(), sql, &params).await?;
        let mut raised = HashMap::new();
        for row in &rows {
            let row = ledger(row)?;
            raised.insert(row.chunk, row);
        }
        Ok(fences.iter().map(|fence| raised.remove(&fence.chunk)).collect())
    }

    async fn fence_again(&self, own: &Ledger) -> Result<Option<Ledger>> {
        let sql = include_str!("../../sql/postgres/lock.sql");
        let rows = self.db.single(&fence_settings(), sql, &lock(own)).await?;
        rows.first().map(ledger).transpose()
    }

    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>> {
        let params = [Param::from(job), Param::from(after), Param::from(limit)];
        let transaction = self.ledger_tx().await?;
        let sql = include_str!("../../sql/postgres/ledger_rows.sql");
        let rows = transaction.query(sql, &params).await;
        let rows = release(transaction, rows.map_err(ConnectorError::from)).await?;
        let row = |row| {
            Ok(LedgerRow {
                ledger: ledger(row)?,
                deferred: get(row, 12)?,
                dead: get(row, 13)?,
                emitted: get(row, 14)?,
                emitted_rows: get(row, 15)?,
            })
        };
        rows.iter().map(row).collect()
    }
}

/// A worker that lost its lease may still lock a row while its statement runs. The short lock timeout
/// keeps that from blocking the rest of this process.
fn fence_settings() -> String {
    format!("{LEDGER_SETTINGS}; SET LOCAL lock_timeout = '5s'")
}

/// The parameters that identify the row of a lease.
pub(super) fn lock<'a>(ledger: &Ledger) -> [Param<'a>; 4] {
    let chunk = ledger.chunk;
    [chunk.job.into(), chunk.number.into(), ledger.epoch.into(), ledger.nonce.into()]
}

/// Whether the tables exist.
pub(super) async fn exists(data: &PostgresConnection) -> Result<bool> {
    let transaction = data.ledger_tx().await?;
    let exists = has_tables(&transaction).await;
    release(transaction, exists).await
}

async fn has_tables(transaction: &Transaction) -> Result<bool> {
    let sql = "SELECT to_regclass('windlass_ledger') IS NOT NULL \
               AND to_regclass('windlass_deferred') IS NOT NULL \
               AND to_regclass('windlass_emitted') IS NOT NULL \
               AND to_regclass('windlass_stores') IS NOT NULL";
    get(&transaction.query_one(sql, &[]).await?, 0)
}

/// Runs statements that create tables.
pub(super) async fn create(data: &PostgresConnection, ddl: &str) -> Result<()> {
    let transaction = data.db.transaction(LEDGER_SETTINGS).await?;
    let outcome = async {
        // Without the lock, two processes that create tables at once conflict in the catalog.
        let lock = Param::from(CREATE_LOCK);
        transaction.query("SELECT pg_advisory_xact_lock($1)", &[lock]).await?;
        transaction.batch(ddl).await
    };
    let outcome = outcome.await;
    finish(transaction, outcome.map_err(ConnectorError::from)).await
}

/// The key of the advisory lock: `windlass` in ASCII.
const CREATE_LOCK: i64 = 0x7769_6e64_6c61_7373;
