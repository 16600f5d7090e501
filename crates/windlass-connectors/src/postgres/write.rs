//! Writing items back: one statement for all items that set the same columns.

use super::{PostgresData, describe, row};
use crate::array::Array;
use crate::sql::{Dialect, cast_type, quote, quote_table};
use crate::write::{Inserts, Updates, emitted, insert_column, inserts, settle_conflicts, updates};
use crate::{DeferredItem, Result, Scope, WriteItem, statement};
use std::collections::HashSet;
use std::sync::Arc;
use windlass_core::{Column, Counts, Value};
use windlass_drivers::{Class, Error, Param, Transaction};

/// Writes the items back. What comes back are the conflicts: what they add to the counts, and
/// those to hold.
pub(super) async fn write(
    data: &PostgresData,
    transaction: &Transaction,
    scope: &Scope,
    items: Vec<WriteItem>,
) -> Result<(Counts, Vec<DeferredItem>)> {
    let mut conflicts = HashSet::new();
    for group in updates(scope, &items)? {
        update(transaction, scope, &items, &group, &mut conflicts).await?;
    }
    for group in inserts(&items, &conflicts) {
        insert(data, transaction, &group).await?;
        if let Some((chunk, rows)) = emitted(&group) {
            let params = [chunk.job.into(), chunk.number.into(), rows.into()];
            let sql = include_str!("../../sql/postgres/count_emitted.sql");
            transaction.execute(sql, &params).await?;
        }
    }
    let (held, counts) = settle_conflicts(scope, items, &conflicts);
    Ok((counts, held))
}

/// Updates the rows whose version is the one that was read. Those that do not come back have met
/// a concurrent write.
async fn update(
    transaction: &Transaction,
    scope: &Scope,
    items: &[WriteItem],
    group: &Updates<'_>,
    conflicts: &mut HashSet<usize>,
) -> Result<()> {
    let missing = || scope.job_type.problem("step.version", "is missing");
    let version = scope.job_type.step.version.as_deref().ok_or_else(missing)?;
    let mut batch = Batch::default();
    let mut matched = Vec::new();
    for (n, name) in scope.key().iter().enumerate() {
        let values = |item: usize| items[item].key.0.get(n).unwrap_or(NULL);
        let value = batch.add(group.items.iter().copied().map(values), scope.table.column(name));
        matched.push(format!("t.{} = {value}", quote(name)));
    }
    let versions = group.items.iter().map(|item| &items[*item].version);
    let value = batch.add(versions, scope.table.column(version));
    matched.push(format!("t.{} = {value}", quote(version)));
    let mut set = vec![format!("{0} = t.{0} + 1", quote(version))];
    for column in &group.columns {
        let values = |item: &usize| items[*item].change.update.get(&column.name).unwrap_or(NULL);
        let value = batch.add(group.items.iter().map(values), Some(column));
        set.push(format!("{} = {value}", quote(&column.name)));
    }
    let sql = format!(
        "UPDATE {} AS t SET {} FROM {} WHERE {} RETURNING v.ord",
        quote_table(&scope.table.name),
        set.join(", "),
        batch.relation(),
        matched.join(" AND "),
    );
    let rows = transaction.query(&sql, &batch.params()).await?;
    let mut updated = HashSet::with_capacity(rows.len());
    for row in &rows {
        updated.insert(row::get::<i64>(row, 0)?);
    }
    for (place, item) in group.items.iter().enumerate() {
        if !updated.contains(&(place as i64 + 1)) {
            conflicts.insert(*item);
        }
    }
    Ok(())
}

/// Inserts the rows of one table with the same columns.
async fn insert(data: &PostgresData, transaction: &Transaction, group: &Inserts<'_>) -> Result<()> {
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

/// The columns of the table, looked up once, and again when one of the names is unknown: it may
/// have been added since.
async fn columns_for(
    data: &PostgresData,
    transaction: &Transaction,
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

/// Columns of values on their way to the server as arrays, unnested there into `v`.
#[derive(Default)]
pub(super) struct Batch<'a> {
    arrays: Vec<Array<'a>>,
}

impl<'a> Batch<'a> {
    /// Adds a column and gives the expression for it, cast to the type of the table's column.
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

    /// The batch as a relation. The planner must not see how long the arrays are: it would join a
    /// table of some hundred thousand rows by reading all of it, batch after batch, where a look-up
    /// per row by the key is faster.
    pub(super) fn relation(&self) -> String {
        let number =
            |(n, array): (usize, &Array<'_>)| format!("(SELECT ${}::{})", n + 1, array.sql_type());
        let arrays: Vec<String> = self.arrays.iter().enumerate().map(number).collect();
        let names: Vec<String> = (0..self.arrays.len()).map(|n| format!("c{n}")).collect();
        format!("unnest({}) WITH ORDINALITY AS v({}, ord)", arrays.join(", "), names.join(", "))
    }

    pub(super) fn params(&self) -> Vec<Param<'_>> {
        self.arrays.iter().map(Array::param).collect()
    }
}

/// What stands where a value is missing.
const NULL: &Value = &Value::Null;
