//! Writing items back: the rows whose version is the one that was read are locked, then updated,
//! each by one statement for all items that set the same columns.

use super::row::int;
use super::{Cells, MysqlData, describe};
use crate::sql::{Dialect, Sql};
use crate::write::{Inserts, Updates, emitted, insert_column, inserts, settle_conflicts, updates};
use crate::{DeferredItem, Result, Scope, WriteItem, statement};
use std::collections::HashSet;
use std::sync::Arc;
use windlass_core::{Column, Counts, Value};
use windlass_drivers::mysql::Transaction;
use windlass_drivers::{Class, Error};

/// Writes the items back. What comes back are the conflicts: what they add to the counts, and
/// those to hold.
pub(super) async fn write(
    data: &MysqlData,
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
    let (held, counts) = settle_conflicts(scope, items, &conflicts);
    Ok((counts, held))
}

/// Locks the rows whose version is the one that was read, and says whose they are, in order. The
/// others have met a concurrent write. Until the end of the transaction nobody else can change the
/// locked ones.
async fn lock(
    transaction: &mut Transaction,
    scope: &Scope,
    items: &[WriteItem],
    group: &Updates<'_>,
) -> Result<Vec<usize>> {
    let mut cells = Cells::default();
    let mut matched = by_key(&mut cells, scope, items, &group.items);
    let version = version(scope)?;
    let versions = group.items.iter().map(|item| &items[*item].version);
    let value = cells.compared(versions, scope.table.column(version));
    matched.push(format!("t.{} = {value}", Dialect::Mysql.quote(version)));
    let mut sql = Sql::new(Dialect::Mysql, "SELECT v.ord FROM ");
    cells.push(&mut sql);
    sql.push(joined(scope, &matched)).push(" FOR UPDATE");
    let rows = transaction.query(&sql.text, sql.values()).await?;
    let mut found = HashSet::with_capacity(rows.len());
    for row in &rows {
        found.insert(int(row, 0)?);
    }
    let places = group.items.iter().zip(1..);
    Ok(places.filter(|(_, ord)| found.contains(ord)).map(|(item, _)| *item).collect())
}

/// Updates rows that are locked.
async fn update(
    transaction: &mut Transaction,
    scope: &Scope,
    items: &[WriteItem],
    group: &Updates<'_>,
    current: &[usize],
) -> Result<()> {
    let mut cells = Cells::default();
    let matched = by_key(&mut cells, scope, items, current);
    let version = Dialect::Mysql.quote(version(scope)?);
    let mut set = vec![format!("t.{version} = t.{version} + 1")];
    for column in &group.columns {
        let values =
            current.iter().map(|item| items[*item].change.update.get(&column.name).unwrap_or(NULL));
        let value = cells.assigned(values, column);
        set.push(format!("t.{} = {value}", Dialect::Mysql.quote(&column.name)));
    }
    let mut sql = Sql::new(Dialect::Mysql, "UPDATE ");
    cells.push(&mut sql);
    sql.push(joined(scope, &matched)).push(" SET ").push(set.join(", "));
    transaction.execute(&sql.text, sql.values()).await?;
    Ok(())
}

/// The batch first, then a look-up by the key for each of its rows: the server takes a document for
/// a few rows, and a table of some thousand for one that is read faster as a whole.
fn joined(scope: &Scope, matched: &[String]) -> String {
    let table = Dialect::Mysql.quote_table(&scope.table.name);
    format!(" STRAIGHT_JOIN {table} AS t ON {}", matched.join(" AND "))
}

/// What finds the rows of items by their keys.
fn by_key(cells: &mut Cells, scope: &Scope, items: &[WriteItem], places: &[usize]) -> Vec<String> {
    let mut matched = Vec::new();
    for (n, name) in scope.key().iter().enumerate() {
        let values = places.iter().map(|item| items[*item].key.0.get(n).unwrap_or(NULL));
        let value = cells.compared(values, scope.table.column(name));
        matched.push(format!("t.{} = {value}", Dialect::Mysql.quote(name)));
    }
    matched
}

fn version(scope: &Scope) -> Result<&str> {
    let missing = || scope.job_type.problem("step.version", "is missing");
    Ok(scope.job_type.step.version.as_deref().ok_or_else(missing)?)
}

/// Inserts the rows of one table with the same columns.
async fn insert(
    data: &MysqlData,
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

/// The columns of the table, looked up once, and again when one of the names is unknown: it may
/// have been added since.
async fn columns_for(
    data: &MysqlData,
    transaction: &mut Transaction,
    group: &Inserts<'_>,
) -> Result<Arc<Vec<Column>>> {
    let knows = |columns: &Arc<Vec<Column>>| {
        group.columns.iter().all(|name| columns.iter().any(|column| column.name == *name))
    };
    if let Some(columns) = data.known_columns(group.table).filter(knows) {
        return Ok(columns);
    }
    let Some(columns) = describe::columns_of(transaction, group.table).await? else {
        let message = format!("insert: there is no table `{}`", group.table);
        return Err(Error::new(Class::Definition, message).into());
    };
    let columns = Arc::new(columns);
    data.learn_columns(group.table, columns.clone());
    Ok(columns)
}

/// What stands where a value is missing.
const NULL: &Value = &Value::Null;
