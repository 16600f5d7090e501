//! The outbox: rows are read, submitted and then removed. Nothing is locked meanwhile; two relays that
//! submit one row submit one job.

use super::row::{int, text, value};
use super::{KEEPING, LOOKING, MysqlData, Transaction, finish, is_passing, release};
use crate::outbox::{Answers, BATCH, Due, Outbox, OutboxRow, Relayed, Unsettled, Waiting};
use crate::{DataError, Result, Submitter};
use async_trait::async_trait;
use chrono::{DateTime, NaiveDateTime, Utc};
use std::time::Duration;
use windlass_core::{JobId, Value};
use windlass_drivers::mysql::{Row, Value as MysqlValue};

/// The statements that make the outbox.
const OUTBOX: &str = include_str!("../../sql/mysql/outbox.sql");

/// Nobody says when something has come; catalog_tx is cheap.
const POLL: Duration = Duration::from_millis(200);

#[async_trait]
impl Outbox for MysqlData {
    async fn prepare(&self) -> Result<()> {
        let mut transaction = self.reading(LOOKING).await?;
        let there = has_table(&mut transaction).await;
        if release(transaction, there).await? {
            return Ok(());
        }
        let mut transaction = self.ledger_tx().await?;
        let made = transaction.batch(OUTBOX).await.map_err(DataError::from);
        finish(transaction, made).await
    }

    fn ddl(&self) -> &'static str {
        OUTBOX
    }

    async fn relay(&self, door: &dyn Submitter) -> Result<Relayed> {
        let mut transaction = self.reading(KEEPING).await?;
        let rows = due(&mut transaction).await;
        let rows = release(transaction, rows).await?;
        let mut answers = Answers::default();
        for due in &rows {
            let mut transaction = self.reading(KEEPING).await?;
            let given = load(&mut transaction, due).await;
            // Another relay may have removed it meanwhile.
            let Some(given) = release(transaction, given).await? else { continue };
            // A list of no items makes no job; here no trigger can leave the row out.
            if has_no_items(&given.request) {
                answers.taken.push(due.id);
                continue;
            }
            if answers.keep(due, door.submit(given).await).is_break() {
                break;
            }
        }
        let unsettled = self.settle(&answers).await?;
        Ok(answers.relayed(rows.len(), unsettled))
    }

    async fn waiting(&self, limit: u32) -> Result<Option<Vec<Waiting>>> {
        let mut transaction = self.reading(LOOKING).await?;
        let waiting = waiting(&mut transaction, limit).await;
        release(transaction, waiting).await
    }

    async fn changed(&self, at_most: Duration) {
        tokio::time::sleep(at_most.min(POLL)).await;
    }
}

async fn has_table(transaction: &mut Transaction) -> Result<bool> {
    let sql = "SELECT 1 FROM information_schema.tables \
               WHERE table_schema = database() AND table_name = 'windlass_outbox'";
    Ok(!transaction.query(sql, Vec::new()).await?.is_empty())
}

async fn due(transaction: &mut Transaction) -> Result<Vec<Due>> {
    let sql = include_str!("../../sql/mysql/outbox_due.sql");
    let rows = transaction.query(sql, vec![BATCH.into()]).await?;
    let due = |row: &Row| {
        let attempts = u32::try_from(int(row, 1)?).unwrap_or(u32::MAX);
        Ok(Due { id: id(row)?, attempts, error: value(row, 2, None)?.to_text() })
    };
    rows.iter().map(due).collect()
}

async fn load(transaction: &mut Transaction, due: &Due) -> Result<Option<OutboxRow>> {
    let sql = include_str!("../../sql/mysql/outbox_request.sql");
    let rows = transaction.query(sql, vec![due.id.to_string().into()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (job_type, request) = (text(row, 0)?, text(row, 1)?);
    Ok(Some(OutboxRow { id: due.id, job_type, request, error: due.error.clone() }))
}

fn has_no_items(request: &str) -> bool {
    let request: serde_json::Value = serde_json::from_str(request).unwrap_or_default();
    request["items"].as_array().is_some_and(Vec::is_empty)
}

impl MysqlData {
    /// Removes the rows that became jobs and updates the refused ones, in one transaction. Where that
    /// fails, each row has a transaction of its own, so that one row does not keep the others.
    async fn settle(&self, answers: &Answers) -> Result<Unsettled> {
        let mut unsettled = Unsettled::default();
        let (mut changes, mut ids) = (Vec::new(), Vec::new());
        for (id, error, wait) in &answers.refused {
            let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
            let sql = include_str!("../../sql/mysql/outbox_refused.sql");
            changes.push((sql, vec![error.as_str().into(), wait.into(), id.to_string().into()]));
            ids.push(id);
        }
        for id in &answers.taken {
            let sql = include_str!("../../sql/mysql/outbox_taken.sql");
            changes.push((sql, vec![id.to_string().into()]));
            ids.push(id);
        }
        if changes.is_empty() || self.change(&changes).await.is_ok() {
            return Ok(unsettled);
        }
        for (change, id) in changes.chunks(1).zip(ids) {
            match self.change(change).await {
                Err(error) if is_passing(&error) => return Err(error),
                Err(error) => unsettled.add(*id, &error),
                Ok(()) => {}
            }
        }
        Ok(unsettled)
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
    text.parse().map_err(|_| DataError::Unreadable(format!("the outbox has the id {text}")))
}

fn time(row: &Row, place: usize) -> Result<DateTime<Utc>> {
    let Value::Text(text) = value(row, place, None)? else { return Ok(DateTime::default()) };
    let time = NaiveDateTime::parse_from_str(&text, "%Y-%m-%d %H:%M:%S%.f");
    Ok(time.map(|time| time.and_utc()).unwrap_or_default())
}
