//! One commit: compare-and-set on the ledger, the effect, deferred items; all or nothing.

use super::group_commit::Advance;
use super::write::Report;
use super::{
    LEDGER_SETTINGS, PostgresConnection, deferred, fence, finish, row, write, write_settings,
};
use crate::sql::Dialect;
use crate::write::item_error;
use crate::{
    Commit, Committed, Committing, ConnectorError, DeferredItem, Effect, Ledger, Marked, Result,
    Scope, statement,
};
use async_trait::async_trait;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use windlass_core::{Counts, JobId, KeySet, Keys};
use windlass_drivers::{Error, Param, Transaction};

#[async_trait]
impl Committing for PostgresConnection {
    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed> {
        let Commit { cursor, effect, mut counts, mut defer, resolve } = commit;
        // Items count as processed unless they have a conflict, which is rare. So most commits write the
        // ledger row once.
        if let Effect::Write(items) = &effect {
            counts.processed += items.len() as i64;
        }
        if effect.is_none() && defer.is_empty() && resolve.is_empty() {
            let (ledger, durability) = (ledger.clone(), scope.job_type.chunk.durability);
            let advance = Advance { ledger, cursor: cursor.to_text(), counts, durability };
            let ledger = self.group_commit.advance(&self.db, advance).await?;
            return Ok(Committed { ledger });
        }
        let params = advance(ledger, cursor.to_text(), counts);
        let sql = include_str!("../../sql/postgres/advance.sql");
        let settings = write_settings(scope);
        let mut report = self.conflicts.report(scope);
        loop {
            let advanced = self.db.transaction_with(&settings, sql, &params).await;
            // The effects follow only when it is known that the transaction has begun and has the row.
            let (transaction, advanced) = advanced.map_err(not_advanced)?;
            let outcome = async {
                let ledger = row::ledger(advanced.first().ok_or(ConnectorError::LeaseLost)?)?;
                let applied = apply(self, &transaction, scope, &effect, counts, report).await?;
                let Some((found, conflicted)) = applied else { return Ok(None) };
                defer.extend(conflicted);
                // Delete first: an item that was deferred and had a conflict again is in both lists.
                deferred::resolve(&transaction, ledger.chunk, &resolve).await?;
                deferred::defer(&transaction, ledger.chunk, &defer).await?;
                Ok(Some((ledger, found)))
            };
            match outcome.await {
                Ok(Some((ledger, found))) if found == Counts::default() => {
                    transaction.commit().await?;
                    return Ok(Committed { ledger });
                }
                Ok(Some((mut ledger, found))) => {
                    let sql = include_str!("../../sql/postgres/recount.sql");
                    transaction.execute_and_commit(sql, &recount(&ledger, found)).await?;
                    ledger.counts += found;
                    return Ok(Committed { ledger });
                }
                // Nothing is committed. The next round returns the items that it updates.
                Ok(None) => {
                    transaction.rollback().await?;
                    self.conflicts.found();
                    report = Report::Items;
                }
                Err(error) => return finish(transaction, Err(error)).await,
            }
        }
    }

    async fn flush(&self, rows: &[Ledger]) -> Result<Vec<bool>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let number = |of: fn(&Ledger) -> i64| -> Param<'_> {
            rows.iter().map(of).collect::<Vec<_>>().into()
        };
        let params = [
            rows.iter().map(|row| row.chunk.job).collect::<Vec<_>>().into(),
            number(|row| row.chunk.number),
            number(|row| row.epoch),
            number(|row| row.nonce),
            number(|row| row.commits),
        ];
        let sql = include_str!("../../sql/postgres/flush.sql");
        let kept = self.db.single(LEDGER_SETTINGS, sql, &params).await?;
        let kept = kept.iter().map(|row| Ok((row::get(row, 0)?, row::get(row, 1)?)));
        let kept = kept.collect::<Result<HashSet<(JobId, i64)>>>()?;
        Ok(rows.iter().map(|row| kept.contains(&(row.chunk.job, row.chunk.number))).collect())
    }

    async fn mark(&self, scope: &Scope, ledger: &Ledger, key_set: &KeySet) -> Result<Marked> {
        let Some(sql) = statement::mark(Dialect::Postgres, scope, key_set)? else {
            return Ok(Marked::default());
        };
        let transaction = self.write_tx(scope).await?;
        let outcome = async {
            let lock = include_str!("../../sql/postgres/lock.sql");
            if transaction.query_opt(lock, &fence::lock(ledger)).await?.is_none() {
                return Err(ConnectorError::LeaseLost);
            }
            transaction.execute(&sql.text, &sql.params()).await?;
            let count = statement::count_marked(Dialect::Postgres, scope, key_set);
            let counted = transaction.query_one(&count.text, &count.params()).await?;
            (0..=scope.key().len()).map(|n| row::get(&counted, n)).collect::<Result<_>>()
        };
        let outcome = outcome.await.map(Marked::new);
        finish(transaction, outcome).await
    }
}

/// Whether updates have met conflicts recently. Then they return which items they update: writing a batch twice
/// costs more.
#[derive(Default)]
pub(super) struct RecentConflicts {
    /// How many more commits expect conflicts.
    expected: AtomicU32,
}

/// The number of commits after a conflict that expect conflicts too.
const EXPECTED_AFTER_CONFLICT: u32 = 16;

impl RecentConflicts {
    /// How the next commit reports conflicts. If several records may have one key, the number of rows does not
    /// tell whether every item was updated.
    fn report(&self, scope: &Scope) -> Report {
        let fewer = |expected: u32| expected.checked_sub(1);
        let expected = self.expected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        match expected.is_ok() || scope.key_may_repeat() {
            true => Report::Items,
            false => Report::Count,
        }
    }

    fn found(&self) {
        self.expected.store(EXPECTED_AFTER_CONFLICT, Ordering::Relaxed);
    }
}

/// The SQLSTATE of the compare-and-set if no row is as expected: a division by zero.
const NO_ROW: &str = "22012";

/// The error of the compare-and-set.
pub(super) fn not_advanced(error: Error) -> ConnectorError {
    match error.code.as_deref() {
        // Another worker has the chunk, or this commit was applied before.
        Some(NO_ROW) => ConnectorError::LeaseLost,
        _ => error.into(),
    }
}

/// The parameters of the compare-and-set.
pub(super) fn advance<'a>(ledger: &Ledger, cursor: String, counts: Counts) -> [Param<'a>; 11] {
    [
        Param::from(ledger.chunk.job),
        Param::from(ledger.chunk.number),
        Param::from(ledger.epoch),
        Param::from(ledger.commits),
        Param::from(cursor),
        Param::from(counts.read),
        Param::from(counts.processed),
        Param::from(counts.skipped),
        Param::from(counts.dead),
        Param::from(counts.conflicts),
        Param::from(ledger.nonce),
    ]
}

/// The parameters that add the counts of the effect.
fn recount<'a>(ledger: &Ledger, found: Counts) -> [Param<'a>; 7] {
    [
        Param::from(ledger.chunk.job),
        Param::from(ledger.chunk.number),
        Param::from(found.read),
        Param::from(found.processed),
        Param::from(found.skipped),
        Param::from(found.dead),
        Param::from(found.conflicts),
    ]
}

/// Applies the effect. Returns what it adds to the counts, and the items to defer, or `None` as [`write::write`].
async fn apply(
    data: &PostgresConnection,
    transaction: &Transaction,
    scope: &Scope,
    effect: &Effect,
    expected: Counts,
    report: Report,
) -> Result<Option<(Counts, Vec<DeferredItem>)>> {
    match effect {
        Effect::Nothing => Ok(Some(Default::default())),
        Effect::Unmark(key_set) => {
            unmark(transaction, scope, key_set).await?;
            Ok(Some(Default::default()))
        }
        Effect::Statement(key_set) => {
            let counts = run(transaction, scope, key_set, expected).await?;
            unmark(transaction, scope, key_set).await?;
            Ok(Some((counts, Vec::new())))
        }
        Effect::Write(items) => {
            write::write(data, transaction, scope, items, report).await.map_err(item_error)
        }
    }
}

/// Runs the step's statement. Affected rows count as processed, the others as skipped.
async fn run(
    transaction: &Transaction,
    scope: &Scope,
    key_set: &KeySet,
    expected: Counts,
) -> Result<Counts> {
    let step = statement::step(Dialect::Postgres, scope, key_set)?;
    let step_params = step.params();
    let run = transaction.execute(&step.text, &step_params);
    let (read, affected) = match &key_set.keys {
        _ if statement::touches_all(scope, key_set)? => {
            let affected = run.await?;
            (affected as i64, affected)
        }
        // Keys without a record count as read.
        Keys::List(keys) => (keys.len() as i64, run.await?),
        Keys::Range(_) => {
            let count = statement::count(Dialect::Postgres, scope, key_set);
            let count_params = count.params();
            // Pipelined: sent together, run one after the other.
            let (counted, affected) =
                tokio::join!(biased; transaction.query_one(&count.text, &count_params), run);
            (row::get(&counted?, 0)?, affected?)
        }
    };
    statement::outcome(scope, expected, read, affected as i64)
}

async fn unmark(transaction: &Transaction, scope: &Scope, key_set: &KeySet) -> Result<()> {
    if let Some(sql) = statement::unmark(Dialect::Postgres, scope, key_set)? {
        transaction.execute(&sql.text, &sql.params()).await?;
    }
    Ok(())
}
