//! Writes items back. Without a network, a prepared statement per item is faster than one statement joined to
//! `json_each`: 200,000 updates took 0.6 s instead of 1.2 s.

use super::{Bound, describe, failed};
use crate::prepare::sample_update;
use crate::sql::{Dialect, quote, quote_table};
use crate::write::{
    Inserts, Updates, emitted, insert_column, inserts, missing_insert_table, resolve_conflicts,
    updates,
};
use crate::{DeferredItem, Result, Scope, WriteItem, guard, statement};
use rusqlite::{Connection, Transaction, params_from_iter};
use std::borrow::Cow;
use std::collections::HashSet;
use windlass_core::{Column, ColumnType, Counts, Value};

/// Writes the items back. Returns the effect of conflicts on the counts, and the items to defer.
pub(super) fn write(
    transaction: &Transaction<'_>,
    scope: &Scope,
    items: Vec<WriteItem>,
) -> Result<(Counts, Vec<DeferredItem>)> {
    let mut conflicts = HashSet::new();
    for group in updates(scope, &items)? {
        update(transaction, scope, &items, &group, &mut conflicts)?;
    }
    for group in inserts(&items, &conflicts) {
        insert(transaction, &group)?;
        if let Some((chunk, rows)) = emitted(&group) {
            let sql = include_str!("../../sql/sqlite/count_emitted.sql");
            let params = rusqlite::params![chunk.job.to_string(), chunk.number, rows];
            transaction.prepare_cached(sql).and_then(|mut s| s.execute(params)).map_err(failed)?;
        }
    }
    let (deferred, counts) = resolve_conflicts(scope, &items, &conflicts);
    Ok((counts, deferred))
}

/// Updates the rows whose guard is still the one that was read. The others had a concurrent write.
fn update(
    transaction: &Transaction<'_>,
    scope: &Scope,
    items: &[WriteItem],
    group: &Updates<'_>,
    conflicts: &mut HashSet<usize>,
) -> Result<()> {
    let sql = update_statement(scope, group)?;
    let mut statement = transaction.prepare_cached(&sql).map_err(failed)?;
    for index in &group.items {
        let item = &items[*index];
        let update = |column: &&Column| item.change.update.get(&column.name);
        let values: Vec<Cow<'_, Value>> = group
            .columns
            .iter()
            .map(|column| assigned(update(column).unwrap_or(&Value::Null), column))
            .collect();
        let key = (0..scope.key().len()).map(|n| item.key.0.get(n).unwrap_or(&Value::Null));
        let bound = values.iter().map(AsRef::as_ref).chain(key).chain([&item.guard]).map(Bound);
        if statement.execute(params_from_iter(bound)).map_err(failed)? == 0 {
            conflicts.insert(*index);
        }
    }
    Ok(())
}

/// A value to assign to a column. SQLite would round a number to 15 digits before it stores it as text.
fn assigned<'a>(value: &'a Value, column: &Column) -> Cow<'a, Value> {
    let is_fraction = match value {
        Value::Float(_) => true,
        Value::Json(json) => json.is_number(),
        _ => false,
    };
    match value.to_text() {
        Some(text) if is_fraction && column.kind == ColumnType::Text => {
            Cow::Owned(Value::Text(text))
        }
        _ => Cow::Borrowed(value),
    }
}

/// Prepares the update of these columns.
pub(super) fn prepare_update(
    connection: &Connection,
    scope: &Scope,
    columns: &[String],
) -> Result<()> {
    let items = [sample_update(Dialect::Sqlite, scope, columns)];
    for group in updates(scope, &items)? {
        connection.prepare(&update_statement(scope, &group)?).map_err(failed)?;
    }
    Ok(())
}

/// The update of one item of a group.
fn update_statement(scope: &Scope, group: &Updates<'_>) -> Result<String> {
    let guard = guard::expression(Dialect::Sqlite, scope, None);
    let guard = guard.ok_or_else(|| guard::missing(scope))?;
    let mut set = Vec::from_iter(guard::raise_version(Dialect::Sqlite, scope, None));
    set.extend(group.columns.iter().map(|column| format!("{} = ?", quote(&column.name))));
    let mut matched: Vec<String> =
        scope.key().iter().map(|column| format!("{} = ?", quote(column))).collect();
    matched.push(format!("{guard} = ?"));
    Ok(format!(
        "UPDATE {} SET {} WHERE {}",
        quote_table(&scope.table.name),
        set.join(", "),
        matched.join(" AND "),
    ))
}

/// Inserts the rows of one table with the same columns.
fn insert(transaction: &Transaction<'_>, group: &Inserts<'_>) -> Result<()> {
    let columns = describe::columns_of(transaction, group.table)?;
    let columns = columns.ok_or_else(|| missing_insert_table(group.table))?;
    let mut assigned_columns = Vec::with_capacity(group.columns.len());
    for name in &group.columns {
        assigned_columns.push(insert_column(group.table, &columns, name)?);
    }
    let sql = match group.columns.len() {
        0 => format!("INSERT INTO {} DEFAULT VALUES", quote_table(group.table)),
        count => format!(
            "{} VALUES ({})",
            statement::insert_into(Dialect::Sqlite, group.table, &group.columns),
            vec!["?"; count].join(", ")
        ),
    };
    let mut statement = transaction.prepare_cached(&sql).map_err(failed)?;
    for row in &group.rows {
        let value =
            |column: &&Column| assigned(row.get(&column.name).unwrap_or(&Value::Null), column);
        let values: Vec<Cow<'_, Value>> = assigned_columns.iter().map(value).collect();
        let bound = values.iter().map(AsRef::as_ref).map(Bound);
        statement.execute(params_from_iter(bound)).map_err(failed)?;
    }
    Ok(())
}
