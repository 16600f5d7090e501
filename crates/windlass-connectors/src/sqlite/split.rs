//! Splits a table into ranges of similar size by the keys at evenly spaced rowids.

use super::describe::Relation;
use super::{cut, failed, row};
use crate::predicate::{is_query, relation};
use crate::sql::{Dialect, Sql, quote_columns};
use crate::{Result, Scope};
use rusqlite::{Connection, OptionalExtension as _};
use std::borrow::Cow;
use std::collections::BTreeSet;
use windlass_core::{Key, KeyRange, Value};

/// Ranges that cover everything up to the greatest key.
pub(super) fn split(
    connection: &Connection,
    scope: &Scope,
    segments: u32,
) -> Result<Vec<KeyRange>> {
    let Some(greatest) = cut::greatest(connection, scope)? else { return Ok(Vec::new()) };
    let mut cuts = quantiles(connection, scope, segments)?;
    cuts.dedup();
    cuts.retain(|cut| *cut != greatest && !cut.has_null());
    Ok(KeyRange { after: None, upto: Some(greatest) }.cut(cuts))
}

/// The keys that divide a sample into equal parts.
fn quantiles(connection: &Connection, scope: &Scope, segments: u32) -> Result<Vec<Key>> {
    if segments < 2 || is_query(scope) {
        return Ok(Vec::new());
    }
    let Some(table) = Relation::find(connection, &scope.table.name)? else {
        return Ok(Vec::new());
    };
    let Some(rowid) = table.rowid(&scope.table.columns) else { return Ok(Vec::new()) };
    let rowids = sample(connection, &relation(Dialect::Sqlite, scope), rowid)?;
    let mut sample = keys_of(connection, scope, rowid, &rowids)?;
    let (count, segments) = (sample.len(), segments as usize);
    let mut cuts = Vec::new();
    for n in (1..segments).rev() {
        let end = count * n / segments;
        if end > 0 {
            sample.truncate(end);
            cuts.extend(sample.last().cloned());
        }
    }
    cuts.reverse();
    Ok(cuts)
}

/// The rows at evenly spaced rowids; all of them when there are few.
fn sample(connection: &Connection, table: &str, rowid: &str) -> Result<BTreeSet<i64>> {
    let all = format!("SELECT {rowid} FROM {table} LIMIT {}", SAMPLE_ROWS + 1);
    let mut statement = connection.prepare(&all).map_err(failed)?;
    let first: rusqlite::Result<BTreeSet<i64>> =
        statement.query_map([], |row| row.get(0)).and_then(Iterator::collect);
    let first = first.map_err(failed)?;
    if first.len() as i64 <= SAMPLE_ROWS {
        return Ok(first);
    }
    // One query for both would read the whole table.
    let end = |function: &str| {
        let sql = format!("SELECT {function}({rowid}) FROM {table}");
        connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).map_err(failed)
    };
    let (least, greatest) = (i128::from(end("min")?), i128::from(end("max")?));
    let probe = format!("SELECT {rowid} FROM {table} WHERE {rowid} >= ?1 ORDER BY {rowid} LIMIT 1");
    let mut probe = connection.prepare(&probe).map_err(failed)?;
    let mut rowids = BTreeSet::new();
    for n in 0..SAMPLE_ROWS {
        let at = least + (greatest - least) * i128::from(n) / i128::from(SAMPLE_ROWS);
        let at = i64::try_from(at).unwrap_or(i64::MAX);
        let found = probe.query_row([at], |row| row.get::<_, i64>(0)).optional();
        rowids.extend(found.map_err(failed)?);
    }
    Ok(rowids)
}

/// The number of sampled rows.
const SAMPLE_ROWS: i64 = 1_000;

/// The keys of these rows in the database's own order.
fn keys_of(
    connection: &Connection,
    scope: &Scope,
    rowid: &str,
    rowids: &BTreeSet<i64>,
) -> Result<Vec<Key>> {
    let columns = quote_columns(scope.key(), None);
    let listed = serde_json::Value::from(rowids.iter().copied().collect::<Vec<_>>());
    let text = format!(
        "SELECT DISTINCT {columns} FROM {} WHERE {rowid} IN (SELECT value FROM json_each(",
        relation(Dialect::Sqlite, scope),
        columns = columns.join(", "),
    );
    let mut sql = Sql::new(Dialect::Sqlite, text);
    sql.bind(Cow::Owned(Value::Text(listed.to_string())));
    sql.push(format!(")) ORDER BY {}", columns.join(", ")));
    row::keys(connection, &sql, columns.len())
}
