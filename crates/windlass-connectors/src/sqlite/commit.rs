//! One commit: compare-and-set on the ledger, the effect, held items; all or nothing.

use super::{deferred, failed, row, write};
use crate::sql::Dialect;
use crate::{Commit, Committed, DataError, DeferredItem, Effect, Ledger, Result, Scope, statement};
use rusqlite::{OptionalExtension as _, Transaction, params};
use windlass_core::{Counts, KeySet, Keys};

/// Commits one batch.
pub(super) fn commit(
    transaction: &Transaction<'_>,
    scope: &Scope,
    ledger: &Ledger,
    commit: Commit,
) -> Result<Committed> {
    let Commit { cursor, effect, mut counts, mut hold, settle } = commit;
    // Items count as processed until one turns out to be a conflict, which is rare: so most
    // commits touch the ledger once.
    if let Effect::Write(items) = &effect {
        counts.processed += items.len() as i64;
    }
    let mut ledger = advance(transaction, ledger, &cursor.to_text(), counts)?;
    let (found, conflicted) = apply(transaction, scope, effect, counts)?;
    hold.extend(conflicted);
    // First out, then in: an item that was held and met a conflict again is in both.
    deferred::settle(transaction, ledger.chunk, &settle)?;
    deferred::hold(transaction, ledger.chunk, &hold)?;
    if found != Counts::default() {
        recount(transaction, &mut ledger, found)?;
    }
    Ok(Committed { ledger })
}

/// Marks the rows of a chunk in a transaction of their own.
pub(super) fn mark(
    transaction: &Transaction<'_>,
    scope: &Scope,
    ledger: &Ledger,
    key_set: &KeySet,
) -> Result<()> {
    let Some(sql) = statement::mark(Dialect::Sqlite, scope, key_set)? else { return Ok(()) };
    let lock = include_str!("../../sql/sqlite/lock.sql");
    let params =
        params![ledger.chunk.job.to_string(), ledger.chunk.number, ledger.epoch, ledger.nonce];
    let locked = transaction.query_row(lock, params, |_| Ok(())).optional().map_err(failed)?;
    if locked.is_none() {
        return Err(DataError::LeaseLost);
    }
    row::execute(transaction, &sql)?;
    Ok(())
}

/// The compare-and-set. No row: somebody else has the chunk, or this commit has happened.
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
    advanced.optional().map_err(failed)?.unwrap_or(Err(DataError::LeaseLost))
}

/// Adds what only the effect could know.
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

/// The effect on the user's data, what it adds to the counts, and the items to hold.
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
        Effect::Write(items) => write::write(transaction, scope, items),
    }
}

/// Runs the step's statement: rows affected are processed, the others skipped.
fn run(
    transaction: &Transaction<'_>,
    scope: &Scope,
    key_set: &KeySet,
    expected: Counts,
) -> Result<Counts> {
    let step = statement::step(Dialect::Sqlite, scope, key_set)?;
    let read = match &key_set.keys {
        _ if statement::touches_all(scope, key_set)? => None,
        // Keys without a record are part of what was asked for.
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
