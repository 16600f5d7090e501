//! A statement tried on a few records, in a transaction that is taken back.

use super::read;
use crate::predicate::Bounds;
use crate::sql::Dialect;
use crate::{Preview, Result, Scope, statement};
use windlass_core::{Extent, Part};
use windlass_db::mysql::Transaction;

/// The first records of an extent, before and after.
pub(super) async fn preview(
    transaction: &mut Transaction,
    scope: &Scope,
    extent: &Extent,
) -> Result<Vec<Preview>> {
    let select = statement::select(Dialect::Mysql, scope, extent, Bounds::All, Preview::SHOWN);
    let before = read::fetch(transaction, scope, &select).await?;
    if before.is_empty() {
        return Ok(Vec::new());
    }
    let keys = before.iter().map(|item| item.key.clone()).collect();
    let few = Extent { within: extent.within.clone(), part: Part::Keys(keys) };
    let step = statement::step(Dialect::Mysql, scope, &few)?;
    transaction.execute(&step.text, step.values()).await?;
    // By key alone: the statement may have moved the records out of the fixed condition.
    let select = statement::select(Dialect::Mysql, scope, &few, Bounds::Keys, u32::MAX.into());
    let after = read::fetch(transaction, scope, &select).await?;
    Ok(Preview::pair(before, after))
}
