//! The ledger's tables, and raising its rows to an epoch.

use super::row::{int, ledger};
use super::{MysqlData, finish, is_passing, release};
use crate::{DataError, Fence, Ledger, LedgerRow, Result};
use std::collections::HashMap;
use windlass_core::problem::Code;
use windlass_core::{JobId, Problem};
use windlass_drivers::mysql::{Transaction, Value};

/// The statements that make the ledger.
pub(super) const LEDGER: &str = include_str!("../../sql/mysql/ledger.sql");

/// Makes the tables where they are missing. When they are there, no privilege to make them is
/// needed. Several processes may do so at once: each table is made once.
pub(super) async fn prepare(data: &MysqlData) -> Result<()> {
    let mut transaction = data.ledger_tx().await?;
    let outcome = async {
        if !is_there(&mut transaction).await? {
            transaction.batch(LEDGER).await?;
        }
        Ok(())
    };
    let outcome: Result<()> = outcome.await;
    match release(transaction, outcome).await {
        Err(error) if !is_passing(&error) => Err(missing(&error.to_string())),
        outcome => outcome,
    }
}

/// Whether the tables are there or may be made, without making them.
pub(super) async fn check(data: &MysqlData) -> Result<()> {
    let mut transaction = data.ledger_tx().await?;
    let checked =
        async { Ok(is_there(&mut transaction).await? || may_create(&mut transaction).await?) };
    let checked = checked.await;
    match release(transaction, checked).await? {
        true => Ok(()),
        false => Err(missing("this user may create no table in the database")),
    }
}

fn missing(why: &str) -> DataError {
    let detail = format!(
        "the ledger's tables are missing and cannot be made: {why}; \
         run `windlass migrate --print` and have them created"
    );
    Problem::new(Code::Ledger, detail).into()
}

/// Raises several rows at once, and reads them.
pub(super) async fn fence(data: &MysqlData, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
    if fences.is_empty() {
        return Ok(Vec::new());
    }
    let mut asked: Vec<&Fence> = fences.iter().collect();
    // Locked in key order, so that two processes never wait for each other in a circle.
    asked.sort_by_key(|fence| (fence.chunk.job.to_string(), fence.chunk.number));
    let asked: Vec<serde_json::Value> = asked
        .into_iter()
        .map(|Fence { chunk, epoch, lost, nonce }| {
            let lost = i32::from(*lost);
            serde_json::json!([chunk.job.to_string(), chunk.number, epoch, lost, nonce])
        })
        .collect();
    let asked = Value::from(serde_json::Value::Array(asked).to_string());
    let mut transaction = data.ledger_tx().await?;
    let outcome = async {
        let raise = include_str!("../../sql/mysql/fence.sql");
        transaction.execute(raise, vec![asked.clone()]).await?;
        let read = include_str!("../../sql/mysql/fenced.sql");
        Ok(transaction.query(read, vec![asked]).await?)
    };
    let outcome = outcome.await;
    let rows = finish(transaction, outcome).await?;
    let mut raised = HashMap::new();
    for row in &rows {
        let row = ledger(row)?;
        raised.insert(row.chunk, row);
    }
    // A row at a higher epoch or with another nonce was left as it is: another claim has the chunk.
    let ours = |fence: &Fence| {
        let is_ours = |row: &Ledger| row.epoch == fence.epoch && row.nonce == fence.nonce;
        raised.remove(&fence.chunk).filter(is_ours)
    };
    Ok(fences.iter().map(ours).collect())
}

pub(super) async fn is_there(transaction: &mut Transaction) -> Result<bool> {
    let sql = "SELECT count(*) FROM information_schema.tables WHERE table_schema = DATABASE() \
               AND table_name IN ('windlass_ledger', 'windlass_deferred', 'windlass_emitted', \
               'windlass_stores')";
    let rows = transaction.query(sql, Vec::new()).await?;
    Ok(rows.first().map_or(Ok(0), |row| int(row, 0))? == 4)
}

/// By what was granted to the user itself. What a role has is not shown alike everywhere, so with
/// one it takes trying.
async fn may_create(transaction: &mut Transaction) -> Result<bool> {
    let rows =
        transaction.query(include_str!("../../sql/mysql/may_create.sql"), Vec::new()).await?;
    Ok(rows.first().map_or(Ok(0), |row| int(row, 0))? > 0)
}

/// The rows of a job's chunks after this one, with what is kept beside them.
pub(super) async fn rows(
    data: &MysqlData,
    job: JobId,
    after: i64,
    limit: u32,
) -> Result<Vec<LedgerRow>> {
    let params = vec![job.to_string().into(), after.into(), limit.into()];
    let mut transaction = data.ledger_tx().await?;
    let sql = include_str!("../../sql/mysql/ledger_rows.sql");
    let rows = transaction.query(sql, params).await;
    let rows = release(transaction, rows.map_err(DataError::from)).await?;
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
