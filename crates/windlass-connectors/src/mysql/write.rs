//! Writes items back: locks the rows whose guard is still the one that was read, then updates them, with one
//! statement each for all items that set the same columns.

use super::row::int;
use super::{Cells, MysqlConnection, describe};
use crate::prepare::sample_update;
use crate::sql::{Dialect, Sql};
use crate::write::{
    Inserts, Updates, emitted, insert_column, inserts, missing_insert_table, resolve_conflicts,
    updates,
};
use crate::{DeferredItem, Result, Scope, WriteItem, guard, statement};
use std::collections::HashSet;
use std::sync::Arc;
use windlass_core::{Column, Counts, Value};
use windlass_drivers::mysql::Transaction;

/// Writes the items back. Returns the effect of conflicts on the counts, and the items to defer.
pub(super) async fn write(
    data: &MysqlConnection,
    transaction: &mut Transaction,
    scope: &Scope,
    items: Vec<WriteItem>,
) -> Result<(Counts, Vec<DeferredItem>)> {
    let mut conflicts = HashSet::new();
    for group in updates(scope, &items)? {
        let current = lock(transaction, scope, &items, &group).await?;
        conflicts.extend(group.items.iter().filter(|item| !current.contains(item)));
        if !current.is_empty() {
            update(transaction, scope, &items, &group, &current).await?;
        }
    }
    for group in inserts(&items, &conflicts) {
        insert(data, transaction, &group).await?;
        if let Some((chunk, rows)) = emitted(&group) {
            let params = vec![rows.into(), chunk.job.to_string().into(), chunk.number.into()];
            let sql = include_str!("../../sql/mysql/count_emitted.sql");
            transaction.execute(sql, params).await?;
        }
    }
    let (deferred, counts) = resolve_conflicts(scope, &items, &conflicts);
    Ok((counts, deferred))
}

/// Locks the rows whose guard is still the one that was read, and returns the indexes of their items. The
/// others had a concurrent write.
async fn lock(
    transaction: &mut Transaction,
    scope: &Scope,
    items: &[WriteItem],
    group: &Updates<'_>,
) -> Result<Vec<usize>> {
    let sql = lock_statement(scope, items, group)?;
    let rows = transaction.query(&sql.text, sql.values()).await?;
    let mut found = HashSet::with_capacity(rows.len());
    for row in &rows {
        found.insert(int(row, 0)?);
    }
    let numbered = group.items.iter().zip(1..);
    Ok(numbered.filter(|(_, ord)| found.contains(ord)).map(|(item, _)| *item).collect())
}

/// Has the server prepare the update of these columns.
pub(super) async fn prepare_update(
    transaction: &mut Transaction,
    scope: &Scope,
    columns: &[String],
) -> Result<()> {
    let items = [sample_update(Dialect::Mysql, scope, columns)];
    for group in updates(scope, &items)? {
        let lock = lock_statement(scope, &items, &group)?;
        let update = update_statement(scope, &items, &group, &group.items);
        for sql in [lock, update] {
            transaction.columns(&sql.text).await?;
        }
    }
    Ok(())
}

fn lock_statement<'a>(scope: &Scope, items: &[WriteItem], group: &Updates<'_>) -> Result<Sql<'a>> {
    let mut cells = Cells::default();
    let mut matched = by_key(&mut cells, scope, items, &group.items);
    let guard = guard::expression(Dialect::Mysql, scope, Some("t"));
    let guard = guard.ok_or_else(|| guard::missing(scope))?;
    let guards = group.items.iter().map(|item| &items[*item].guard);
    let value = cells.compared(guards, guard::version_column(scope));
    matched.push(format!("{guard} = {value}"));
    let mut sql = Sql::new(Dialect::Mysql, "SELECT v.ord FROM ");
    cells.push(&mut sql);
    // MySQL refuses this over a JSON_TABLE unless it names the table to lock, which MariaDB cannot.
    sql.push(joined(scope, &matched)).push(" FOR UPDATE /*!80000 OF t */");
    Ok(sql)
}

/// Updates the locked rows.
async fn update(
    transaction: &mut Transaction,
    scope: &Scope,
    items: &[WriteItem],
    group: &Updates<'_>,
    current: &[usize],
) -> Result<()> {
    let sql = update_statement(scope, items, group, current);
    transaction.execute(&sql.text, sql.values()).await?;
    Ok(())
}

fn update_statement<'a>(
    scope: &Scope,
    items: &[WriteItem],
    group: &Updates<'_>,
    current: &[usize],
) -> Sql<'a> {
    let mut cells = Cells::default();
    let matched = by_key(&mut cells, scope, items, current);
    let mut set = Vec::from_iter(guard::raise_version(Dialect::Mysql, scope, Some("t")));
    for column in &group.columns {
        let values =
            current.iter().map(|item| items[*item].change.update.get(&column.name).unwrap_or(NULL));
        let value = cells.assigned(values, column);
        set.push(format!("t.{} = {value}", Dialect::Mysql.quote(&column.name)));
    }
    let mut sql = Sql::new(Dialect::Mysql, "UPDATE ");
    cells.push(&mut sql);
    sql.push(joined(scope, &matched)).push(" SET ").push(set.join(", "));
    sql
}

/// Forces the join order: the batch first, then one lookup by key per row. MySQL assumes few rows in a JSON
/// document, and might read a table of some thousand rows as a whole.
fn joined(scope: &Scope, matched: &[String]) -> String {
    let table = Dialect::Mysql.quote_table(&scope.table.name);
    format!(" STRAIGHT_JOIN {table} AS t ON {}", matched.join(" AND "))
}

/// The conditions that match the rows of items by key.
fn by_key(cells: &mut Cells, scope: &Scope, items: &[WriteItem], indexes: &[usize]) -> Vec<String> {
    let mut matched = Vec::new();
    for (n, name) in scope.key().iter().enumerate() {
        let values = indexes.iter().map(|item| items[*item].key.0.get(n).unwrap_or(NULL));
        let value = cells.compared(values, scope.table.column(name));
        matched.push(format!("t.{} = {value}", Dialect::Mysql.quote(name)));
    }
    matched
}

/// Inserts the rows of one table with the same columns.
async fn insert(
    data: &MysqlConnection,
    transaction: &mut Transaction,
    group: &Inserts<'_>,
) -> Result<()> {
    let columns = columns_for(data, transaction, group).await?;
    if group.columns.is_empty() {
        let table = Dialect::Mysql.quote_table(group.table);
        for _ in &group.rows {
            transaction.execute(&format!("INSERT INTO {table} () VALUES ()"), Vec::new()).await?;
        }
        return Ok(());
    }
    let mut cells = Cells::default();
    let mut values = Vec::new();
    for name in &group.columns {
        let column = insert_column(group.table, &columns, name)?;
        let given = group.rows.iter().map(|row| row.get(*name).unwrap_or(NULL));
        values.push(cells.assigned(given, column));
    }
    let insert = statement::insert_into(Dialect::Mysql, group.table, &group.columns);
    let mut sql = Sql::new(Dialect::Mysql, format!("{insert} SELECT {} FROM ", values.join(", ")));
    cells.push(&mut sql);
    sql.push(" ORDER BY v.ord");
    transaction.execute(&sql.text, sql.values()).await?;
    Ok(())
}

/// The columns of the table, from the cache where it knows all of the group's columns.
async fn columns_for(
    data: &MysqlConnection,
    transaction: &mut Transaction,
    group: &Inserts<'_>,
) -> Result<Arc<Vec<Column>>> {
    if let Some(columns) = data.columns.get(group.table, &group.columns) {
        return Ok(columns);
    }
    let columns = describe::columns_of(transaction, group.table).await?;
    let columns = columns.ok_or_else(|| missing_insert_table(group.table))?;
    Ok(data.columns.insert(group.table, columns))
}

/// Replaces a missing value.
const NULL: &Value = &Value::Null;
