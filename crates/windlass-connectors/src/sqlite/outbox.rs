//! The outbox. Rows are read, submitted and then deleted, without locks in between, since the store may be in
//! the same file: two relays that submit the same row submit the same job.

use super::{SqliteConnection, failed};
use crate::outbox::{
    DueRow, MAX_ROWS, Outbox, OutboxRow, OutboxType, RelayResults, Relayed, RowFailures, Waiting,
};
use crate::{ConnectorError, Result, Submitter};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use std::time::Duration;
use windlass_core::JobId;

/// The statements that create the outbox.
const OUTBOX: &str = include_str!("../../sql/sqlite/outbox.sql");

/// SQLite has no notifications, and polling is cheap.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[async_trait]
impl Outbox for SqliteConnection {
    async fn prepare(&self, types: &[OutboxType]) -> Result<()> {
        if !self.read(is_created).await? {
            self.write(|transaction| transaction.execute_batch(OUTBOX).map_err(failed)).await?;
        }
        let mut types = types.to_vec();
        self.write(move |transaction| {
            let sql = include_str!("../../sql/sqlite/outbox_types.sql");
            for OutboxType { job_type, list, unit } in types.drain(..) {
                transaction.execute(sql, params![job_type, list, unit]).map_err(failed)?;
            }
            Ok(())
        })
        .await
    }

    fn ddl(&self) -> &'static str {
        OUTBOX
    }

    async fn relay(&self, submitter: &dyn Submitter) -> Result<Relayed> {
        let rows = self.read(due).await?;
        let mut results = RelayResults::default();
        for due in &rows {
            let (id, error) = (due.id, due.error.clone());
            // Another relay may have deleted it.
            let Some(row) = self.read(move |connection| load(connection, id, error)).await? else {
                continue;
            };
            if results.record(due, submitter.submit(row).await).is_break() {
                break;
            }
        }
        if results.submitted.is_empty() && results.refused.is_empty() {
            return Ok(results.relayed(rows.len(), RowFailures::default()));
        }
        self.write(move |transaction| {
            let failures = apply_results(transaction, &results);
            Ok(results.relayed(rows.len(), failures))
        })
        .await
    }

    async fn waiting(&self, limit: u32) -> Result<Option<Vec<Waiting>>> {
        self.read(move |connection| {
            if !has_table(connection)? {
                return Ok(None);
            }
            let sql = include_str!("../../sql/sqlite/outbox_waiting.sql");
            let mut statement = connection.prepare(sql).map_err(failed)?;
            let mut rows = statement.query([limit]).map_err(failed)?;
            let mut waiting = Vec::new();
            while let Some(row) = rows.next().map_err(failed)? {
                waiting.push(Waiting {
                    id: id(row)?,
                    job_type: row.get(1).map_err(failed)?,
                    created_at: time(row, 2)?,
                    attempts: attempts(row, 3),
                    error: row.get(4).map_err(failed)?,
                    next_at: time(row, 5)?,
                });
            }
            Ok(Some(waiting))
        })
        .await
    }

    async fn changed(&self, timeout: Duration) {
        tokio::time::sleep(timeout.min(POLL_INTERVAL)).await;
    }
}

fn has_table(connection: &Connection) -> Result<bool> {
    // By a query, since the library's own check may use an outdated schema.
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'windlass_outbox')";
    connection.query_row(sql, [], |row| row.get(0)).map_err(failed)
}

fn is_created(connection: &Connection) -> Result<bool> {
    let sql = "SELECT count(*) = 2 FROM sqlite_master \
               WHERE name IN ('windlass_outbox_types', 'windlass_outbox_one_unit')";
    let checks: bool = connection.query_row(sql, [], |row| row.get(0)).map_err(failed)?;
    Ok(checks && has_table(connection)?)
}

fn due(connection: &Connection) -> Result<Vec<DueRow>> {
    let sql = include_str!("../../sql/sqlite/outbox_due.sql");
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement.query([MAX_ROWS]).map_err(failed)?;
    let mut due = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        due.push(DueRow {
            id: id(row)?,
            attempts: attempts(row, 1),
            error: row.get(2).ok().flatten(),
        });
    }
    Ok(due)
}

fn load(connection: &Connection, id: JobId, error: Option<String>) -> Result<Option<OutboxRow>> {
    let sql = include_str!("../../sql/sqlite/outbox_request.sql");
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    let to_row = |row: &Row<'_>| {
        Ok(OutboxRow { id, job_type: text(row, 0)?, request: text(row, 1)?, error })
    };
    statement.query_row([id.to_string()], to_row).optional().map_err(failed)
}

/// A value that is not text is replaced by one that will be refused, so that the other rows are read.
fn text(row: &Row<'_>, index: usize) -> rusqlite::Result<String> {
    let text = match row.get_ref(index)? {
        ValueRef::Text(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        _ => None,
    };
    Ok(text.unwrap_or_else(|| "\"this is not UTF-8 text\"".to_owned()))
}

/// Deletes the rows that became jobs and updates the refused ones. A failing row does not affect the
/// others, since SQLite undoes only the failed statement.
fn apply_results(transaction: &Transaction<'_>, results: &RelayResults) -> RowFailures {
    let refused = results.refused.iter().map(|(id, error, wait)| {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        let sql = include_str!("../../sql/sqlite/outbox_refused.sql");
        (id, transaction.execute(sql, params![id.to_string(), error, wait]))
    });
    let submitted = results.submitted.iter().map(|id| {
        let sql = include_str!("../../sql/sqlite/outbox_submitted.sql");
        (id, transaction.execute(sql, [id.to_string()]))
    });
    let mut failures = RowFailures::default();
    for (id, result) in refused.chain(submitted) {
        if let Err(error) = result {
            failures.add(*id, &failed(error));
        }
    }
    failures
}

fn id(row: &Row<'_>) -> Result<JobId> {
    let text: String = row.get(0).map_err(failed)?;
    text.parse().map_err(|_| ConnectorError::Unreadable(format!("the outbox has the id {text}")))
}

/// A count out of range must not prevent reading the other rows.
fn attempts(row: &Row<'_>, index: usize) -> u32 {
    row.get(index).unwrap_or(u32::MAX)
}

fn time(row: &Row<'_>, index: usize) -> Result<DateTime<Utc>> {
    let time: i64 = row.get(index).map_err(failed)?;
    Ok(DateTime::from_timestamp_millis(time).unwrap_or_default())
}
