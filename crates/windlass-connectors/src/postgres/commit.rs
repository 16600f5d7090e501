//! One commit: compare-and-set on the ledger, the effect, deferred items; all or nothing.

use super::group_commit::Advance;
use super::{PostgresConnection, deferred, fence, finish, row, write, write_settings};
use crate::sql::Dialect;
use crate::write::item_error;
use crate::{
    Commit, Committed, Committing, ConnectorError, DeferredItem, Effect, Ledger, Marked, Result,
    Scope, statement,
};
use async_trait::async_trait;
use windlass_core::{Counts, KeySet, Keys};
use windlass_drivers::{Param, Transaction};

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
            let advance = Advance { ledger: ledger.clone(), cursor: cursor.to_text(), counts };
            let ledger = self.group_commit.advance(&self.db, advance).await?;
            return Ok(Committed { ledger });
        }
        let params = advance(ledger, cursor.to_text(), counts);
        let sql = include_str!("../../sql/postgres/advance.sql");
        let (transaction, advanced) =
            self.db.transaction_with(&write_settings(scope), sql, &params).await?;
        // No row: another worker has the chunk, or this commit was applied before.
        let Some(advanced) = advanced.first() else {
            let _ = transaction.rollback().await;
            return Err(ConnectorError::LeaseLost);
        };
        let outcome = async {
            let ledger = row::ledger(advanced)?;
            let (found, conflicted) = apply(self, &transaction, scope, effect, counts).await?;
            defer.extend(conflicted);
            // Delete first: an item that was deferred and had a conflict again is in both lists.
            deferred::resolve(&transaction, ledger.chunk, &resolve).await?;
            deferred::defer(&transaction, ledger.chunk, &defer).await?;
            Ok((ledger, found))
        };
        match outcome.await {
            Ok((ledger, found)) if found == Counts::default() => {
                transaction.commit().await?;
                Ok(Committed { ledger })
            }
            Ok((mut ledger, found)) => {
                let sql = include_str!("../../sql/postgres/recount.sql");
                transaction.execute_and_commit(sql, &recount(&ledger, found)).await?;
                ledger.counts += found;
                Ok(Committed { ledger })
            }
            Err(error) => finish(transaction, Err(error)).await,
        }
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

/// Applies the effect. Returns what it adds to the counts, and the items to defer.
async fn apply(
    data: &PostgresConnection,
    transaction: &Transaction,
    scope: &Scope,
    effect: Effect,
    expected: Counts,
) -> Result<(Counts, Vec<DeferredItem>)> {
    match effect {
        Effect::Nothing => Ok(Default::default()),
        Effect::Unmark(key_set) => {
            unmark(transaction, scope, &key_set).await?;
            Ok(Default::default())
        }
        Effect::Statement(key_set) => {
            let counts = run(transaction, scope, &key_set, expected).await?;
            unmark(transaction, scope, &key_set).await?;
            Ok((counts, Vec::new()))
        }
        Effect::Write(items) => {
            write::write(data, transaction, scope, items).await.map_err(item_error)
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
