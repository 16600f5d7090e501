//! A statement tried on a few records and taken back.

use super::{PostgresData, read, release};
use crate::predicate::Bounds;
use crate::sql::Dialect;
use crate::{Preview, Result, Scope, statement};
use windlass_core::{Extent, Part};
use windlass_db::Transaction;

/// The first records of an extent, before and after.
pub(super) async fn preview(
    data: &PostgresData,
    scope: &Scope,
    extent: &Extent,
) -> Result<Vec<Preview>> {
    let transaction = data.writing(scope).await?;
    let outcome = try_out(&transaction, scope, extent).await;
    release(transaction, outcome).await
}

async fn try_out(
    transaction: &Transaction,
    scope: &Scope,
    extent: &Extent,
) -> Result<Vec<Preview>> {
    transaction.batch("SET LOCAL DateStyle = 'ISO'").await?;
    let select = statement::select(Dialect::Postgres, scope, extent, Bounds::All, Preview::SHOWN);
    let before = read::fetch(transaction, scope, &select).await?;
    if before.is_empty() {
        return Ok(Vec::new());
    }
    let keys = before.iter().map(|item| item.key.clone()).collect();
    let few = Extent { within: extent.within.clone(), part: Part::Keys(keys) };
    let step = statement::step(Dialect::Postgres, scope, &few)?;
    transaction.execute(&step.text, &step.params()).await?;
    // By key alone: the statement may have moved the records out of the fixed condition.
    let select = statement::select(Dialect::Postgres, scope, &few, Bounds::Keys, u32::MAX.into());
    let after = read::fetch(transaction, scope, &select).await?;
    Ok(Preview::pair(before, after))
}
