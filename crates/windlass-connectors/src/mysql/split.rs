//! Splits a table into ranges of similar size: by counting a small table along its index, and by index dives
//! otherwise.

use super::Transaction;
use super::{cut, dive, read};
use crate::predicate::{is_query, relation};
use crate::sql::{Dialect, Sql};
use crate::{Result, Scope};
use windlass_core::{Key, KeyRange};

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
    if !dive::can_split(scope) {
        return counted(transaction, scope, segments).await;
    }
    let is_large = scope.table.estimated_rows > MAX_COUNTED_ROWS
        || count(transaction, scope, Some(MAX_COUNTED_ROWS + 1)).await? > MAX_COUNTED_ROWS;
    match is_large {
        true => dive::quantiles(transaction, scope, greatest, segments).await,
        false => counted(transaction, scope, segments).await,
    }
}

/// The most rows of a table that is counted along its index, which gives equal parts. MySQL cannot sample.
const MAX_COUNTED_ROWS: u64 = 10_000;

/// Every n-th key.
async fn counted(transaction: &mut Transaction, scope: &Scope, segments: u32) -> Result<Vec<Key>> {
    let every = count(transaction, scope, None).await?.div_ceil(u64::from(segments)).max(1);
    let mut cuts: Vec<Key> = Vec::new();
    for _ in 1..segments {
        let remaining = KeyRange { after: cuts.last().cloned(), upto: None };
        let Some(key) = cut::nth(transaction, scope, &remaining, every).await? else { break };
        cuts.push(key);
    }
    Ok(cuts)
}

/// The number of rows of the table, counted up to a limit.
async fn count(transaction: &mut Transaction, scope: &Scope, limit: Option<u64>) -> Result<u64> {
    let relation = relation(Dialect::Mysql, scope);
    let text = match limit {
        None => format!("SELECT count(*) FROM {relation}"),
        Some(limit) => {
            format!("SELECT count(*) FROM (SELECT 1 FROM {relation} LIMIT {limit}) AS counted")
        }
    };
    let rows = read::number(transaction, &Sql::new(Dialect::Mysql, text)).await?;
    Ok(rows.unsigned_abs())
}
