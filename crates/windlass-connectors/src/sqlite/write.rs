//! Writing items back. Without a network in between, a prepared statement run once per item beats
//! one statement joined to `json_each`: 200,000 updates took 0.6 s against 1.2 s.

use super::{Bound, failed};
use crate::sql::{Dialect, quote, quote_table};
use crate::write::{Inserts, Updates, emitted, insert_column, inserts, settle_conflicts, updates};
use crate::{DeferredItem, Result, Scope, WriteItem, statement};
use rusqlite::{Transaction, params_from_iter};
use std::collections::HashSet;
use windlass_core::{Counts, Value};
use windlass_drivers::{Class, Error};

/// Writes the items back. What comes back are the conflicts: what they add to the counts, and
/// those to hold.
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
    let (held, counts) = settle_conflicts(scope, items, &conflicts);
    Ok((counts, held))
}

/// Updates the rows whose version is the one that was read. Those that are not touched have met a
/// concurrent write.
fn update(
    transaction: &Transaction<'_>,
    scope: &Scope,
    items: &[WriteItem],
    group: &Updates<'_>,
    conflicts: &mut HashSet<usize>,
) -> Result<()> {
    let missing = || scope.job_type.problem("step.version", "is missing");
    let version = quote(scope.job_type.step.version.as_deref().ok_or_else(missing)?);
    let mut set = vec![format!("{version} = {version} + 1")];
    set.extend(group.columns.iter().map(|column| format!("{} = ?", quote(&column.name))));
    let mut matched: Vec<String> =
        scope.key().iter().map(|column| format!("{} = ?", quote(column))).collect();
    matched.push(format!("{version} = ?"));
    let sql = format!(
        "UPDATE {} SET {} WHERE {}",
        quote_table(&scope.table.name),
        set.join(", "),
        matched.join(" AND "),
    );
    let mut statement = transaction.prepare_cached(&sql).map_err(failed)?;
    for place in &group.items {
        let item = &items[*place];
        let update = |column: &&windlass_core::Column| item.change.update.get(&column.name);
        let values = group.columns.iter().map(|column| update(column).unwrap_or(&Value::Null));
        let key = (0..scope.key().len()).map(|n| item.key.0.get(n).unwrap_or(&Value::Null));
        let values = values.chain(key).chain([&item.version]).map(Bound);
        if statement.execute(params_from_iter(values)).map_err(failed)? == 0 {
            conflicts.insert(*place);
        }
    }
    Ok(())
}

/// Inserts the rows of one table with the same columns.
fn insert(transaction: &Transaction<'_>, group: &Inserts<'_>) -> Result<()> {
    let Some(columns) = super::describe::columns_of(transaction, group.table)? else {
        let message = format!("insert: there is no table `{}`", group.table);
        return Err(Error::new(Class::Definition, message).into());
    };
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
