//! The outbox: rows are read, submitted and then removed. Nothing is locked meanwhile, since the
//! store may be in the same file; two relays that submit one row submit one job.

use super::{SqliteData, failed};
use crate::outbox::{Answers, BATCH, Due, Outbox, OutboxRow, Relayed, Unsettled, Waiting};
use crate::{DataError, Result, Submitter};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use std::time::Duration;
use windlass_core::JobId;

/// The statements that make the outbox.
const OUTBOX: &str = include_str!("../../sql/sqlite/outbox.sql");

/// Nobody says when another process has written to the file; catalog_tx is cheap.
const POLL: Duration = Duration::from_millis(200);

#[async_trait]
impl Outbox for SqliteData {
    async fn prepare(&self) -> Result<()> {
        if self.read(has_table).await? {
            return Ok(());
        }
        self.write(|transaction| transaction.execute_batch(OUTBOX).map_err(failed)).await
    }

    fn ddl(&self) -> &'static str {
        OUTBOX
    }

    async fn relay(&self, door: &dyn Submitter) -> Result<Relayed> {
        let rows = self.read(due).await?;
        let mut answers = Answers::default();
        for due in &rows {
            let (id, error) = (due.id, due.error.clone());
            // Another relay may have removed it meanwhile.
            let Some(given) = self.read(move |connection| load(connection, id, error)).await?
            else {
                continue;
            };
            if answers.keep(due, door.submit(given).await).is_break() {
                break;
            }
        }
        if answers.taken.is_empty() && answers.refused.is_empty() {
            return Ok(answers.relayed(rows.len(), Unsettled::default()));
        }
        self.write(move |transaction| {
            let unsettled = settle(transaction, &answers);
            Ok(answers.relayed(rows.len(), unsettled))
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

    async fn changed(&self, at_most: Duration) {
        tokio::time::sleep(at_most.min(POLL)).await;
    }
}

fn has_table(connection: &Connection) -> Result<bool> {
    // By a statement: the library's own answer may be that of the schema as it was before.
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'windlass_outbox')";
    connection.query_row(sql, [], |row| row.get(0)).map_err(failed)
}

fn due(connection: &Connection) -> Result<Vec<Due>> {
    let sql = include_str!("../../sql/sqlite/outbox_due.sql");
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement.query([BATCH]).map_err(failed)?;
    let mut due = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        due.push(Due {
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
    let given = |row: &Row<'_>| {
        Ok(OutboxRow { id, job_type: text(row, 0)?, request: text(row, 1)?, error })
    };
    statement.query_row([id.to_string()], given).optional().map_err(failed)
}

/// What is no text must not keep the others from being read: what stands for it is refused.
fn text(row: &Row<'_>, place: usize) -> rusqlite::Result<String> {
    let text = match row.get_ref(place)? {
        ValueRef::Text(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        _ => None,
    };
    Ok(text.unwrap_or_else(|| "\"this is no UTF-8 text\"".to_owned()))
}

/// Removes the rows that became jobs and updates the refused ones. A row whose change fails does not
/// keep the others from being settled: SQLite undoes only the statement that failed.
fn settle(transaction: &Transaction<'_>, answers: &Answers) -> Unsettled {
    let refused = answers.refused.iter().map(|(id, error, wait)| {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        let sql = include_str!("../../sql/sqlite/outbox_refused.sql");
        (id, transaction.execute(sql, params![id.to_string(), error, wait]))
    });
    let taken = answers.taken.iter().map(|id| {
        let sql = include_str!("../../sql/sqlite/outbox_taken.sql");
        (id, transaction.execute(sql, [id.to_string()]))
    });
    let mut unsettled = Unsettled::default();
    for (id, settled) in refused.chain(taken) {
        if let Err(error) = settled {
            unsettled.add(*id, &failed(error));
        }
    }
    unsettled
}

fn id(row: &Row<'_>) -> Result<JobId> {
    let text: String = row.get(0).map_err(failed)?;
    text.parse().map_err(|_| DataError::Unreadable(format!("the outbox has the id {text}")))
}

/// A count that is out of range must not keep the other rows from being read.
fn attempts(row: &Row<'_>, place: usize) -> u32 {
    row.get(place).unwrap_or(u32::MAX)
}

fn time(row: &Row<'_>, place: usize) -> Result<DateTime<Utc>> {
    let time: i64 = row.get(place).map_err(failed)?;
    Ok(DateTime::from_timestamp_millis(time).unwrap_or_default())
}
