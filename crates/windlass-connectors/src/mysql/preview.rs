//! A statement tried on a few records, in a transaction that is taken back.

use super::read;
use crate::predicate::Bounds;
use crate::sql::Dialect;
use crate::{Preview, Result, Scope, statement};
use windlass_core::{KeySet, Keys};
use windlass_drivers::mysql::Transaction;

/// The first records of an key_set, before and after.
pub(super) async fn preview(
    transaction: &mut Transaction,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<Vec<Preview>> {
    let select = statement::select(Dialect::Mysql, scope, key_set, Bounds::All, Preview::SHOWN);
    let before = read::fetch(transaction, scope, &select).await?;
    if before.is_empty() {
        return Ok(Vec::new());
    }
    let keys = before.iter().map(|item| item.key.clone()).collect();
    let few = KeySet { within: key_set.within.clone(), keys: Keys::List(keys) };
    let step = statement::step(Dialect::Mysql, scope, &few)?;
    transaction.execute(&step.text, step.values()).await?;
    // By key alone: the statement may have moved the records out of the fixed condition.
    let select = statement::select(Dialect::Mysql, scope, &few, Bounds::Keys, u32::MAX.into());
    let after = read::fetch(transaction, scope, &select).await?;
    Ok(Preview::pair(before, after))
}
