//! Splitting a table into ranges of about equal size: by counting along the index, or in large
//! tables by where evenly spaced numbers fall.

use super::Transaction;
use super::{cut, read};
use crate::predicate::{is_query, relation};
use crate::sql::{Dialect, Sql};
use crate::{Result, Scope};
use windlass_core::{ColumnType, Key, KeyRange, Value};

/// Ranges that tile everything up to the greatest key there is now.
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

/// The keys that part the table into about equal pieces.
async fn quantiles(
    transaction: &mut Transaction,
    scope: &Scope,
    greatest: &Key,
    segments: u32,
) -> Result<Vec<Key>> {
    if segments < 2 || is_query(scope) || !scope.walks_by_key(None) {
        return Ok(Vec::new());
    }
    if scope.table.estimated_rows > COUNTED && number(greatest, scope).is_some() {
        let least = cut::nth(transaction, scope, &KeyRange::ALL, 1).await?;
        let least = least.and_then(|least| number(&least, scope));
        if let (Some(least), Some(greatest)) = (least, number(greatest, scope)) {
            return spaced(transaction, scope, least, greatest, segments).await;
        }
    }
    counted(transaction, scope, segments).await
}

/// A table of at most so many rows is counted along its index, which is as even as can be; MySQL
/// cannot sample one.
const COUNTED: u64 = 1_000_000;

/// Every n-th key.
async fn counted(transaction: &mut Transaction, scope: &Scope, segments: u32) -> Result<Vec<Key>> {
    let text = format!("SELECT count(*) FROM {}", relation(Dialect::Mysql, scope));
    let total = read::number(transaction, &Sql::new(Dialect::Mysql, text)).await?;
    let every = (total.unsigned_abs().div_ceil(u64::from(segments))).max(1);
    let mut cuts: Vec<Key> = Vec::new();
    for _ in 1..segments {
        let rest = KeyRange { after: cuts.last().cloned(), upto: None };
        let Some(key) = cut::nth(transaction, scope, &rest, every).await? else { break };
        cuts.push(key);
    }
    Ok(cuts)
}

/// The first keys at or after evenly spaced numbers: as even as the numbers of the rows are.
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
        let rest = KeyRange { after: Some(before), upto: None };
        cuts.extend(cut::nth(transaction, scope, &rest, 1).await?);
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
