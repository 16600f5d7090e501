//! Writes items back, with one statement for all items that set the same columns.

use super::{PostgresConnection, describe, row};
use crate::array::Array;
use crate::prepare::sample_update;
use crate::sql::{Dialect, cast_type, quote, quote_table};
use crate::write::{
    Inserts, Updates, emitted, insert_column, inserts, missing_insert_table, resolve_conflicts,
    updates,
};
use crate::{DeferredItem, Result, Scope, WriteItem, guard, statement};
use std::collections::HashSet;
use std::sync::Arc;
use windlass_core::{Column, ColumnType, Counts, Value};
use windlass_drivers::{Param, Transaction};

/// How an update reports the items whose guard was not the one that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// Only by the number of updated rows.
    Count,
    /// By returning the number of each item that it updates, which costs more.
    Items,
}

/// Writes the items back. Returns the effect of conflicts on the counts, and the items to defer. `None` if there are
/// conflicts and the report does not name the items: the transaction must be rolled back and the items written again
/// with [`Report::Items`].
pub(super) async fn write(
    data: &PostgresConnection,
    transaction: &Transaction,
    scope: &Scope,
    items: &[WriteItem],
    report: Report,
) -> Result<Option<(Counts, Vec<DeferredItem>)>> {
    let mut conflicts = HashSet::new();
    for group in updates(scope, items)? {
        match report {
            Report::Count if !update_all(transaction, scope, items, &group).await? => {
                return Ok(None);
            }
            Report::Count => {}
            Report::Items => {
                update(transaction, scope, items, &group, &mut conflicts).await?;
            }
        }
    }
    for group in inserts(items, &conflicts) {
        insert(data, transaction, &group).await?;
        if let Some((chunk, rows)) = emitted(&group) {
            let params = [chunk.job.into(), chunk.number.into(), rows.into()];
            let sql = include_str!("../../sql/postgres/count_emitted.sql");
            transaction.execute(sql, &params).await?;
        }
    }
    let (deferred, counts) = resolve_conflicts(scope, items, &conflicts);
    Ok(Some((counts, deferred)))
}

/// Updates the rows of a group. False if the guard of one of them is not the one that was read.
async fn update_all(
    transaction: &Transaction,
    scope: &Scope,
    items: &[WriteItem],
    group: &Updates<'_>,
) -> Result<bool> {
    let (sql, batch) = update_statement(scope, items, group)?;
    Ok(transaction.execute(&sql, &batch.params()).await? == group.items.len() as u64)
}

/// Updates the rows whose guard is still the one that was read. The others had a concurrent write.
async fn update(
    transaction: &Transaction,
    scope: &Scope,
    items: &[WriteItem],
    group: &Updates<'_>,
    conflicts: &mut HashSet<usize>,
) -> Result<()> {
    let (sql, batch) = update_statement(scope, items, group)?;
    let rows = transaction.query(&format!("{sql} {RETURNING}"), &batch.params()).await?;
    let mut updated = HashSet::with_capacity(rows.len());
    for row in &rows {
        updated.insert(row::get::<i64>(row, 0)?);
    }
    for (index, item) in group.items.iter().enumerate() {
        if !updated.contains(&(index as i64 + 1)) {
            conflicts.insert(*item);
        }
    }
    Ok(())
}

/// Makes an update return the number of each item that it updates.
const RETURNING: &str = "RETURNING v.ord";

/// Has the server plan the update of these columns, in the form that it has after a conflict: a table may refuse only
/// that.
pub(super) async fn prepare_update(
    transaction: &Transaction,
    scope: &Scope,
    columns: &[String],
) -> Result<()> {
    let items = [sample_update(Dialect::Postgres, scope, columns)];
    for group in updates(scope, &items)? {
        let (sql, batch) = update_statement(scope, &items, &group)?;
        transaction.query(&format!("EXPLAIN {sql} {RETURNING}"), &batch.params()).await?;
    }
    Ok(())
}

/// The update of a group with its values.
fn update_statement<'a>(
    scope: &Scope,
    items: &'a [WriteItem],
    group: &Updates<'_>,
) -> Result<(String, Batch<'a>)> {
    let guard = guard::expression(Dialect::Postgres, scope, Some("t"));
    let guard = guard.ok_or_else(|| guard::missing(scope))?;
    let mut batch = Batch::default();
    let mut matched = Vec::new();
    for (n, name) in scope.key().iter().enumerate() {
        let values = |item: usize| items[item].key.0.get(n).unwrap_or(NULL);
        let value = batch.add(group.items.iter().copied().map(values), scope.table.column(name));
        matched.push(format!("t.{} = {value}", quote(name)));
    }
    let guards = group.items.iter().map(|item| &items[*item].guard);
    let value = batch.add(guards, guard::version_column(scope));
    matched.push(format!("{guard} = {value}"));
    let mut set = Vec::from_iter(guard::raise_version(Dialect::Postgres, scope, Some("t")));
    for column in &group.columns {
        let values = |item: &usize| items[*item].change.update.get(&column.name).unwrap_or(NULL);
        let value = batch.add(group.items.iter().map(values), Some(column));
        set.push(format!("{} = {value}", quote(&column.name)));
    }
    if let Some((column, least, greatest)) = dense_range(scope, items, group) {
        let (least, greatest) = batch.bounds(least, greatest);
        matched.push(format!("t.{} BETWEEN {least} AND {greatest}", quote(column)));
    }
    let sql = format!(
        "UPDATE {} AS t SET {} FROM {} WHERE {}",
        quote_table(&scope.table.name),
        set.join(", "),
        batch.relation(),
        matched.join(" AND "),
    );
    Ok((sql, batch))
}

/// The least and the greatest key of a group, if the key is one integer and at most [`MAX_SPARSENESS`] times as many
/// keys are between them as the group has items. The server then reads one range of the index instead of looking up
/// each row.
fn dense_range<'a>(
    scope: &'a Scope,
    items: &[WriteItem],
    group: &Updates<'_>,
) -> Option<(&'a str, i64, i64)> {
    let [column] = scope.key() else { return None };
    scope.table.column(column).filter(|column| column.kind == ColumnType::Int)?;
    let mut range = None::<(i64, i64)>;
    for item in &group.items {
        let [Value::Int(key)] = items[*item].key.0.as_slice() else { return None };
        let (least, greatest) = range.unwrap_or((*key, *key));
        range = Some((least.min(*key), greatest.max(*key)));
    }
    let (least, greatest) = range?;
    let keys = greatest.checked_sub(least)?;
    (keys <= group.items.len() as i64 * MAX_SPARSENESS).then_some((column, least, greatest))
}

/// Reading this many keys of an index range costs about as much as looking up one key.
const MAX_SPARSENESS: i64 = 4;

/// Inserts the rows of one table with the same columns.
async fn insert(
    data: &PostgresConnection,
    transaction: &Transaction,
    group: &Inserts<'_>,
) -> Result<()> {
    if group.columns.is_empty() {
        let sql = format!("INSERT INTO {} DEFAULT VALUES", quote_table(group.table));
        for _ in &group.rows {
            transaction.execute(&sql, &[]).await?;
        }
        return Ok(());
    }
    let columns = columns_for(data, transaction, group).await?;
    let mut batch = Batch::default();
    let mut values = Vec::new();
    for name in &group.columns {
        let column = insert_column(group.table, &columns, name)?;
        let cells = group.rows.iter().map(|row| row.get(*name).unwrap_or(NULL));
        values.push(batch.add(cells, Some(column)));
    }
    let sql = format!(
        "{} SELECT {} FROM {}",
        statement::insert_into(Dialect::Postgres, group.table, &group.columns),
        values.join(", "),
        batch.relation(),
    );
    transaction.execute(&sql, &batch.params()).await?;
    Ok(())
}

/// The columns of the table, from the cache where it knows all of the group's columns.
async fn columns_for(
    data: &PostgresConnection,
    transaction: &Transaction,
    group: &Inserts<'_>,
) -> Result<Arc<Vec<Column>>> {
    if let Some(columns) = data.columns.get(group.table, &group.columns) {
        return Ok(columns);
    }
    let columns = describe::columns_of(transaction, group.table).await?;
    let columns = columns.ok_or_else(|| missing_insert_table(group.table))?;
    Ok(data.columns.insert(group.table, columns))
}

/// Columns of values that are sent as arrays and unnested by the server into `v`.
#[derive(Default)]
pub(super) struct Batch<'a> {
    arrays: Vec<Array<'a>>,
    /// The range of the rows to join with, if it is known.
    range: Option<(i64, i64)>,
}

impl<'a> Batch<'a> {
    /// Adds a column and returns its expression, cast to the type of the table's column.
    pub(super) fn add(
        &mut self,
        values: impl Iterator<Item = &'a Value>,
        column: Option<&Column>,
    ) -> String {
        let values: Vec<&Value> = values.collect();
        let name = format!("v.c{}", self.arrays.len());
        self.arrays.push(Array::of(&values, column));
        match column {
            Some(column) => format!("{name}::{}", cast_type(column)),
            None => name,
        }
    }

    /// Sets the range of the rows to join with, after the last column. Returns the expressions of its bounds.
    fn bounds(&mut self, least: i64, greatest: i64) -> (String, String) {
        self.range = Some((least, greatest));
        (format!("${}", self.arrays.len() + 1), format!("${}", self.arrays.len() + 2))
    }

    /// The batch as a relation. Without a range, subselects hide the length of the arrays from the planner.
    /// Otherwise it would read a table of some hundred thousand rows for each batch, although one index lookup
    /// per row is faster.
    pub(super) fn relation(&self) -> String {
        let number = |(n, array): (usize, &Array<'_>)| match self.range {
            Some(_) => format!("${}::{}", n + 1, array.sql_type()),
            None => format!("(SELECT ${}::{})", n + 1, array.sql_type()),
        };
        let arrays: Vec<String> = self.arrays.iter().enumerate().map(number).collect();
        let names: Vec<String> = (0..self.arrays.len()).map(|n| format!("c{n}")).collect();
        format!("unnest({}) WITH ORDINALITY AS v({}, ord)", arrays.join(", "), names.join(", "))
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let bounds = self.range.into_iter().flat_map(|(least, greatest)| [least, greatest]);
        self.arrays.iter().map(Array::param).chain(bounds.map(Param::from)).collect()
    }
}

/// Replaces a missing value.
const NULL: &Value = &Value::Null;
