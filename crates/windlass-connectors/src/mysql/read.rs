//! Reading records, counting them, and telling values apart.

use super::row::{self, check, int, value, values};
use super::{Cells, Transaction};
use crate::key_check::{check_read, copy_column, questions};
use crate::predicate::{Bounds, relation};
use crate::sql::{Dialect, Sql};
use crate::{Batch, DataError, Item, Result, Scope, statement};
use std::collections::HashSet;
use std::ops::ControlFlow;
use windlass_core::{Columns, Key, KeySet, Record, Value};
use windlass_drivers::mysql::Row;

/// Reads records of an key_set in key order, at most so many and about so many bytes.
pub(super) async fn read(
    transaction: &mut Transaction,
    scope: &Scope,
    key_set: &KeySet,
    limit: u32,
    bytes: usize,
) -> Result<Batch> {
    let sql = statement::select(Dialect::Mysql, scope, key_set, Bounds::All, u64::from(limit) + 1);
    let mut reader = Reader::new(scope, bytes);
    transaction.read(&sql.text, sql.values(), |row| reader.take(&row)).await?;
    Ok(Batch::of(reader.items, reader.all, limit))
}

/// The items of a statement made by [`statement::select`], all of them.
pub(super) async fn fetch(
    transaction: &mut Transaction,
    scope: &Scope,
    sql: &Sql<'_>,
) -> Result<Vec<Item>> {
    let mut reader = Reader::new(scope, usize::MAX);
    transaction.read(&sql.text, sql.values(), |row| reader.take(&row)).await?;
    Ok(reader.items)
}

/// Makes rows into items as they arrive, up to a limit of bytes.
struct Reader<'a> {
    scope: &'a Scope,
    columns: Columns,
    places: statement::Places,
    /// Whether each row says its number among those of its key.
    numbered: bool,
    left: usize,
    items: Vec<Item>,
    /// Whether nothing was left out.
    all: bool,
}

impl Reader<'_> {
    fn new(scope: &Scope, bytes: usize) -> Reader<'_> {
        let (columns, places) = (statement::columns_of(scope), statement::Places::of(scope));
        let numbered = copy_column(Dialect::Mysql, scope).is_some();
        Reader { scope, columns, places, numbered, left: bytes, items: Vec::new(), all: true }
    }

    fn take(&mut self, row: &Row) -> Result<ControlFlow<()>> {
        let values = values(row, self.scope)?;
        let (key, version) = (self.places.key(&values), self.places.version(&values));
        check(&key, self.scope)?;
        let copy = if self.numbered { int(row, self.columns.len())? } else { 1 };
        // The row behind the last one is checked too: were it of the same key, no batch would have it.
        check_read(self.scope, self.items.last().map(|item| &item.key), &key, copy)?;
        if self.left == 0 {
            self.all = false;
            return Ok(ControlFlow::Break(()));
        }
        let record = Record::new(self.columns.clone(), values);
        self.left = self.left.saturating_sub(record.size());
        self.items.push(Item { key, version, record });
        Ok(ControlFlow::Continue(()))
    }
}

/// Refuses a source in which a record has no key, or not one of its own.
pub(super) async fn check_keys(
    transaction: &mut Transaction,
    scope: &Scope,
    most: Option<u64>,
) -> Result<()> {
    for (sql, problem) in questions(Dialect::Mysql, scope, most) {
        let rows = transaction.query(&sql.text, sql.values()).await?;
        if let Some(found) = rows.first() {
            return Err(problem(scope, &row::key(found, scope)?).into());
        }
    }
    Ok(())
}

/// How many records an key_set has now.
pub(super) async fn count(
    transaction: &mut Transaction,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<i64> {
    number(transaction, &statement::count(Dialect::Mysql, scope, key_set)).await
}

/// How many records each of these key_sets has now, several in one statement.
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

/// The single number of a generated statement.
pub(super) async fn number(transaction: &mut Transaction, sql: &Sql<'_>) -> Result<i64> {
    let rows = transaction.query(&sql.text, sql.values()).await?;
    rows.first().map_or(Ok(0), |row| int(row, 0))
}

/// The one number that a SELECT of the user's gives.
pub(super) async fn measure(transaction: &mut Transaction, sql: &str) -> Result<Option<f64>> {
    let rows = transaction.query(sql, Vec::new()).await?;
    match rows.first().map(|row| value(row, 0, None)).transpose()? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Float(number)) => Ok(Some(number)),
        Some(other) => Err(DataError::Unreadable(format!("`{other}` is not a number"))),
    }
}

/// The rows without those that the database holds equal to an earlier one. Equality is a matter of
/// the column's type and collation, so each row is looked up in the table and stands as it is
/// written there; one that is not there stands as it was given.
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
    let mut matched = Vec::new();
    for (n, name) in columns.iter().enumerate() {
        let given = rows.iter().map(|row| row.get(n).unwrap_or(&Value::Null));
        let value = cells.compared(given, scope.table.column(name));
        matched.push(format!("{} = {value}", Dialect::Mysql.quote(name)));
    }
    let there = |name: &String| {
        format!(
            "(SELECT {}{} FROM {} WHERE {} LIMIT 1)",
            Dialect::Mysql.quote(name),
            // Bits come out of a subquery as the text of their number.
            if is_bits(scope, name) { " + 0" } else { "" },
            relation(Dialect::Mysql, scope),
            matched.join(" AND ")
        )
    };
    let there: Vec<String> = columns.iter().map(there).collect();
    let mut sql = Sql::new(Dialect::Mysql, format!("SELECT {} FROM ", there.join(", ")));
    cells.push(&mut sql);
    sql.push(" ORDER BY v.ord");
    let found = transaction.query(&sql.text, sql.values()).await?;
    let (mut seen, mut once) = (HashSet::new(), Vec::new());
    for (given, row) in rows.into_iter().zip(&found) {
        let value = |(n, name): (usize, &String)| {
            let column = scope.table.column(name);
            Ok(match (value(row, n, column)?, column) {
                (Value::Int(bit), Some(column)) if column.sql_type == "bit(1)" => {
                    Value::Bool(bit == 1)
                }
                (value, _) => value,
            })
        };
        let there: Vec<Value> = columns.iter().enumerate().map(value).collect::<Result<_>>()?;
        let row = if there.iter().any(Value::is_null) { given } else { there };
        // The text of a row tells values apart as the ledger does.
        if seen.insert(Key(row.clone()).to_text()) {
            once.push(row);
        }
    }
    Ok(once)
}

fn is_bits(scope: &Scope, column: &str) -> bool {
    scope.table.column(column).is_some_and(|column| column.sql_type.starts_with("bit"))
}
