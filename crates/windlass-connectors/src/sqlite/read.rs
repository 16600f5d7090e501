//! Reads and counts records, and removes duplicate values.

use super::failed;
use super::row::{self, each, values};
use crate::item_reader::ItemReader;
use crate::key_check::key_checks;
use crate::predicate::{Bounds, relation};
use crate::sql::{Dialect, Sql, quote};
use crate::{Batch, Result, Scope, statement};
use rusqlite::Connection;
use std::borrow::Cow;
use windlass_core::{ColumnType, Key, KeySet, Value};

/// Reads records of a key set in key order, up to a number of records and of bytes.
pub(super) fn read(
    connection: &Connection,
    scope: &Scope,
    key_set: &KeySet,
    limit: u32,
    bytes: usize,
) -> Result<Batch> {
    let sql = statement::select(Dialect::Sqlite, scope, key_set, Bounds::All, u64::from(limit) + 1);
    Ok(fetch(connection, scope, &sql, bytes)?.into_batch(limit))
}

/// The items of a [`statement::select`], up to a number of bytes.
pub(super) fn fetch<'a>(
    connection: &Connection,
    scope: &'a Scope,
    sql: &Sql<'_>,
    bytes: usize,
) -> Result<ItemReader<'a>> {
    let mut reader = ItemReader::new(Dialect::Sqlite, scope, bytes);
    each(connection, sql, |row| {
        for index in reader.key_positions() {
            row::key_value(row, index)?;
        }
        let values = values(row, scope.table.columns.len())?;
        let guard = reader.guard_position().map_or(Ok(Value::Null), |n| row::value(row, n))?;
        let copy = reader.copy_position().map_or(Ok(1), |index| row.get(index));
        Ok(reader.push(values, guard, copy.map_err(failed)?)?.is_continue())
    })?;
    Ok(reader)
}

/// Refuses a source in which a record has no key, or a key that is not unique.
pub(super) fn check_keys(
    connection: &Connection,
    scope: &Scope,
    max_rows: Option<u64>,
) -> Result<()> {
    for (sql, problem) in key_checks(Dialect::Sqlite, scope, max_rows) {
        let found = row::keys(connection, &sql, scope.key().len())?;
        if let Some(key) = found.first() {
            return Err(problem(scope, key).into());
        }
    }
    Ok(())
}

/// Counts the records of each of these key sets, several in one statement.
pub(super) fn count_each(
    connection: &Connection,
    scope: &Scope,
    key_sets: &[KeySet],
) -> Result<Vec<i64>> {
    let mut counts = vec![0; key_sets.len()];
    for (first, key_sets) in statement::count_batches(scope, key_sets) {
        let sql = statement::count_each(Dialect::Sqlite, scope, key_sets);
        each(connection, &sql, |row| {
            let index: u32 = row.get(0).map_err(failed)?;
            counts[first + index as usize] = row.get(1).map_err(failed)?;
            Ok(true)
        })?;
    }
    Ok(counts)
}

/// Counts the records of a key set.
pub(super) fn count(connection: &Connection, scope: &Scope, key_set: &KeySet) -> Result<i64> {
    row::number(connection, &statement::count(Dialect::Sqlite, scope, key_set))
}

/// Removes the rows that the database considers equal to an earlier one, by the affinities and collations of
/// the columns. Each row is looked up and returned as the table has it. A row that does not exist is
/// returned as given.
pub(super) fn distinct(
    connection: &Connection,
    scope: &Scope,
    columns: &[String],
    rows: Vec<Vec<Value>>,
) -> Result<Vec<Vec<Value>>> {
    let mut seen = std::collections::HashSet::new();
    let mut distinct = Vec::new();
    for given in first_of_each(connection, scope, columns, rows)? {
        let stored = match stored(connection, scope, columns, &given)? {
            Some(row) => Some(row),
            None => match with_numbers(scope, columns, &given) {
                Some(other) => stored(connection, scope, columns, &other)?,
                None => None,
            },
        };
        let row = stored.unwrap_or(given);
        // The ledger distinguishes rows by their text too.
        if seen.insert(Key(row.clone()).to_text()) {
            distinct.push(row);
        }
    }
    Ok(distinct)
}

/// Removes the rows that the collations of the columns make equal to an earlier one. The empty half of the
/// UNION gives the values the collations of their columns.
fn first_of_each(
    connection: &Connection,
    scope: &Scope,
    columns: &[String],
    rows: Vec<Vec<Value>>,
) -> Result<Vec<Vec<Value>>> {
    let names: Vec<String> = (0..columns.len()).map(|n| format!("c{n}")).collect();
    let named =
        columns.iter().zip(&names).map(|(column, name)| format!("{} AS {name}", quote(column)));
    let mut sql = Sql::new(
        Dialect::Sqlite,
        format!(
            "SELECT min(windlass_n) FROM (SELECT {}, 0 AS windlass_n FROM {} WHERE false UNION ALL ",
            named.collect::<Vec<_>>().join(", "),
            relation(Dialect::Sqlite, scope)
        ),
    );
    let numbered: Vec<Vec<Value>> = (0..)
        .zip(&rows)
        .map(|(n, row)| {
            let value = |index: usize| row.get(index).cloned().unwrap_or(Value::Null);
            (0..columns.len()).map(value).chain([Value::Int(n)]).collect()
        })
        .collect();
    sql.json_rows(numbered.iter().map(Vec::as_slice), columns.len() + 1);
    sql.push(format!(") GROUP BY {}", names.join(", ")));
    let mut first = std::collections::HashSet::new();
    each(connection, &sql, |row| {
        first.insert(row.get::<_, i64>(0).map_err(failed)?);
        Ok(true)
    })?;
    Ok((0..).zip(rows).filter(|(n, _)| first.contains(n)).map(|(_, row)| row).collect())
}

/// A row as the table has it. `None` when it does not exist.
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
    let mut found = None;
    each(connection, &sql, |row| {
        found = Some(values(row, columns.len())?);
        Ok(false)
    })?;
    Ok(found)
}

/// The row with numeric texts converted to numbers. A column without a type, such as one that a query
/// computes, distinguishes 7 from '7', and a file of ids has only texts.
fn with_numbers(scope: &Scope, columns: &[String], given: &[Value]) -> Option<Vec<Value>> {
    let untyped = |column: &String| {
        scope.table.column(column).is_none_or(|column| column.kind == ColumnType::Other)
    };
    let number = |text: &str| match text.parse() {
        Ok(number) => Some(Value::Int(number)),
        Err(_) => text.parse().ok().map(Value::Float),
    };
    let convert = |(value, column): (&Value, &String)| match value {
        Value::Text(text) if untyped(column) => number(text).unwrap_or_else(|| value.clone()),
        _ => value.clone(),
    };
    let row: Vec<Value> = given.iter().zip(columns).map(convert).collect();
    (row != given).then_some(row)
}
