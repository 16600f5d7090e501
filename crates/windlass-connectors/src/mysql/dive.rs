//! Divides a table into parts of similar size without reading it: a part is halved near the middle of its keys, and
//! the optimizer estimates both halves by looking up their ends in the index. Only keys at the ends of parts are read.

use super::describe::explained_rows;
use super::midpoint::{has_midpoints, midpoint};
use super::{Transaction, cut, row};
use crate::predicate::{push_comparison, relation};
use crate::sql::{Dialect, Sql};
use crate::{Result, Scope};
use std::borrow::Cow;
use windlass_core::{Key, KeyRange};

/// The records from one key of the table to another.
struct Part {
    first: Key,
    last: Key,
    estimated_rows: u64,
    is_divisible: bool,
}

/// Whether the table can be divided by its key, as it can by the first column of the key.
pub(super) fn can_split(scope: &Scope) -> bool {
    let column = scope.key().first().and_then(|name| scope.table.column(name));
    column.is_some_and(|column| has_midpoints(column.kind))
}

/// The keys that divide the table into parts of similar size.
pub(super) async fn quantiles(
    transaction: &mut Transaction,
    scope: &Scope,
    greatest: &Key,
    segments: u32,
) -> Result<Vec<Key>> {
    let Some(least) = cut::least(transaction, scope).await? else { return Ok(Vec::new()) };
    let estimated_rows = scope.table.estimated_rows;
    let mut parts =
        vec![Part { first: least, last: greatest.clone(), estimated_rows, is_divisible: true }];
    for _ in 0..MIN_HALVINGS + PARTS_PER_SEGMENT * segments {
        let divisible = parts.iter().enumerate().filter(|(_, part)| part.is_divisible);
        let Some((n, part)) = divisible.max_by_key(|(_, part)| part.estimated_rows) else { break };
        let enough = total(&parts) / u64::from(PARTS_PER_SEGMENT * segments);
        if part.estimated_rows <= enough {
            break;
        }
        match halve(transaction, scope, part).await? {
            Some(halves) => drop(parts.splice(n..=n, halves)),
            None => parts[n].is_divisible = false,
        }
    }
    Ok(ends(&parts, segments))
}

/// The estimates of single parts have errors, which balance over several.
const PARTS_PER_SEGMENT: u32 = 4;

/// A skewed table needs more halvings before its parts become similar.
const MIN_HALVINGS: u32 = 64;

fn total(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.estimated_rows).sum()
}

/// For each quantile, the last key of the part that ends nearest to it.
fn ends(parts: &[Part], segments: u32) -> Vec<Key> {
    let mut upto = 0;
    let end = |part: &Part| {
        upto += part.estimated_rows;
        upto
    };
    let ends: Vec<u64> = parts.iter().map(end).collect();
    let nearest = |segment: u32| {
        let wanted = upto * u64::from(segment) / u64::from(segments);
        let (n, _) = ends.iter().enumerate().min_by_key(|(_, end)| end.abs_diff(wanted))?;
        parts.get(n).map(|part| part.last.clone())
    };
    (1..segments).filter_map(nearest).collect()
}

/// Divides a part at the key before the middle of its keys. Returns nothing if there is no such key.
async fn halve(
    transaction: &mut Transaction,
    scope: &Scope,
    part: &Part,
) -> Result<Option<[Part; 2]>> {
    let Some(middle) = key_before_middle(transaction, scope, part).await? else { return Ok(None) };
    let upper = KeyRange { after: Some(middle.clone()), upto: Some(part.last.clone()) };
    let Some(next) = cut::nth(transaction, scope, &upper, 1).await? else { return Ok(None) };
    let lower = [(" >= ", &part.first), (" <= ", &middle)];
    let lower = explained(transaction, scope, &lower).await?;
    let upper = [(" >= ", &next), (" <= ", &part.last)];
    let upper = explained(transaction, scope, &upper).await?;
    let half = |first, last, estimated_rows| {
        let is_divisible = first != last;
        Part { first, last, estimated_rows, is_divisible }
    };
    Ok(Some([half(part.first.clone(), middle, lower), half(next, part.last.clone(), upper)]))
}

/// The last key at or before the middle of a part's keys.
async fn key_before_middle(
    transaction: &mut Transaction,
    scope: &Scope,
    part: &Part,
) -> Result<Option<Key>> {
    let mut pairs = part.first.0.iter().zip(&part.last.0);
    // All records of the part have the same values in the columns before this one.
    let Some(n) = pairs.position(|(first, last)| first != last) else { return Ok(None) };
    let column = |n: usize| scope.key().get(n).and_then(|name| scope.table.column(name));
    let middle = column(n).and_then(|c| midpoint(&part.first.0[n], &part.last.0[n], c));
    let Some(middle) = middle else { return Ok(None) };
    let mut sql = select_within(scope, &[(" >= ", &part.first), (" < ", &part.last)]);
    let columns = Dialect::Mysql.quote_columns(scope.key(), None);
    for (index, name) in columns.iter().take(n + 1).enumerate() {
        let is_last = index == n;
        sql.push(format!(" AND {name} {} ", if is_last { "<=" } else { "=" }));
        let value = if is_last { &middle } else { &part.first.0[index] };
        sql.bind_as(Cow::Borrowed(value), column(index));
    }
    sql.push(format!(" ORDER BY {} DESC LIMIT 1", columns.join(" DESC, ")));
    let rows = transaction.query(&sql.text, sql.values()).await?;
    rows.first().map(|row| row::key(row, scope)).transpose()
}

/// The optimizer's estimate of the records within these bounds.
async fn explained(
    transaction: &mut Transaction,
    scope: &Scope,
    bounds: &Bounds<'_>,
) -> Result<u64> {
    explained_rows(transaction, &select_within(scope, bounds)).await
}

/// A comparison with a lower key, and one with a higher key.
type Bounds<'a> = [(&'static str, &'a Key); 2];

fn select_within<'a>(scope: &'a Scope, bounds: &Bounds<'a>) -> Sql<'a> {
    let columns = Dialect::Mysql.quote_columns(scope.key(), None).join(", ");
    let text = format!("SELECT {columns} FROM {} WHERE ", relation(Dialect::Mysql, scope));
    let mut sql = Sql::new(Dialect::Mysql, text);
    for (operator, key) in bounds {
        push_comparison(&mut sql, scope, operator, key, None);
    }
    sql
}
