//! The outbox. Rows are read, submitted and then deleted, without locks in between: two relays that submit
//! the same row submit the same job.

use super::row::{int, text, value};
use super::{CATALOG_TIMEOUT, LEDGER_TIMEOUT, MysqlConnection, Transaction, finish, release};
use crate::outbox::{
    DueRow, MAX_ROWS, Outbox, OutboxRow, OutboxType, RelayResults, Relayed, RowFailures, Waiting,
};
use crate::{ConnectorError, Result, Submitter};
use async_trait::async_trait;
use chrono::{DateTime, NaiveDateTime, Utc};
use std::time::Duration;
use windlass_core::{JobId, Value};
use windlass_drivers::mysql::{Row, Value as MysqlValue};

/// The statements that create the outbox.
const OUTBOX: &str = include_str!("../../sql/mysql/outbox.sql");

/// MySQL has no notifications, and polling is cheap.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[async_trait]
impl Outbox for MysqlConnection {
    /// Constraints cannot read another table, so the relay checks what depends on the job type.
    async fn prepare(&self, _: &[OutboxType]) -> Result<()> {
        let mut transaction = self.read_tx(CATALOG_TIMEOUT).await?;
        let exists = has_table(&mut transaction).await;
        if release(transaction, exists).await? {
            return Ok(());
        }
        let mut transaction = self.ledger_tx().await?;
        let created = transaction.batch(OUTBOX).await.map_err(ConnectorError::from);
        finish(transaction, created).await
    }

    fn ddl(&self) -> &'static str {
        OUTBOX
    }

    async fn relay(&self, submitter: &dyn Submitter) -> Result<Relayed> {
        let mut transaction = self.read_tx(LEDGER_TIMEOUT).await?;
        let rows = due(&mut transaction).await;
        let rows = release(transaction, rows).await?;
        let mut results = RelayResults::default();
        for due in &rows {
            let mut transaction = self.read_tx(LEDGER_TIMEOUT).await?;
            let row = load(&mut transaction, due).await;
            // Another relay may have deleted it.
            let Some(row) = release(transaction, row).await? else { continue };
            if results.record(due, submitter.submit(row).await).is_break() {
                break;
            }
        }
        let failures = self.apply_results(&results).await?;
        Ok(results.relayed(rows.len(), failures))
    }

    async fn waiting(&self, limit: u32) -> Result<Option<Vec<Waiting>>> {
        let mut transaction = self.read_tx(CATALOG_TIMEOUT).await?;
        let waiting = waiting(&mut transaction, limit).await;
        release(transaction, waiting).await
    }

    async fn changed(&self, timeout: Duration) {
        tokio::time::sleep(timeout.min(POLL_INTERVAL)).await;
    }
}

async fn has_table(transaction: &mut Transaction) -> Result<bool> {
    let sql = "SELECT 1 FROM information_schema.tables \
               WHERE table_schema = database() AND table_name = 'windlass_outbox'";
    Ok(!transaction.query(sql, Vec::new()).await?.is_empty())
}

async fn due(transaction: &mut Transaction) -> Result<Vec<DueRow>> {
    let sql = include_str!("../../sql/mysql/outbox_due.sql");
    let rows = transaction.query(sql, vec![MAX_ROWS.into()]).await?;
    let due = |row: &Row| {
        let attempts = u32::try_from(int(row, 1)?).unwrap_or(u32::MAX);
        Ok(DueRow { id: id(row)?, attempts, error: value(row, 2, None)?.to_text() })
    };
    rows.iter().map(due).collect()
}

async fn load(transaction: &mut Transaction, due: &DueRow) -> Result<Option<OutboxRow>> {
    let sql = include_str!("../../sql/mysql/outbox_request.sql");
    let rows = transaction.query(sql, vec![due.id.to_string().into()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (job_type, request) = (text(row, 0)?, text(row, 1)?);
    Ok(Some(OutboxRow { id: due.id, job_type, request, error: due.error.clone() }))
}

impl MysqlConnection {
    /// Deletes the rows that became jobs and updates the refused ones in one transaction. If that fails,
    /// uses one transaction per row, so that a failing row does not affect the others.
    async fn apply_results(&self, results: &RelayResults) -> Result<RowFailures> {
        let mut failures = RowFailures::default();
        let (mut changes, mut ids) = (Vec::new(), Vec::new());
        for (id, error, wait) in &results.refused {
            let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
            let sql = include_str!("../../sql/mysql/outbox_refused.sql");
            changes.push((sql, vec![error.as_str().into(), wait.into(), id.to_string().into()]));
            ids.push(id);
        }
        for id in &results.submitted {
            let sql = include_str!("../../sql/mysql/outbox_submitted.sql");
            changes.push((sql, vec![id.to_string().into()]));
            ids.push(id);
        }
        if changes.is_empty() || self.change(&changes).await.is_ok() {
            return Ok(failures);
        }
        for (change, id) in changes.chunks(1).zip(ids) {
            match self.change(change).await {
                Err(error) if error.is_retryable() => return Err(error),
                Err(error) => failures.add(*id, &error),
                Ok(()) => {}
            }
        }
        Ok(failures)
    }

    /// Runs statements in one transaction.
    async fn change(&self, changes: &[(&str, Vec<MysqlValue>)]) -> Result<()> {
        let mut transaction = self.ledger_tx().await?;
        let changed = async {
            for (sql, params) in changes {
                transaction.execute(sql, params.clone()).await?;
            }
            Ok(())
        };
        let changed = changed.await;
        finish(transaction, changed).await
    }
}

async fn waiting(transaction: &mut Transaction, limit: u32) -> Result<Option<Vec<Waiting>>> {
    if !has_table(transaction).await? {
        return Ok(None);
    }
    let sql = include_str!("../../sql/mysql/outbox_waiting.sql");
    let rows = transaction.query(sql, vec![limit.into()]).await?;
    let waiting = |row: &Row| {
        Ok(Waiting {
            id: id(row)?,
            job_type: text(row, 1)?,
            created_at: time(row, 2)?,
            attempts: u32::try_from(int(row, 3)?).unwrap_or(u32::MAX),
            error: value(row, 4, None)?.to_text(),
            next_at: time(row, 5)?,
        })
    };
    rows.iter().map(waiting).collect::<Result<_>>().map(Some)
}

fn id(row: &Row) -> Result<JobId> {
    let text = text(row, 0)?;
    text.parse().map_err(|_| ConnectorError::Unreadable(format!("the outbox has the id {text}")))
}

fn time(row: &Row, index: usize) -> Result<DateTime<Utc>> {
    let Value::Text(text) = value(row, index, None)? else { return Ok(DateTime::default()) };
    let time = NaiveDateTime::parse_from_str(&text, "%Y-%m-%d %H:%M:%S%.f");
    Ok(time.map(|time| time.and_utc()).unwrap_or_default())
}
