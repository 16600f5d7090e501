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
use std::collections::HashSet;
use windlass_core::{Counts, Value};

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
        let update = |column: &&windlass_core::Column| item.change.update.get(&column.name);
        let values = group.columns.iter().map(|column| update(column).unwrap_or(&Value::Null));
        let key = (0..scope.key().len()).map(|n| item.key.0.get(n).unwrap_or(&Value::Null));
        let values = values.chain(key).chain([&item.guard]).map(Bound);
        if statement.execute(params_from_iter(values)).map_err(failed)? == 0 {
            conflicts.insert(*index);
        }
    }
    Ok(())
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
    for name in &group.columns {
        insert_column(group.table, &columns, name)?;
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
        let values = group.columns.iter().map(|name| row.get(*name).unwrap_or(&Value::Null));
        statement.execute(params_from_iter(values.map(Bound))).map_err(failed)?;
    }
    Ok(())
}
