//! A statement tried on a few records and taken back.

use super::{failed, read, row, write};
use crate::predicate::Bounds;
use crate::sql::Dialect;
use crate::{Preview, Result, Scope, WriteItem, statement};
use rusqlite::Transaction;
use windlass_core::{KeySet, Keys};

/// The first records of an key_set, before and after. Whatever the statement did is rolled back to
/// the savepoint, and the transaction that is committed around it is empty.
pub(super) fn preview(
    transaction: &Transaction<'_>,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<Vec<Preview>> {
    taken_back(transaction, || try_out(transaction, scope, key_set))
}

/// Writes an item back and takes it back.
pub(super) fn try_write(
    transaction: &Transaction<'_>,
    scope: &Scope,
    item: WriteItem,
) -> Result<()> {
    taken_back(transaction, || write::write(transaction, scope, vec![item]).map(drop))
}

fn taken_back<T>(transaction: &Transaction<'_>, work: impl FnOnce() -> Result<T>) -> Result<T> {
    transaction.execute_batch("SAVEPOINT windlass_preview").map_err(failed)?;
    let outcome = work()?;
    transaction
        .execute_batch("ROLLBACK TO windlass_preview; RELEASE windlass_preview")
        .map_err(failed)?;
    Ok(outcome)
}

fn try_out(transaction: &Transaction<'_>, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
    let select = statement::select(Dialect::Sqlite, scope, key_set, Bounds::All, Preview::SHOWN);
    let (before, _) = read::fetch(transaction, scope, &select, usize::MAX)?;
    if before.is_empty() {
        return Ok(Vec::new());
    }
    let keys = before.iter().map(|item| item.key.clone()).collect();
    let few = KeySet { within: key_set.within.clone(), keys: Keys::List(keys) };
    row::execute(transaction, &statement::step(Dialect::Sqlite, scope, &few)?)?;
    // By key alone: the statement may have moved the records out of the fixed condition.
    let select = statement::select(Dialect::Sqlite, scope, &few, Bounds::Keys, u32::MAX.into());
    let (after, _) = read::fetch(transaction, scope, &select, usize::MAX)?;
    Ok(Preview::pair(before, after))
}
