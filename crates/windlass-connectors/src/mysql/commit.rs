//! One commit: compare-and-set on the ledger, the effect, deferred items; all or nothing.

use super::{MysqlConnection, deferred, fence, finish, read, row, write};
use crate::sql::Dialect;
use crate::write::item_error;
use crate::{
    Commit, Committed, Committing, ConnectorError, DeferredItem, Effect, Ledger, Marked, Result,
    Scope, statement,
};
use async_trait::async_trait;
use windlass_core::{Counts, Cursor, KeySet, Keys};
use windlass_drivers::mysql::Transaction;

#[async_trait]
impl Committing for MysqlConnection {
    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed> {
        let mut transaction = self.write_tx(scope).await?;
        let outcome = within(self, &mut transaction, scope, ledger, commit).await;
        let ledger = finish(transaction, outcome).await?;
        Ok(Committed { ledger })
    }

    async fn mark(&self, scope: &Scope, ledger: &Ledger, key_set: &KeySet) -> Result<Marked> {
        let Some(sql) = statement::mark(Dialect::Mysql, scope, key_set)? else {
            return Ok(Marked::default());
        };
        let mut transaction = self.write_tx(scope).await?;
        let outcome = async {
            let lock = include_str!("../../sql/mysql/lock.sql");
            if transaction.query(lock, fence::lock(ledger)).await?.is_empty() {
                return Err(ConnectorError::LeaseLost);
            }
            transaction.execute(&sql.text, sql.values()).await?;
            let count = statement::count_marked(Dialect::Mysql, scope, key_set);
            let rows = transaction.query(&count.text, count.values()).await?;
            let numbers = |row| (0..=scope.key().len()).map(|n| row::int(row, n)).collect();
            rows.first().map_or(Ok(Vec::new()), numbers)
        };
        let outcome = outcome.await.map(Marked::new);
        finish(transaction, outcome).await
    }
}

async fn within(
    data: &MysqlConnection,
    transaction: &mut Transaction,
    scope: &Scope,
    ledger: &Ledger,
    commit: Commit,
) -> Result<Ledger> {
    let Commit { cursor, effect, mut counts, mut defer, resolve } = commit;
    // Items count as processed unless they have a conflict, which is rare. So most commits write the
    // ledger row once.
    if let Effect::Write(items) = &effect {
        counts.processed += items.len() as i64;
    }
    let mut ledger = advance(transaction, ledger, cursor, counts).await?;
    let (found, conflicted) = apply(data, transaction, scope, effect, counts).await?;
    defer.extend(conflicted);
    // Delete first: an item that was deferred and had a conflict again is in both lists.
    deferred::resolve(transaction, ledger.chunk, &resolve).await?;
    deferred::defer(transaction, ledger.chunk, &defer).await?;
    if found != Counts::default() {
        recount(transaction, &mut ledger, found).await?;
    }
    Ok(ledger)
}

/// The compare-and-set. No row: another worker has the chunk, or this commit was applied before.
///
/// MySQL does not return the updated row. That is not needed: a row with the expected epoch and number of
/// commits is the row that was read, since every commit and every lease changes one of them.
pub(super) async fn advance(
    transaction: &mut Transaction,
    ledger: &Ledger,
    cursor: Cursor,
    counts: Counts,
) -> Result<Ledger> {
    let params = vec![
        cursor.to_text().into(),
        counts.read.into(),
        counts.processed.into(),
        counts.skipped.into(),
        counts.dead.into(),
        counts.conflicts.into(),
        ledger.chunk.job.to_string().into(),
        ledger.chunk.number.into(),
        ledger.epoch.into(),
        ledger.nonce.into(),
        ledger.commits.into(),
    ];
    let sql = include_str!("../../sql/mysql/advance.sql");
    if transaction.execute(sql, params).await? == 0 {
        return Err(ConnectorError::LeaseLost);
    }
    let mut advanced = Ledger { cursor, commits: ledger.commits + 1, ..ledger.clone() };
    advanced.counts += counts;
    Ok(advanced)
}

/// Adds the counts of the effect.
async fn recount(transaction: &mut Transaction, ledger: &mut Ledger, found: Counts) -> Result<()> {
    let params = vec![
        found.read.into(),
        found.processed.into(),
        found.skipped.into(),
        found.dead.into(),
        found.conflicts.into(),
        ledger.chunk.job.to_string().into(),
        ledger.chunk.number.into(),
    ];
    transaction.execute(include_str!("../../sql/mysql/recount.sql"), params).await?;
    ledger.counts += found;
    Ok(())
}

/// Applies the effect. Returns what it adds to the counts, and the items to defer.
async fn apply(
    data: &MysqlConnection,
    transaction: &mut Transaction,
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

/// Runs the step's statement. Matched rows count as processed, the others as skipped.
async fn run(
    transaction: &mut Transaction,
    scope: &Scope,
    key_set: &KeySet,
    expected: Counts,
) -> Result<Counts> {
    let step = statement::step(Dialect::Mysql, scope, key_set)?;
    let read = match &key_set.keys {
        _ if statement::touches_all(scope, key_set)? => None,
        // Keys without a record count as read.
        Keys::List(keys) => Some(keys.len() as i64),
        Keys::Range(_) => Some(read::count(transaction, scope, key_set).await?),
    };
    let affected = transaction.execute(&step.text, step.values()).await? as i64;
    statement::outcome(scope, expected, read.unwrap_or(affected), affected)
}

async fn unmark(transaction: &mut Transaction, scope: &Scope, key_set: &KeySet) -> Result<()> {
    if let Some(sql) = statement::unmark(Dialect::Mysql, scope, key_set)? {
        transaction.execute(&sql.text, sql.values()).await?;
    }
    Ok(())
}
