//! A statement tried on a few records and taken back.

use super::{PostgresData, read, release};
use crate::predicate::Bounds;
use crate::sql::Dialect;
use crate::{Preview, Result, Scope, statement};
use windlass_core::{KeySet, Keys};
use windlass_drivers::Transaction;

/// The first records of an key_set, before and after.
pub(super) async fn preview(
    data: &PostgresData,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<Vec<Preview>> {
    let transaction = data.write_tx(scope).await?;
    let outcome = try_out(&transaction, scope, key_set).await;
    release(transaction, outcome).await
}

async fn try_out(
    transaction: &Transaction,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<Vec<Preview>> {
    transaction.batch("SET LOCAL DateStyle = 'ISO'").await?;
    let select = statement::select(Dialect::Postgres, scope, key_set, Bounds::All, Preview::SHOWN);
    let before = read::fetch(transaction, scope, &select).await?;
    if before.is_empty() {
        return Ok(Vec::new());
    }
    let keys = before.iter().map(|item| item.key.clone()).collect();
    let few = KeySet { within: key_set.within.clone(), keys: Keys::List(keys) };
    let step = statement::step(Dialect::Postgres, scope, &few)?;
    transaction.execute(&step.text, &step.params()).await?;
    // By key alone: the statement may have moved the records out of the fixed condition.
    let select = statement::select(Dialect::Postgres, scope, &few, Bounds::Keys, u32::MAX.into());
    let after = read::fetch(transaction, scope, &select).await?;
    Ok(Preview::pair(before, after))
}
