//! Reads and counts records, and removes duplicate values.

use super::row::{self, check_key, int, value, values};
use super::{Cells, Transaction};
use crate::item_reader::ItemReader;
use crate::key_check::key_checks;
use crate::predicate::{Bounds, relation};
use crate::sql::{Dialect, Sql};
use crate::{Batch, ConnectorError, Item, Result, Scope, guard, statement};
use std::collections::HashSet;
use std::ops::ControlFlow;
use windlass_core::{ColumnType, Key, KeySet, Value};
use windlass_drivers::mysql::Row;

/// Reads records of a key set in key order, up to a number of records and of bytes.
pub(super) async fn read(
    transaction: &mut Transaction,
    scope: &Scope,
    key_set: &KeySet,
    limit: u32,
    bytes: usize,
) -> Result<Batch> {
    let sql = statement::select(Dialect::Mysql, scope, key_set, Bounds::All, u64::from(limit) + 1);
    let mut reader = ItemReader::new(Dialect::Mysql, scope, bytes);
    transaction.read(&sql.text, sql.values(), |row| push_row(&mut reader, scope, &row)).await?;
    Ok(reader.into_batch(limit))
}

/// All items of a [`statement::select`].
pub(super) async fn fetch(
    transaction: &mut Transaction,
    scope: &Scope,
    sql: &Sql<'_>,
) -> Result<Vec<Item>> {
    let mut reader = ItemReader::new(Dialect::Mysql, scope, usize::MAX);
    transaction.read(&sql.text, sql.values(), |row| push_row(&mut reader, scope, &row)).await?;
    Ok(reader.into_items())
}

fn push_row(reader: &mut ItemReader<'_>, scope: &Scope, row: &Row) -> Result<ControlFlow<()>> {
    let values = values(row, scope)?;
    check_key(&reader.key(&values), scope)?;
    let version = guard::version_column(scope);
    let guard = reader.guard_position().map_or(Ok(Value::Null), |n| value(row, n, version))?;
    let copy = reader.copy_position().map_or(Ok(1), |index| int(row, index))?;
    reader.push(values, guard, copy)
}

/// Refuses a source in which a record has no key, or a key that is not unique.
pub(super) async fn check_keys(
    transaction: &mut Transaction,
    scope: &Scope,
    max_rows: Option<u64>,
) -> Result<()> {
    for (sql, problem) in key_checks(Dialect::Mysql, scope, max_rows) {
        let rows = transaction.query(&sql.text, sql.values()).await?;
        if let Some(found) = rows.first() {
            return Err(problem(scope, &row::key(found, scope)?).into());
        }
    }
    Ok(())
}

/// Counts the records of a key set.
pub(super) async fn count(
    transaction: &mut Transaction,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<i64> {
    number(transaction, &statement::count(Dialect::Mysql, scope, key_set)).await
}

/// Counts the records of each of these key sets, several in one statement.
pub(super) async fn count_each(
    transaction: &mut Transaction,
    scope: &Scope,
    key_sets: &[KeySet],
) -> Result<Vec<i64>> {
    let mut counts = vec![0; key_sets.len()];
    for (first, key_sets) in statement::count_batches(scope, key_sets) {
        let sql = statement::count_each(Dialect::Mysql, scope, key_sets);
        for row in transaction.query(&sql.text, sql.values()).await? {
            counts[first + int(&row, 0)? as usize] = int(&row, 1)?;
        }
    }
    Ok(counts)
}

/// The one number that a statement returns.
pub(super) async fn number(transaction: &mut Transaction, sql: &Sql<'_>) -> Result<i64> {
    let rows = transaction.query(&sql.text, sql.values()).await?;
    rows.first().map_or(Ok(0), |row| int(row, 0))
}

/// The one number that a user's SELECT returns.
pub(super) async fn measure(transaction: &mut Transaction, sql: &str) -> Result<Option<f64>> {
    let rows = transaction.query(sql, Vec::new()).await?;
    match rows.first().map(|row| value(row, 0, None)).transpose()? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Float(number)) => Ok(Some(number)),
        Some(other) => Err(ConnectorError::Unreadable(format!("`{other}` is not a number"))),
    }
}

/// Removes the rows that the database considers equal to an earlier one, by the types and collations of the
/// columns. Each row is looked up and returned as the table has it. A row that does not exist is returned
/// as given.
pub(super) async fn distinct(
    transaction: &mut Transaction,
    scope: &Scope,
    columns: &[String],
    rows: Vec<Vec<Value>>,
) -> Result<Vec<Vec<Value>>> {
    if rows.is_empty() || columns.is_empty() {
        return Ok(rows);
    }
    let mut cells = Cells::default();
    let (mut given, mut matched) = (Vec::new(), Vec::new());
    for (n, name) in columns.iter().enumerate() {
        let values = rows.iter().map(|row| row.get(n).unwrap_or(&Value::Null));
        let value = cells.compared(values, scope.table.column(name));
        matched.push(format!("{} = {value}", Dialect::Mysql.quote(name)));
        given.push(value);
    }
    // Values that cannot be converted to the column's type are NULL, which equals nothing.
    let is_binary = |name: &String| {
        scope.table.column(name).is_some_and(|column| column.kind == ColumnType::Bytes)
    };
    let first = match columns.iter().any(is_binary) {
        // MariaDB takes all results of UNHEX in a query with a window for one value. Bytes have no collation.
        true => "v.ord".to_owned(),
        false => format!(
            "CASE WHEN {} IS NULL THEN v.ord ELSE min(v.ord) OVER (PARTITION BY {}) END",
            given.join(" IS NULL OR "),
            given.join(", ")
        ),
    };
    let stored = |name: &String| {
        format!(
            "(SELECT {}{} FROM {} WHERE {} LIMIT 1)",
            Dialect::Mysql.quote(name),
            // A subquery returns bits as the text of their number.
            if is_bits(scope, name) { " + 0" } else { "" },
            relation(Dialect::Mysql, scope),
            matched.join(" AND ")
        )
    };
    let stored: Vec<String> = columns.iter().map(stored).collect();
    let text = format!("SELECT {}, v.ord = {first} FROM ", stored.join(", "));
    let mut sql = Sql::new(Dialect::Mysql, text);
    cells.push(&mut sql);
    sql.push(" ORDER BY v.ord");
    let found = transaction.query(&sql.text, sql.values()).await?;
    let (mut seen, mut distinct) = (HashSet::new(), Vec::new());
    for (given, found_row) in rows.into_iter().zip(&found) {
        let value = |(n, name): (usize, &String)| {
            let column = scope.table.column(name);
            Ok(match (value(found_row, n, column)?, column) {
                (Value::Int(bit), Some(column)) if column.sql_type == "bit(1)" => {
                    Value::Bool(bit == 1)
                }
                (value, _) => value,
            })
        };
        let stored: Vec<Value> = columns.iter().enumerate().map(value).collect::<Result<_>>()?;
        let row = if stored.iter().any(Value::is_null) { given } else { stored };
        let is_first = int(found_row, columns.len())? != 0;
        // The ledger distinguishes rows by their text too.
        if is_first && seen.insert(Key(row.clone()).to_text()) {
            distinct.push(row);
        }
    }
    Ok(distinct)
}

fn is_bits(scope: &Scope, column: &str) -> bool {
    scope.table.column(column).is_some_and(|column| column.sql_type.starts_with("bit"))
}
