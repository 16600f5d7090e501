//! Checks the changes of single items, and groups them into few statements.

use crate::{ConnectorError, DeferredItem, Scope, WriteItem};
use std::collections::{BTreeMap, HashMap, HashSet};
use windlass_core::config::names;
use windlass_core::{ChunkId, Column, Counts, Value};
use windlass_drivers::{Error, ErrorClass};

/// Updates that set the same columns. `items` are indexes.
pub(crate) struct Updates<'a> {
    pub(crate) columns: Vec<&'a Column>,
    pub(crate) items: Vec<usize>,
}

/// Rows for one table with the same columns.
pub(crate) struct Inserts<'a> {
    pub(crate) table: &'a str,
    pub(crate) columns: Vec<&'a str>,
    pub(crate) rows: Vec<&'a BTreeMap<String, Value>>,
}

/// Groups the updates by their set of columns. An invalid one is an error of the class `Data`, so that
/// halving the batch finds its item.
pub(crate) fn updates<'a>(
    scope: &'a Scope,
    items: &'a [WriteItem],
) -> Result<Vec<Updates<'a>>, Error> {
    let mut groups: Vec<Updates<'a>> = Vec::new();
    let mut group_of: HashMap<Vec<&'a str>, usize> = HashMap::new();
    for (n, item) in items.iter().enumerate() {
        if item.change.update.is_empty() {
            continue;
        }
        // Usually all items set the same columns.
        if let Some(group) = groups.last_mut()
            && item.change.update.keys().eq(group.columns.iter().map(|column| &column.name))
        {
            group.items.push(n);
            continue;
        }
        let columns: Vec<&str> = item.change.update.keys().map(String::as_str).collect();
        match group_of.get(&columns) {
            Some(group) => groups[*group].items.push(n),
            None => {
                let checked = columns.iter().map(|column| check(scope, column));
                let checked = checked.collect::<Result<_, _>>()?;
                group_of.insert(columns, groups.len());
                groups.push(Updates { columns: checked, items: vec![n] });
            }
        }
    }
    Ok(groups)
}

/// Groups the inserts of items without a conflict by table and set of columns. The groups keep the order
/// of their first rows, so that referenced rows are inserted before the rows that refer to them.
pub(crate) fn inserts<'a>(items: &'a [WriteItem], conflicts: &HashSet<usize>) -> Vec<Inserts<'a>> {
    let mut groups: Vec<Inserts<'a>> = Vec::new();
    let mut group_of: HashMap<(&'a str, Vec<&'a str>), usize> = HashMap::new();
    for (n, item) in items.iter().enumerate() {
        if conflicts.contains(&n) {
            continue;
        }
        for insert in &item.change.insert {
            for row in &insert.rows {
                let columns: Vec<&str> = row.keys().map(String::as_str).collect();
                let next = groups.len();
                let group = *group_of.entry((&insert.table, columns.clone())).or_insert(next);
                if group == next {
                    groups.push(Inserts { table: &insert.table, columns, rows: Vec::new() });
                }
                groups[group].rows.push(row);
            }
        }
    }
    groups
}

/// The number of rows that a group of inserts emits, and their chunk. `None` for other tables. All items
/// of a commit belong to one chunk.
pub(crate) fn emitted(group: &Inserts<'_>) -> Option<(ChunkId, i64)> {
    let first = group.rows.first().filter(|_| group.table == crate::emitted::TABLE)?;
    let (Value::Text(job), Value::Int(number)) = (first.get("job_id")?, first.get("chunk")?) else {
        return None;
    };
    Some((ChunkId { job: job.parse().ok()?, number: *number }, group.rows.len() as i64))
}

/// A change that the table refuses for its columns is an error of its item and not of the job: one that sets a
/// generated column, which PostgreSQL, MariaDB, MySQL and SQLite report as an error of the statement.
pub(crate) fn item_error(error: ConnectorError) -> ConnectorError {
    let is_generated = |error: &Error| match error.code.as_deref() {
        Some("428C9" | "1906" | "3105") => true,
        _ => error.message.contains("generated column"),
    };
    match error {
        ConnectorError::Database(error)
            if error.class == ErrorClass::Definition && is_generated(&error) =>
        {
            Error { class: ErrorClass::Data, ..error }.into()
        }
        error => error,
    }
}

/// The items to defer because of conflicts, and the change of the counts, in which every item counts as
/// processed so far.
pub(crate) fn resolve_conflicts(
    scope: &Scope,
    items: &[WriteItem],
    conflicts: &HashSet<usize>,
) -> (Vec<DeferredItem>, Counts) {
    let mut counts = Counts::default();
    let mut deferred = Vec::new();
    if conflicts.is_empty() {
        return (deferred, counts);
    }
    // In their order.
    for (_, item) in items.iter().enumerate().filter(|(n, _)| conflicts.contains(n)) {
        counts.processed -= 1;
        deferred.extend(item.conflicted(scope.job_type.step.on_conflict, &mut counts));
    }
    (deferred, counts)
}

/// An insert into a table that does not exist.
pub(crate) fn missing_insert_table(table: &str) -> Error {
    Error::new(ErrorClass::Definition, format!("insert: there is no table `{table}`"))
}

/// A load into a table that does not exist.
pub(crate) fn missing_load_table(table: &str) -> Error {
    Error::new(ErrorClass::Definition, format!("load: there is no table `{table}`"))
}

/// The columns of an insert's table with these names.
pub(crate) fn insert_columns<'a>(
    table: &str,
    columns: &'a [Column],
    names: &[String],
) -> Result<Vec<&'a Column>, Error> {
    names.iter().map(|name| insert_column(table, columns, name)).collect()
}

/// The column of an insert's table with this name.
pub(crate) fn insert_column<'a>(
    table: &str,
    columns: &'a [Column],
    name: &str,
) -> Result<&'a Column, Error> {
    columns.iter().find(|column| column.name == name).ok_or_else(|| {
        let known = names(columns.iter().map(|column| &column.name));
        refused(format!("insert: `{table}` has no column `{name}`; its columns are {known}"))
    })
}

fn check<'a>(scope: &'a Scope, name: &str) -> Result<&'a Column, Error> {
    may_set(scope, name)?;
    scope.table.column(name).ok_or_else(|| {
        let known = names(scope.table.columns.iter().map(|column| &column.name));
        refused(format!(
            "update: `{}` has no column `{name}`; its columns are {known}",
            scope.table.name
        ))
    })
}

/// The columns that the outcomes of items may set.
pub fn settable_columns(scope: &Scope) -> Vec<String> {
    let names = scope.table.columns.iter().map(|column| column.name.clone());
    names.filter(|name| may_set(scope, name).is_ok()).collect()
}

/// Refuses a column that an item's outcome must not set.
pub(crate) fn may_set(scope: &Scope, name: &str) -> Result<(), Error> {
    let step = &scope.job_type.step;
    if scope.job_type.source.items {
        return Err(refused(
            "update: the items came with the request, so there is no table to write them back to; \
             use insert",
        ));
    }
    if scope.job_type.source.table.is_none() {
        return Err(refused(
            "update: the source is a query, which cannot be written back; use insert",
        ));
    }
    if step.version.as_deref() == Some(name) {
        return Err(refused(format!(
            "update: sets the version column `{name}`, which only Windlass may set"
        )));
    }
    if scope.table.generated.iter().any(|column| column == name) {
        return Err(refused(format!(
            "update: sets `{name}`, a generated column, which only the database sets"
        )));
    }
    if scope.job_type.fixed_columns().contains(&name) {
        return Err(refused(format!(
            "update: sets `{name}`, a key, filter or claim column: the row would move into \
             another chunk"
        )));
    }
    Ok(())
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorClass::Data, message)
}
