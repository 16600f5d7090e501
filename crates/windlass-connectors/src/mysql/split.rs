//! Splits a table into ranges of similar size: by counting along the index, or in large tables by evenly
//! spaced numbers.

use super::Transaction;
use super::{cut, read};
use crate::predicate::{is_query, relation};
use crate::sql::{Dialect, Sql};
use crate::{Result, Scope};
use windlass_core::{ColumnType, Key, KeyRange, Value};

/// Ranges that cover everything up to the greatest key.
pub(super) async fn split(
    transaction: &mut Transaction,
    scope: &Scope,
    segments: u32,
) -> Result<Vec<KeyRange>> {
    let Some(greatest) = cut::greatest(transaction, scope).await? else {
        return Ok(Vec::new());
    };
    let mut cuts = quantiles(transaction, scope, &greatest, segments).await?;
    cuts.dedup();
    cuts.retain(|cut| *cut != greatest && !cut.has_null());
    Ok(KeyRange { after: None, upto: Some(greatest) }.cut(cuts))
}

/// The keys that divide the table into similar parts.
async fn quantiles(
    transaction: &mut Transaction,
    scope: &Scope,
    greatest: &Key,
    segments: u32,
) -> Result<Vec<Key>> {
    if segments < 2 || is_query(scope) || !scope.walks_by_key(None) {
        return Ok(Vec::new());
    }
    if scope.table.estimated_rows > MAX_COUNTED_ROWS && number(greatest, scope).is_some() {
        let least = cut::nth(transaction, scope, &KeyRange::ALL, 1).await?;
        let least = least.and_then(|least| number(&least, scope));
        if let (Some(least), Some(greatest)) = (least, number(greatest, scope)) {
            return spaced(transaction, scope, least, greatest, segments).await;
        }
    }
    counted(transaction, scope, segments).await
}

/// The most rows of a table that is counted along its index, which gives equal parts. MySQL cannot sample.
const MAX_COUNTED_ROWS: u64 = 1_000_000;

/// Every n-th key.
async fn counted(transaction: &mut Transaction, scope: &Scope, segments: u32) -> Result<Vec<Key>> {
    let text = format!("SELECT count(*) FROM {}", relation(Dialect::Mysql, scope));
    let total = read::number(transaction, &Sql::new(Dialect::Mysql, text)).await?;
    let every = (total.unsigned_abs().div_ceil(u64::from(segments))).max(1);
    let mut cuts: Vec<Key> = Vec::new();
    for _ in 1..segments {
        let remaining = KeyRange { after: cuts.last().cloned(), upto: None };
        let Some(key) = cut::nth(transaction, scope, &remaining, every).await? else { break };
        cuts.push(key);
    }
    Ok(cuts)
}

/// The first keys at or after evenly spaced numbers. The parts are as even as the keys are.
async fn spaced(
    transaction: &mut Transaction,
    scope: &Scope,
    least: i128,
    greatest: i128,
    segments: u32,
) -> Result<Vec<Key>> {
    let mut cuts = Vec::new();
    for n in 1..segments {
        let at = least + (greatest - least) * i128::from(n) / i128::from(segments);
        let before = Key(vec![Value::Int(i64::try_from(at - 1).unwrap_or(i64::MIN))]);
        let remaining = KeyRange { after: Some(before), upto: None };
        cuts.extend(cut::nth(transaction, scope, &remaining, 1).await?);
    }
    Ok(cuts)
}

/// A key that is one integer.
fn number(key: &Key, scope: &Scope) -> Option<i128> {
    let column = scope.table.column(scope.key().first()?)?;
    match key.0.as_slice() {
        [Value::Int(number)] if column.kind == ColumnType::Int => Some((*number).into()),
        _ => None,
    }
}
