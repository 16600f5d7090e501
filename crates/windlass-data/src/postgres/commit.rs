//! One commit: compare-and-set on the ledger, the effect, held items; all or nothing.

use super::{PostgresData, finish, held, row, write};
use crate::sql::Dialect;
use crate::{Commit, Committed, DataError, Effect, Held, Ledger, Result, Scope, statement};
use windlass_core::{Counts, Extent, Part};
use windlass_db::{Param, Transaction};

/// Commits one batch.
pub(super) async fn commit(
    data: &PostgresData,
    scope: &Scope,
    ledger: &Ledger,
    commit: Commit,
) -> Result<Committed> {
    let transaction = data.writing(scope).await?;
    let outcome = in_transaction(data, &transaction, scope, ledger, commit).await;
    finish(transaction, outcome).await
}

/// Marks the rows of a chunk in a transaction of their own.
pub(super) async fn mark(
    data: &PostgresData,
    scope: &Scope,
    ledger: &Ledger,
    extent: &Extent,
) -> Result<()> {
    let Some(sql) = statement::mark(Dialect::Postgres, scope, extent)? else { return Ok(()) };
    let transaction = data.writing(scope).await?;
    let outcome = async {
        let chunk = ledger.chunk;
        let params = [chunk.job.into(), chunk.number.into(), ledger.epoch.into()];
        let lock = include_str!("../../sql/postgres/lock.sql");
        if transaction.query_opt(lock, &params).await?.is_none() {
            return Err(DataError::LeaseLost);
        }
        transaction.execute(&sql.text, &sql.params()).await?;
        Ok(())
    };
    let outcome = outcome.await;
    finish(transaction, outcome).await
}

async fn in_transaction(
    data: &PostgresData,
    transaction: &Transaction,
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
    let mut ledger = advance(transaction, ledger, &cursor.to_text(), counts).await?;
    let (found, conflicted) = apply(data, transaction, scope, effect).await?;
    hold.extend(conflicted);
    // First out, then in: an item that was held and met a conflict again is in both.
    held::settle(transaction, ledger.chunk, &settle).await?;
    held::hold(transaction, ledger.chunk, &hold).await?;
    if found != Counts::default() {
        recount(transaction, &mut ledger, found).await?;
    }
    Ok(Committed { ledger })
}

/// The compare-and-set. No row: somebody else has the chunk, or this commit has happened.
async fn advance(
    transaction: &Transaction,
    ledger: &Ledger,
    cursor: &str,
    counts: Counts,
) -> Result<Ledger> {
    let params = [
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
    ];
    let sql = include_str!("../../sql/postgres/advance.sql");
    match transaction.query_opt(sql, &params).await? {
        Some(advanced) => row::ledger(&advanced),
        None => Err(DataError::LeaseLost),
    }
}

/// Adds what only the effect could know.
async fn recount(transaction: &Transaction, ledger: &mut Ledger, found: Counts) -> Result<()> {
    let params = [
        Param::from(ledger.chunk.job),
        Param::from(ledger.chunk.number),
        Param::from(found.read),
        Param::from(found.processed),
        Param::from(found.skipped),
        Param::from(found.dead),
        Param::from(found.conflicts),
    ];
    transaction.execute(include_str!("../../sql/postgres/recount.sql"), &params).await?;
    ledger.counts += found;
    Ok(())
}

/// The effect on the user's data, what it adds to the counts, and the items to hold.
async fn apply(
    data: &PostgresData,
    transaction: &Transaction,
    scope: &Scope,
    effect: Effect,
) -> Result<(Counts, Vec<Held>)> {
    match effect {
        Effect::Nothing => Ok(Default::default()),
        Effect::Unmark(extent) => {
            unmark(transaction, scope, &extent).await?;
            Ok(Default::default())
        }
        Effect::Statement(extent) => {
            let counts = run(transaction, scope, &extent).await?;
            unmark(transaction, scope, &extent).await?;
            Ok((counts, Vec::new()))
        }
        Effect::Write(items) => write::write(data, transaction, scope, items).await,
    }
}

/// Runs the step's statement: rows affected are processed, the others skipped.
async fn run(transaction: &Transaction, scope: &Scope, extent: &Extent) -> Result<Counts> {
    let step = statement::step(Dialect::Postgres, scope, extent)?;
    let read = match &extent.part {
        // Keys without a record are part of what was asked for.
        Part::Keys(keys) => keys.len() as i64,
        Part::Range(_) => {
            let count = statement::count(Dialect::Postgres, scope, extent);
            row::get(&transaction.query_one(&count.text, &count.params()).await?, 0)?
        }
    };
    let affected = transaction.execute(&step.text, &step.params()).await? as i64;
    Ok(Counts {
        read: read.max(affected),
        processed: affected,
        skipped: (read - affected).max(0),
        ..Counts::default()
    })
}

async fn unmark(transaction: &Transaction, scope: &Scope, extent: &Extent) -> Result<()> {
    if let Some(sql) = statement::unmark(Dialect::Postgres, scope, extent)? {
        transaction.execute(&sql.text, &sql.params()).await?;
    }
    Ok(())
}
