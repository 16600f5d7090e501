//! Reading records, counting them, and telling values apart.

use super::row::{self, each, values};
use crate::predicate::{Bounds, relation};
use crate::sql::{Dialect, Sql, quote};
use crate::{Batch, Item, Result, Scope, statement};
use rusqlite::Connection;
use std::borrow::Cow;
use windlass_core::{Extent, Record, Value};

/// Reads records of an extent in key order, at most so many and about so many bytes.
pub(super) fn read(
    connection: &Connection,
    scope: &Scope,
    extent: &Extent,
    limit: u32,
    bytes: usize,
) -> Result<Batch> {
    let sql = statement::select(Dialect::Sqlite, scope, extent, Bounds::All, u64::from(limit) + 1);
    let (items, all) = fetch(connection, scope, &sql, bytes)?;
    Ok(Batch::of(items, all, limit))
}

/// The items of a statement made by [`statement::select`], and whether they are all of them.
pub(super) fn fetch(
    connection: &Connection,
    scope: &Scope,
    sql: &Sql<'_>,
    bytes: usize,
) -> Result<(Vec<Item>, bool)> {
    let columns = statement::columns_of(scope);
    let places = statement::Places::of(scope);
    let (mut items, mut size, mut all) = (Vec::new(), 0, true);
    each(connection, sql, |row| {
        if size > bytes {
            all = false;
            return Ok(false);
        }
        for place in places.of_key() {
            row::key_value(row, place)?;
        }
        let values = values(row, columns.len())?;
        let (key, version) = (places.key(&values), places.version(&values));
        let record = Record::new(columns.clone(), values);
        size += record.size();
        items.push(Item { key, version, record });
        Ok(true)
    })?;
    Ok((items, all))
}

/// How many records an extent has now.
pub(super) fn count(connection: &Connection, scope: &Scope, extent: &Extent) -> Result<i64> {
    row::number(connection, &statement::count(Dialect::Sqlite, scope, extent))
}

/// The rows without those that the database holds equal to an earlier one. Equality is a matter of
/// the column's affinity and collation, so each row is looked up in the table and stands as it is
/// written there; one that is not there stands as it was given.
pub(super) fn distinct(
    connection: &Connection,
    scope: &Scope,
    columns: &[String],
    rows: Vec<Vec<Value>>,
) -> Result<Vec<Vec<Value>>> {
    let quoted: Vec<String> = columns.iter().map(|column| quote(column)).collect();
    let mut seen = std::collections::HashSet::new();
    let mut once = Vec::new();
    for given in rows {
        let text = format!(
            "SELECT {} FROM {} WHERE ",
            quoted.join(", "),
            relation(Dialect::Sqlite, scope)
        );
        let mut sql = Sql::new(Dialect::Sqlite, text);
        for (n, column) in quoted.iter().enumerate() {
            sql.push(if n > 0 { " AND " } else { "" }).push(column).push(" = ");
            sql.bind(Cow::Borrowed(given.get(n).unwrap_or(&Value::Null)));
        }
        sql.push(" LIMIT 1");
        let mut there = None;
        each(connection, &sql, |row| {
            there = Some(values(row, columns.len())?);
            Ok(false)
        })?;
        drop(sql);
        let row = there.unwrap_or(given);
        // The text of a row tells values apart as the ledger does.
        if seen.insert(windlass_core::Key(row.clone()).to_text()) {
            once.push(row);
        }
    }
    Ok(once)
}
