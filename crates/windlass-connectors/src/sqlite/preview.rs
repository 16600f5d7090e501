//! Runs a statement on a few records and rolls it back, or only prepares it.

use super::{SqliteConnection, failed, read, row, write};
use crate::predicate::Bounds;
use crate::prepare::{Forms, refused};
use crate::sql::Dialect;
use crate::{DryRun, Preview, Result, Scope, WriteItem, statement};
use async_trait::async_trait;
use rusqlite::{Connection, Transaction};
use windlass_core::{KeySet, Keys};

#[async_trait]
impl DryRun for SqliteConnection {
    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
        let (scope, key_set) = (scope.clone(), key_set.clone());
        self.write(move |transaction| preview(transaction, &scope, &key_set)).await
    }

    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        let scope = scope.clone();
        self.write(move |transaction| try_write(transaction, &scope, item)).await
    }
}

/// Prepares the statements of a job type.
pub(super) fn prepare(connection: &Connection, scope: &Scope) -> Result<()> {
    let forms = Forms::of(Dialect::Sqlite, scope);
    for (field, sql) in forms.statements()? {
        let prepared = connection.prepare(&sql.text).map(drop);
        prepared.map_err(|error| refused(scope, field, failed(error)))?;
    }
    for (field, lookup) in forms.lookups() {
        for sql in [lookup.larger_than(1), lookup.keys()] {
            let prepared = connection.prepare(&sql.text).map(drop);
            prepared.map_err(|error| refused(scope, &field, failed(error)))?;
        }
    }
    Ok(())
}

/// The first records of a key set, before and after the statement. The changes are rolled back to a
/// savepoint, so the surrounding transaction commits nothing.
pub(super) fn preview(
    transaction: &Transaction<'_>,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<Vec<Preview>> {
    rolled_back(transaction, || run_statement(transaction, scope, key_set))
}

/// Writes an item and rolls back.
pub(super) fn try_write(
    transaction: &Transaction<'_>,
    scope: &Scope,
    item: WriteItem,
) -> Result<()> {
    rolled_back(transaction, || write::write(transaction, scope, vec![item]).map(drop))
}

fn rolled_back<T>(transaction: &Transaction<'_>, work: impl FnOnce() -> Result<T>) -> Result<T> {
    transaction.execute_batch("SAVEPOINT windlass_preview").map_err(failed)?;
    let outcome = work()?;
    transaction
        .execute_batch("ROLLBACK TO windlass_preview; RELEASE windlass_preview")
        .map_err(failed)?;
    Ok(outcome)
}

fn run_statement(
    transaction: &Transaction<'_>,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<Vec<Preview>> {
    let select =
        statement::select(Dialect::Sqlite, scope, key_set, Bounds::All, Preview::MAX_RECORDS);
    let before = read::fetch(transaction, scope, &select, usize::MAX)?.into_items();
    if before.is_empty() {
        return Ok(Vec::new());
    }
    let keys = before.iter().map(|item| item.key.clone()).collect();
    let sample = KeySet::new(key_set.within.clone(), Keys::List(keys));
    row::execute(transaction, &statement::step(Dialect::Sqlite, scope, &sample)?)?;
    // By key alone, since the statement may have changed what `source.where` tests.
    let select = statement::select(Dialect::Sqlite, scope, &sample, Bounds::Keys, u32::MAX.into());
    let after = read::fetch(transaction, scope, &select, usize::MAX)?.into_items();
    Ok(Preview::pair(before, after))
}
