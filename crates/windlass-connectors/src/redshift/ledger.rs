//! The ledger in Redshift: creates its tables, fences the row of a load, and keeps the generations of stores.

use super::{RedshiftConnection, fill, finish, literal, number, text};
use crate::ledger::missing_ledger;
use crate::{
    ConnectorError, Fence, Fencing, Ledger, LedgerHistory, LedgerRow, LedgerSchema, Result,
};
use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::{ChunkId, Counts, Cursor, JobId};
use windlass_drivers::{RedshiftTransaction, TextRow};

/// The statements that create the ledger.
const LEDGER: &str = include_str!("../../sql/redshift/ledger.sql");
/// The number of its tables.
const TABLES: i64 = 2;
/// Locks the ledger's table.
pub(super) const LOCK: &str = include_str!("../../sql/redshift/lock_ledger.sql");

#[async_trait]
impl LedgerSchema for RedshiftConnection {
    async fn prepare(&self) -> Result<()> {
        if self.has_ledger().await? {
            return Ok(());
        }
        let transaction = self.ledger_tx().await?;
        let created = transaction.execute(LEDGER).await.map(drop).map_err(ConnectorError::from);
        match finish(transaction, created).await {
            // Two processes may create the tables at once.
            Err(_) if self.has_ledger().await? => Ok(()),
            Err(error) if !error.is_retryable() => Err(missing_ledger(&error.to_string())),
            outcome => outcome,
        }
    }

    async fn check_ledger(&self) -> Result<()> {
        if self.has_ledger().await? {
            return Ok(());
        }
        let may = "SELECT has_schema_privilege(current_schema(), 'CREATE')";
        let may = self.read(may).await?;
        match may.first().map(|row| text(row, 0)).transpose()? {
            Some("t" | "true") => Ok(()),
            _ => Err(missing_ledger("this user may not create tables in the schema")),
        }
    }

    fn ledger_ddl(&self) -> &'static str {
        LEDGER
    }
}

#[async_trait]
impl Fencing for RedshiftConnection {
    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        let transaction = self.ledger_tx().await?;
        let fenced = async {
            transaction.execute(LOCK).await?;
            let mut fenced = Vec::with_capacity(fences.len());
            for fence in fences {
                fenced.push(raise(&transaction, fence).await?);
            }
            Ok(fenced)
        };
        let fenced = fenced.await;
        finish(transaction, fenced).await
    }

    async fn fence_again(&self, ledger: &Ledger) -> Result<Option<Ledger>> {
        let transaction = self.ledger_tx().await?;
        let found = async {
            transaction.execute(LOCK).await?;
            row_of(&transaction, ledger.chunk).await
        };
        let found = found.await;
        let found = finish(transaction, found).await?;
        Ok(found.filter(|row| row.epoch == ledger.epoch && row.nonce == ledger.nonce))
    }

    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>> {
        let rows = self.rows(job, after, limit).await?.into_iter();
        let row = |ledger| LedgerRow { ledger, deferred: 0, dead: 0, emitted: 0, emitted_rows: 0 };
        Ok(rows.map(row).collect())
    }
}

#[async_trait]
impl LedgerHistory for RedshiftConnection {
    async fn generation(&self, store: Uuid, connection: &str) -> Result<i64> {
        if !self.has_ledger().await? {
            return Ok(0);
        }
        let rows = self.read(&generation(store, connection)?).await?;
        rows.first().map_or(Ok(0), |row| number(row, 0))
    }

    async fn raise_generation(&self, store: Uuid, connection: &str, to: i64) -> Result<()> {
        if !self.has_ledger().await? {
            return Ok(());
        }
        let values = [
            ("store", literal(&store.to_string())?),
            ("generation", to.to_string()),
            ("connection", literal(connection)?),
        ];
        let transaction = self.ledger_tx().await?;
        let raised = async {
            transaction.execute(include_str!("../../sql/redshift/lock_stores.sql")).await?;
            let known = transaction.query(&generation(store, connection)?).await?;
            let sql = match known.is_empty() {
                true => include_str!("../../sql/redshift/insert_generation.sql"),
                false => include_str!("../../sql/redshift/raise_generation.sql"),
            };
            transaction.execute(&fill(sql, &values)).await?;
            Ok(())
        };
        let raised = raised.await;
        finish(transaction, raised).await
    }

    async fn rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<Ledger>> {
        match self.has_ledger().await? {
            true => self.read(&rows(job, after, limit)?).await?.iter().map(ledger).collect(),
            false => Ok(Vec::new()),
        }
    }

    async fn jobs(&self) -> Result<Vec<(JobId, u64)>> {
        if !self.has_ledger().await? {
            return Ok(Vec::new());
        }
        let rows = self.read(include_str!("../../sql/redshift/jobs.sql")).await?;
        rows.iter().map(|row| Ok((job_of(row)?, number(row, 1)?.unsigned_abs()))).collect()
    }
}

impl RedshiftConnection {
    async fn has_ledger(&self) -> Result<bool> {
        let found = self.read(include_str!("../../sql/redshift/has_ledger.sql")).await?;
        Ok(found.first().map_or(Ok(0), |row| number(row, 0))? == TABLES)
    }

    /// Deletes the ledger rows of a job.
    pub(super) async fn prune_rows(&self, job: JobId) -> Result<u64> {
        if !self.has_ledger().await? {
            return Ok(0);
        }
        let sql = include_str!("../../sql/redshift/prune.sql");
        let transaction = self.ledger_tx().await?;
        let deleted = transaction.execute(&fill(sql, &[("job", literal(&job.to_string())?)])).await;
        finish(transaction, deleted.map_err(ConnectorError::from)).await
    }
}

/// Raises the row of a chunk to the epoch of its lease, and creates it if it is missing. `None` if its epoch is higher,
/// or the same with another nonce. The table is locked.
async fn raise(transaction: &RedshiftTransaction, fence: &Fence) -> Result<Option<Ledger>> {
    let found = row_of(transaction, fence.chunk).await?;
    let sql = match &found {
        Some(row) if row.epoch > fence.epoch => return Ok(None),
        Some(row) if row.epoch == fence.epoch && row.nonce != fence.nonce => return Ok(None),
        Some(_) => include_str!("../../sql/redshift/raise_row.sql"),
        None => include_str!("../../sql/redshift/insert_row.sql"),
    };
    let lease = lease(fence.chunk, fence.epoch, fence.nonce)?;
    transaction.execute(&fill(sql, &lease)).await?;
    row_of(transaction, fence.chunk).await
}

/// The placeholders that identify the row of a lease.
pub(super) fn lease(chunk: ChunkId, epoch: i64, nonce: i64) -> Result<[(&'static str, String); 4]> {
    Ok([
        ("job", literal(&chunk.job.to_string())?),
        ("chunk", chunk.number.to_string()),
        ("epoch", epoch.to_string()),
        ("nonce", nonce.to_string()),
    ])
}

/// The ledger row of a chunk.
pub(super) async fn row_of(
    transaction: &RedshiftTransaction,
    chunk: ChunkId,
) -> Result<Option<Ledger>> {
    let found = transaction.query(&rows(chunk.job, chunk.number - 1, 1)?).await?;
    let row = found.first().map(ledger).transpose()?;
    Ok(row.filter(|row| row.chunk == chunk))
}

fn rows(job: JobId, after: i64, limit: u32) -> Result<String> {
    let values = [
        ("job", literal(&job.to_string())?),
        ("after", after.to_string()),
        ("limit", limit.to_string()),
    ];
    Ok(fill(include_str!("../../sql/redshift/rows.sql"), &values))
}

fn generation(store: Uuid, connection: &str) -> Result<String> {
    let values = [("store", literal(&store.to_string())?), ("connection", literal(connection)?)];
    Ok(fill(include_str!("../../sql/redshift/generation.sql"), &values))
}

fn job_of(row: &TextRow) -> Result<JobId> {
    let job = text(row, 0)?;
    job.parse().map_err(|_| ConnectorError::Unreadable(format!("`{job}` is not a job")))
}

fn ledger(row: &TextRow) -> Result<Ledger> {
    let (read, processed) = (number(row, 6)?, number(row, 7)?);
    Ok(Ledger {
        chunk: ChunkId { job: job_of(row)?, number: number(row, 1)? },
        epoch: number(row, 2)?,
        nonce: number(row, 3)?,
        commits: number(row, 4)?,
        cursor: Cursor::from_text(text(row, 5)?)?,
        counts: Counts { read, processed, ..Counts::default() },
        stalls: 0,
    })
}
