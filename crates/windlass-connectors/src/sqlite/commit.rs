//! One commit: compare-and-set on the ledger, the effect, deferred items; all or nothing.

use super::{SqliteConnection, deferred, failed, fence, row, write};
use crate::sql::Dialect;
use crate::write::item_error;
use crate::{
    Commit, Committed, Committing, ConnectorError, DeferredItem, Effect, Ledger, Marked, Result,
    Scope, statement,
};
use async_trait::async_trait;
use rusqlite::{OptionalExtension as _, Transaction, params};
use windlass_core::{Counts, KeySet, Keys};

#[async_trait]
impl Committing for SqliteConnection {
    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed> {
        let (scope, ledger) = (scope.clone(), ledger.clone());
        self.write(move |transaction| commit_batch(transaction, &scope, &ledger, commit)).await
    }

    async fn mark(&self, scope: &Scope, ledger: &Ledger, key_set: &KeySet) -> Result<Marked> {
        let (scope, ledger, key_set) = (scope.clone(), ledger.clone(), key_set.clone());
        self.write(move |transaction| mark(transaction, &scope, &ledger, &key_set)).await
    }
}

/// Commits one batch.
fn commit_batch(
    transaction: &Transaction<'_>,
    scope: &Scope,
    ledger: &Ledger,
    commit: Commit,
) -> Result<Committed> {
    let Commit { cursor, effect, mut counts, mut defer, resolve } = commit;
    // Items count as processed unless they have a conflict, which is rare. So most commits write the
    // ledger row once.
    if let Effect::Write(items) = &effect {
        counts.processed += items.len() as i64;
    }
    let mut ledger = advance(transaction, ledger, &cursor.to_text(), counts)?;
    let (found, conflicted) = apply(transaction, scope, effect, counts)?;
    defer.extend(conflicted);
    // Delete first: an item that was deferred and had a conflict again is in both lists.
    deferred::resolve(transaction, ledger.chunk, &resolve)?;
    deferred::defer(transaction, ledger.chunk, &defer)?;
    if found != Counts::default() {
        recount(transaction, &mut ledger, found)?;
    }
    Ok(Committed { ledger })
}

/// Marks the rows of a chunk in a separate transaction.
pub(super) fn mark(
    transaction: &Transaction<'_>,
    scope: &Scope,
    ledger: &Ledger,
    key_set: &KeySet,
) -> Result<Marked> {
    let Some(sql) = statement::mark(Dialect::Sqlite, scope, key_set)? else {
        return Ok(Marked::default());
    };
    if fence::lock(transaction, ledger)?.is_none() {
        return Err(ConnectorError::LeaseLost);
    }
    row::execute(transaction, &sql)?;
    let count = statement::count_marked(Dialect::Sqlite, scope, key_set);
    row::numbers(transaction, &count, scope.key().len() + 1).map(Marked::new)
}

/// The compare-and-set. No row: another worker has the chunk, or this commit was applied before.
pub(super) fn advance(
    transaction: &Transaction<'_>,
    ledger: &Ledger,
    cursor: &str,
    counts: Counts,
) -> Result<Ledger> {
    let sql = include_str!("../../sql/sqlite/advance.sql");
    let mut statement = transaction.prepare_cached(sql).map_err(failed)?;
    let chunk = ledger.chunk;
    let params = params![
        chunk.job.to_string(),
        chunk.number,
        ledger.epoch,
        ledger.commits,
        cursor,
        counts.read,
        counts.processed,
        counts.skipped,
        counts.dead,
        counts.conflicts,
        ledger.nonce,
    ];
    let advanced = statement.query_row(params, |row| Ok(row::ledger(row, chunk)));
    advanced.optional().map_err(failed)?.unwrap_or(Err(ConnectorError::LeaseLost))
}

/// Adds the counts of the effect.
fn recount(transaction: &Transaction<'_>, ledger: &mut Ledger, found: Counts) -> Result<()> {
    let sql = include_str!("../../sql/sqlite/recount.sql");
    let params = params![
        ledger.chunk.job.to_string(),
        ledger.chunk.number,
        found.read,
        found.processed,
        found.skipped,
        found.dead,
        found.conflicts,
    ];
    transaction.prepare_cached(sql).and_then(|mut s| s.execute(params)).map_err(failed)?;
    ledger.counts += found;
    Ok(())
}

/// Applies the effect. Returns what it adds to the counts, and the items to defer.
fn apply(
    transaction: &Transaction<'_>,
    scope: &Scope,
    effect: Effect,
    expected: Counts,
) -> Result<(Counts, Vec<DeferredItem>)> {
    match effect {
        Effect::Nothing => Ok(Default::default()),
        Effect::Unmark(key_set) => {
            unmark(transaction, scope, &key_set)?;
            Ok(Default::default())
        }
        Effect::Statement(key_set) => {
            let counts = run(transaction, scope, &key_set, expected)?;
            unmark(transaction, scope, &key_set)?;
            Ok((counts, Vec::new()))
        }
        Effect::Write(items) => write::write(transaction, scope, items).map_err(item_error),
    }
}

/// Runs the step's statement. Affected rows count as processed, the others as skipped.
fn run(
    transaction: &Transaction<'_>,
    scope: &Scope,
    key_set: &KeySet,
    expected: Counts,
) -> Result<Counts> {
    let step = statement::step(Dialect::Sqlite, scope, key_set)?;
    let read = match &key_set.keys {
        _ if statement::touches_all(scope, key_set)? => None,
        // Keys without a record count as read.
        Keys::List(keys) => Some(keys.len() as i64),
        Keys::Range(_) => {
            Some(row::number(transaction, &statement::count(Dialect::Sqlite, scope, key_set))?)
        }
    };
    let affected = row::execute(transaction, &step)?;
    statement::outcome(scope, expected, read.unwrap_or(affected), affected)
}

fn unmark(transaction: &Transaction<'_>, scope: &Scope, key_set: &KeySet) -> Result<()> {
    if let Some(sql) = statement::unmark(Dialect::Sqlite, scope, key_set)? {
        row::execute(transaction, &sql)?;
    }
    Ok(())
}
