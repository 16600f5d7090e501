//! Runs a statement on a few records, in a transaction that is rolled back, or only prepares it.

use super::{MysqlConnection, read, release, write};
use crate::predicate::Bounds;
use crate::prepare::{Forms, refused};
use crate::sql::Dialect;
use crate::{DryRun, Preview, Result, Scope, WriteItem, statement};
use async_trait::async_trait;
use windlass_core::{KeySet, Keys};
use windlass_drivers::mysql::Transaction;

#[async_trait]
impl DryRun for MysqlConnection {
    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
        let mut transaction = self.write_tx(scope).await?;
        let outcome = run_statement(&mut transaction, scope, key_set).await;
        release(transaction, outcome).await
    }

    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        let mut transaction = self.write_tx(scope).await?;
        let outcome = write::write(self, &mut transaction, scope, vec![item]).await;
        release(transaction, outcome.map(drop)).await
    }
}

/// Prepares the statements of a job type.
pub(super) async fn prepare(transaction: &mut Transaction, scope: &Scope) -> Result<()> {
    let forms = Forms::of(Dialect::Mysql, scope);
    for (field, sql) in forms.statements()? {
        let prepared = transaction.columns(&sql.text).await;
        prepared.map_err(|error| refused(scope, field, error.into()))?;
    }
    for (field, lookup) in forms.lookups() {
        for sql in [lookup.larger_than(1), lookup.keys()] {
            let prepared = transaction.columns(&sql.text).await;
            prepared.map_err(|error| refused(scope, &field, error.into()))?;
        }
    }
    Ok(())
}

/// The first records of a key set, before and after the statement.
async fn run_statement(
    transaction: &mut Transaction,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<Vec<Preview>> {
    let select =
        statement::select(Dialect::Mysql, scope, key_set, Bounds::All, Preview::MAX_RECORDS);
    let before = read::fetch(transaction, scope, &select).await?;
    if before.is_empty() {
        return Ok(Vec::new());
    }
    let keys = before.iter().map(|item| item.key.clone()).collect();
    let sample = KeySet::new(key_set.within.clone(), Keys::List(keys));
    let step = statement::step(Dialect::Mysql, scope, &sample)?;
    transaction.execute(&step.text, step.values()).await?;
    // By key alone, since the statement may have changed what `source.where` tests.
    let select = statement::select(Dialect::Mysql, scope, &sample, Bounds::Keys, u32::MAX.into());
    let after = read::fetch(transaction, scope, &select).await?;
    Ok(Preview::pair(before, after))
}
