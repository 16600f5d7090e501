//! The outbox. Rows stay locked while they are submitted, so that several relays can share the work.

use super::row::get;
use super::{LEDGER_SETTINGS, PostgresConnection, finish, release};
use crate::outbox::{
    DueRow, MAX_ROWS, Outbox, OutboxRow, OutboxType, RelayResults, Relayed, RowFailures, Waiting,
};
use crate::{ConnectorError, Result, Submitter};
use async_trait::async_trait;
use std::time::Duration;
use windlass_core::Problem;
use windlass_core::problem::Code;
use windlass_drivers::{Param, Transaction};

/// The statements that create the outbox.
const OUTBOX: &str = include_str!("../../sql/postgres/outbox.sql");

#[async_trait]
impl Outbox for PostgresConnection {
    async fn prepare(&self, types: &[OutboxType]) -> Result<()> {
        let transaction = self.ledger_tx().await?;
        let exists = is_created(&transaction).await;
        if !release(transaction, exists).await? {
            match super::fence::create(self, OUTBOX).await {
                Err(error) if !error.is_retryable() => {
                    let detail = format!(
                        "the outbox's tables and function are missing or of an earlier version, and cannot be \
                         created: {error}; run `windlass migrate --print` and have them created"
                    );
                    return Err(Problem::new(Code::Ledger, detail).into());
                }
                outcome => outcome?,
            }
        }
        if types.is_empty() {
            return Ok(());
        }
        let transaction = self.ledger_tx().await?;
        let recorded = record_types(&transaction, types).await;
        finish(transaction, recorded).await
    }

    fn ddl(&self) -> &'static str {
        OUTBOX
    }

    async fn relay(&self, submitter: &dyn Submitter) -> Result<Relayed> {
        let due = include_str!("../../sql/postgres/outbox_due.sql");
        let (transaction, rows) =
            self.db.transaction_with(LEDGER_SETTINGS, due, &[Param::from(MAX_ROWS)]).await?;
        let relayed = async {
            let mut results = RelayResults::default();
            for row in &rows {
                let attempts = get::<i32>(row, 1)?.try_into().unwrap_or_default();
                let due = DueRow { id: get(row, 0)?, attempts, error: get(row, 2)? };
                let result = submitter.submit(load(&transaction, &due).await?).await;
                if results.record(&due, result).is_break() {
                    break;
                }
            }
            let failures = apply_results(&transaction, &results).await?;
            Ok(results.relayed(rows.len(), failures))
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

    async fn changed(&self, timeout: Duration) {
        self.outbox_listener.wait(timeout).await;
    }
}

async fn load(transaction: &Transaction, due: &DueRow) -> Result<OutboxRow> {
    let sql = include_str!("../../sql/postgres/outbox_request.sql");
    let row = transaction.query_one(sql, &[due.id.into()]).await?;
    Ok(OutboxRow {
        id: due.id,
        job_type: get(&row, 0)?,
        request: get(&row, 1)?,
        error: due.error.clone(),
    })
}

/// Deletes the rows that became jobs and updates the refused ones. A row whose change fails does not
/// affect the others.
async fn apply_results(transaction: &Transaction, results: &RelayResults) -> Result<RowFailures> {
    let mut failures = RowFailures::default();
    let refused = include_str!("../../sql/postgres/outbox_refused.sql");
    for (id, error, wait) in &results.refused {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        let params = [Param::from(*id), Param::from(error.as_str()), Param::from(wait)];
        if let Err(error) = in_savepoint(transaction, refused, &params).await? {
            failures.add(*id, &error);
        }
    }
    let submitted = include_str!("../../sql/postgres/outbox_submitted.sql");
    let all = [Param::from(results.submitted.clone())];
    if results.submitted.is_empty() || in_savepoint(transaction, submitted, &all).await?.is_ok() {
        return Ok(failures);
    }
    for id in &results.submitted {
        if let Err(error) = in_savepoint(transaction, submitted, &[Param::from(vec![*id])]).await? {
            failures.add(*id, &error);
        }
    }
    Ok(failures)
}

/// Runs a statement under a savepoint, so that the transaction continues when only this one fails.
async fn in_savepoint(
    transaction: &Transaction,
    sql: &str,
    params: &[Param<'_>],
) -> Result<std::result::Result<(), ConnectorError>> {
    transaction.batch("SAVEPOINT row").await?;
    let done = transaction.execute(sql, params).await;
    let end = if done.is_ok() { "RELEASE row" } else { "ROLLBACK TO row; RELEASE row" };
    transaction.batch(end).await?;
    Ok(done.map(drop).map_err(ConnectorError::from))
}

/// Records what `windlass_enqueue` checks.
async fn record_types(transaction: &Transaction, types: &[OutboxType]) -> Result<()> {
    let names: Vec<&str> = types.iter().map(|checked| checked.job_type.as_str()).collect();
    let lists: Vec<Option<&str>> = types.iter().map(|checked| checked.list.as_deref()).collect();
    let units: Vec<Option<&str>> = types.iter().map(|checked| checked.unit.as_deref()).collect();
    let params = [
        Param::Texts(names.into_iter().map(Some).collect()),
        Param::Texts(lists),
        Param::Texts(units),
    ];
    transaction.execute(include_str!("../../sql/postgres/outbox_types.sql"), &params).await?;
    Ok(())
}

async fn has_table(transaction: &Transaction) -> Result<bool> {
    let sql = "SELECT to_regclass('windlass_outbox') IS NOT NULL";
    get(&transaction.query_one(sql, &[]).await?, 0)
}

async fn is_created(transaction: &Transaction) -> Result<bool> {
    // A function with another search path could run code of other roles.
    let sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_proc \
               WHERE oid = to_regprocedure('windlass_enqueue(text, jsonb)') \
               AND proconfig = ARRAY['search_path=pg_catalog, pg_temp'])";
    let function = get(&transaction.query_one(sql, &[]).await?, 0)?;
    let sql = "SELECT to_regclass('windlass_outbox_types') IS NOT NULL";
    let types = get(&transaction.query_one(sql, &[]).await?, 0)?;
    Ok(function && types && has_table(transaction).await?)
}
