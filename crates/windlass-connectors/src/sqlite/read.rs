//! Reading records, counting them, and telling values apart.

use super::failed;
use super::row::{self, each, values};
use crate::key_check::{check_read, copy_column, questions};
use crate::predicate::{Bounds, relation};
use crate::sql::{Dialect, Sql, quote};
use crate::{Batch, Item, Result, Scope, statement};
use rusqlite::Connection;
use std::borrow::Cow;
use windlass_core::{ColumnType, Key, KeySet, Record, Value};

/// Reads records of an key_set in key order, at most so many and about so many bytes.
pub(super) fn read(
    connection: &Connection,
    scope: &Scope,
    key_set: &KeySet,
    limit: u32,
    bytes: usize,
) -> Result<Batch> {
    let sql = statement::select(Dialect::Sqlite, scope, key_set, Bounds::All, u64::from(limit) + 1);
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
    let numbered = copy_column(Dialect::Sqlite, scope).is_some();
    let (mut items, mut size, mut all) = (Vec::<Item>::new(), 0, true);
    each(connection, sql, |row| {
        for place in places.of_key() {
            row::key_value(row, place)?;
        }
        let values = values(row, columns.len())?;
        let (key, version) = (places.key(&values), places.version(&values));
        let copy = if numbered { row.get(columns.len()).map_err(failed)? } else { 1 };
        // The row behind the last one is checked too: were it of the same key, no batch would have it.
        check_read(scope, items.last().map(|item| &item.key), &key, copy)?;
        if size > bytes {
            all = false;
            return Ok(false);
        }
        let record = Record::new(columns.clone(), values);
        size += record.size();
        items.push(Item { key, version, record });
        Ok(true)
    })?;
    Ok((items, all))
}

/// Refuses a source in which a record has no key, or not one of its own.
pub(super) fn check_keys(connection: &Connection, scope: &Scope, most: Option<u64>) -> Result<()> {
    for (sql, problem) in questions(Dialect::Sqlite, scope, most) {
        let found = row::keys(connection, &sql, scope.key().len())?;
        if let Some(key) = found.first() {
            return Err(problem(scope, key).into());
        }
    }
    Ok(())
}

/// How many records each of these key_sets has now, several in one statement.
pub(super) fn count_each(
    connection: &Connection,
    scope: &Scope,
    key_sets: &[KeySet],
) -> Result<Vec<i64>> {
    let mut counts = vec![0; key_sets.len()];
    for (first, key_sets) in statement::count_batches(scope, key_sets) {
        let sql = statement::count_each(Dialect::Sqlite, scope, key_sets);
        each(connection, &sql, |row| {
            let place: u32 = row.get(0).map_err(super::failed)?;
            counts[first + place as usize] = row.get(1).map_err(super::failed)?;
            Ok(true)
        })?;
    }
    Ok(counts)
}

/// How many records an key_set has now.
pub(super) fn count(connection: &Connection, scope: &Scope, key_set: &KeySet) -> Result<i64> {
    row::number(connection, &statement::count(Dialect::Sqlite, scope, key_set))
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
    let mut seen = std::collections::HashSet::new();
    let mut once = Vec::new();
    for given in rows {
        let stored = match stored(connection, scope, columns, &given)? {
            Some(row) => Some(row),
            None => match respelled(scope, columns, &given) {
                Some(other) => stored(connection, scope, columns, &other)?,
                None => None,
            },
        };
        let row = stored.unwrap_or(given);
        // The text of a row tells values apart as the ledger does.
        if seen.insert(Key(row.clone()).to_text()) {
            once.push(row);
        }
    }
    Ok(once)
}

/// A row as it is written in the table; `None` where it is not there.
fn stored(
    connection: &Connection,
    scope: &Scope,
    columns: &[String],
    given: &[Value],
) -> Result<Option<Vec<Value>>> {
    let quoted: Vec<String> = columns.iter().map(|column| quote(column)).collect();
    let relation = relation(Dialect::Sqlite, scope);
    let text = format!("SELECT {} FROM {relation} WHERE ", quoted.join(", "));
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
    Ok(there)
}

/// The same row with the numbers among its texts as numbers. A column without a type, such as one
/// that a query computes, holds 7 and '7' for two values, and a file of ids has texts only.
fn respelled(scope: &Scope, columns: &[String], given: &[Value]) -> Option<Vec<Value>> {
    let untyped = |column: &String| {
        scope.table.column(column).is_none_or(|column| column.kind == ColumnType::Other)
    };
    let number = |text: &str| match text.parse() {
        Ok(number) => Some(Value::Int(number)),
        Err(_) => text.parse().ok().map(Value::Float),
    };
    let respell = |(value, column): (&Value, &String)| match value {
        Value::Text(text) if untyped(column) => number(text).unwrap_or_else(|| value.clone()),
        _ => value.clone(),
    };
    let row: Vec<Value> = given.iter().zip(columns).map(respell).collect();
    (row != given).then_some(row)
}
