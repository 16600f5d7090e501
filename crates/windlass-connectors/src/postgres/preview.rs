//! Runs a statement on a few records and rolls it back, or only prepares it.

use super::{PostgresConnection, cut, read, release, write};
use crate::predicate::Bounds;
use crate::prepare::{Forms, refused, source_field};
use crate::sql::{Dialect, Sql};
use crate::{DryRun, Preview, Result, Scope, WriteItem, statement};
use async_trait::async_trait;
use windlass_core::{KeySet, Keys};
use windlass_drivers::Transaction;

#[async_trait]
impl DryRun for PostgresConnection {
    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
        let transaction = self.write_tx(scope).await?;
        let outcome = run_statement(&transaction, scope, key_set).await;
        release(transaction, outcome).await
    }

    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        let transaction = self.write_tx(scope).await?;
        let outcome = write::write(self, &transaction, scope, &[item], write::Report::Items).await;
        release(transaction, outcome.map(drop)).await
    }
}

/// Prepares the statements of a job type. EXPLAIN also checks the privileges.
pub(super) async fn prepare(transaction: &Transaction, scope: &Scope) -> Result<()> {
    let forms = Forms::of(Dialect::Postgres, scope);
    for (field, sql) in forms.statements()? {
        explain(transaction, scope, field, &sql).await?;
    }
    for scope in forms.scopes() {
        let walked = cut::prepare(transaction, scope, &forms.ranges()).await;
        walked.map_err(|error| refused(scope, source_field(scope), error))?;
    }
    for (field, lookup) in forms.lookups() {
        for sql in [lookup.larger_than(1), lookup.keys()] {
            explain(transaction, scope, &field, &sql).await?;
        }
    }
    Ok(())
}

async fn explain(
    transaction: &Transaction,
    scope: &Scope,
    field: &str,
    sql: &Sql<'_>,
) -> Result<()> {
    let explained = transaction.query(&format!("EXPLAIN {}", sql.text), &sql.params()).await;
    explained.map_err(|error| refused(scope, field, error.into()))?;
    Ok(())
}

async fn run_statement(
    transaction: &Transaction,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<Vec<Preview>> {
    transaction.batch("SET LOCAL DateStyle = 'ISO'").await?;
    let select =
        statement::select(Dialect::Postgres, scope, key_set, Bounds::All, Preview::MAX_RECORDS);
    let before = read::fetch(transaction, scope, &select).await?;
    if before.is_empty() {
        return Ok(Vec::new());
    }
    let keys = before.iter().map(|item| item.key.clone()).collect();
    let sample = KeySet::new(key_set.within.clone(), Keys::List(keys));
    let step = statement::step(Dialect::Postgres, scope, &sample)?;
    transaction.execute(&step.text, &step.params()).await?;
    // By key alone, since the statement may have changed what `source.where` tests.
    let select =
        statement::select(Dialect::Postgres, scope, &sample, Bounds::Keys, u32::MAX.into());
    let after = read::fetch(transaction, scope, &select).await?;
    Ok(Preview::pair(before, after))
}
