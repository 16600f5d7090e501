//! The outbox: rows stay locked while they are submitted, so that several relays share the work.

use super::row::get;
use super::{KEEPING, PostgresData, finish, is_passing, listener::Ear, release};
use crate::outbox::{Answers, BATCH, Due, Outbox, OutboxRow, Relayed, Unsettled, Waiting};
use crate::{DataError, Result, Submitter};
use async_trait::async_trait;
use std::time::Duration;
use windlass_core::Problem;
use windlass_core::problem::Code;
use windlass_drivers::{Param, Transaction};

/// The statements that make the outbox.
const OUTBOX: &str = include_str!("../../sql/postgres/outbox.sql");

/// The channel that `windlass_enqueue` notifies.
pub(super) fn ear(db: &windlass_drivers::Postgres) -> Ear {
    Ear::new(db.clone(), "windlass_outbox")
}

#[async_trait]
impl Outbox for PostgresData {
    async fn prepare(&self) -> Result<()> {
        let transaction = self.ledger_tx().await?;
        let there = is_there(&transaction).await;
        if release(transaction, there).await? {
            return Ok(());
        }
        match super::fence::create(self, OUTBOX).await {
            Err(error) if !is_passing(&error) => {
                let detail = format!(
                    "the outbox's table and function are missing and cannot be made: {error}; \
                     run `windlass migrate --print` and have them created"
                );
                Err(Problem::new(Code::Ledger, detail).into())
            }
            outcome => outcome,
        }
    }

    fn ddl(&self) -> &'static str {
        OUTBOX
    }

    async fn relay(&self, door: &dyn Submitter) -> Result<Relayed> {
        let due = include_str!("../../sql/postgres/outbox_due.sql");
        let (transaction, rows) =
            self.db.transaction_with(KEEPING, due, &[Param::from(BATCH)]).await?;
        let relayed = async {
            let mut answers = Answers::default();
            for row in &rows {
                let attempts = get::<i32>(row, 1)?.try_into().unwrap_or_default();
                let due = Due { id: get(row, 0)?, attempts, error: get(row, 2)? };
                let answer = door.submit(load(&transaction, &due).await?).await;
                if answers.keep(&due, answer).is_break() {
                    break;
                }
            }
            let unsettled = settle(&transaction, &answers).await?;
            Ok(answers.relayed(rows.len(), unsettled))
        };
        let relayed = relayed.await;
        finish(transaction, relayed).await
    }

    async fn waiting(&self, limit: u32) -> Result<Option<Vec<Waiting>>> {
        let transaction = self.ledger_tx().await?;
        let waiting = async {
            if !has_table(&transaction).await? {
                return Ok(None);
            }
            let sql = include_str!("../../sql/postgres/outbox_waiting.sql");
            let rows = transaction.query(sql, &[Param::from(limit)]).await?;
            let waiting = |row| {
                Ok(Waiting {
                    id: get(row, 0)?,
                    job_type: get(row, 1)?,
                    created_at: get(row, 2)?,
                    attempts: get::<i32>(row, 3)?.try_into().unwrap_or_default(),
                    error: get(row, 4)?,
                    next_at: get(row, 5)?,
                })
            };
            rows.iter().map(waiting).collect::<Result<_>>().map(Some)
        };
        let waiting = waiting.await;
        release(transaction, waiting).await
    }

    async fn changed(&self, at_most: Duration) {
        self.ear.wait(at_most).await;
    }
}

async fn load(transaction: &Transaction, due: &Due) -> Result<OutboxRow> {
    let sql = include_str!("../../sql/postgres/outbox_request.sql");
    let row = transaction.query_one(sql, &[due.id.into()]).await?;
    Ok(OutboxRow {
        id: due.id,
        job_type: get(&row, 0)?,
        request: get(&row, 1)?,
        error: due.error.clone(),
    })
}

/// Removes the rows that became jobs and updates the refused ones. A row whose change fails does not
/// keep the others from being settled.
async fn settle(transaction: &Transaction, answers: &Answers) -> Result<Unsettled> {
    let mut unsettled = Unsettled::default();
    let refused = include_str!("../../sql/postgres/outbox_refused.sql");
    for (id, error, wait) in &answers.refused {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        let params = [Param::from(*id), Param::from(error.as_str()), Param::from(wait)];
        if let Err(error) = alone(transaction, refused, &params).await? {
            unsettled.add(*id, &error);
        }
    }
    let taken = include_str!("../../sql/postgres/outbox_taken.sql");
    let all = [Param::from(answers.taken.clone())];
    if answers.taken.is_empty() || alone(transaction, taken, &all).await?.is_ok() {
        return Ok(unsettled);
    }
    for id in &answers.taken {
        if let Err(error) = alone(transaction, taken, &[Param::from(vec![*id])]).await? {
            unsettled.add(*id, &error);
        }
    }
    Ok(unsettled)
}

/// Runs a statement under a savepoint, so that the transaction continues when only this one fails.
async fn alone(
    transaction: &Transaction,
    sql: &str,
    params: &[Param<'_>],
) -> Result<std::result::Result<(), DataError>> {
    transaction.batch("SAVEPOINT row").await?;
    let done = transaction.execute(sql, params).await;
    let end = if done.is_ok() { "RELEASE row" } else { "ROLLBACK TO row; RELEASE row" };
    transaction.batch(end).await?;
    Ok(done.map(drop).map_err(DataError::from))
}

async fn has_table(transaction: &Transaction) -> Result<bool> {
    let sql = "SELECT to_regclass('windlass_outbox') IS NOT NULL";
    get(&transaction.query_one(sql, &[]).await?, 0)
}

async fn is_there(transaction: &Transaction) -> Result<bool> {
    // One with another search path could be made to run code of other roles.
    let sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_proc \
               WHERE oid = to_regprocedure('windlass_enqueue(text, jsonb)') \
               AND proconfig = ARRAY['search_path=pg_catalog, pg_temp'])";
    let function = get(&transaction.query_one(sql, &[]).await?, 0)?;
    Ok(function && has_table(transaction).await?)
}
