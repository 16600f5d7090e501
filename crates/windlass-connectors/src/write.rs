//! Changes of single items, checked and gathered into as few statements as they allow.

use crate::{DeferredItem, Scope, WriteItem};
use std::collections::{BTreeMap, HashMap, HashSet};
use windlass_core::config::names;
use windlass_core::{ChunkId, Column, Counts, Value};
use windlass_drivers::{Class, Error};

/// Updates that set the same columns, by their items' places.
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

/// The updates by their set of columns, or what is wrong with one of them. It is an error of the
/// data, so that halving finds the item.
pub(crate) fn updates<'a>(
    scope: &'a Scope,
    items: &'a [WriteItem],
) -> Result<Vec<Updates<'a>>, Error> {
    let mut groups: Vec<Updates<'a>> = Vec::new();
    let mut places: HashMap<Vec<&'a str>, usize> = HashMap::new();
    for (n, item) in items.iter().enumerate() {
        if item.change.update.is_empty() {
            continue;
        }
        let columns: Vec<&str> = item.change.update.keys().map(String::as_str).collect();
        match places.get(&columns) {
            Some(place) => groups[*place].items.push(n),
            None => {
                let checked = columns.iter().map(|column| check(scope, column));
                let checked = checked.collect::<Result<_, _>>()?;
                places.insert(columns, groups.len());
                groups.push(Updates { columns: checked, items: vec![n] });
            }
        }
    }
    Ok(groups)
}

/// The inserts of the items that met no conflict, by table and set of columns, each kind where it
/// came first, so that rows others refer to are there before them.
pub(crate) fn inserts<'a>(items: &'a [WriteItem], conflicts: &HashSet<usize>) -> Vec<Inserts<'a>> {
    let mut groups: Vec<Inserts<'a>> = Vec::new();
    let mut places: HashMap<(&'a str, Vec<&'a str>), usize> = HashMap::new();
    for (n, item) in items.iter().enumerate() {
        if conflicts.contains(&n) {
            continue;
        }
        for insert in &item.change.insert {
            for row in &insert.rows {
                let columns: Vec<&str> = row.keys().map(String::as_str).collect();
                let next = groups.len();
                let place = *places.entry((&insert.table, columns.clone())).or_insert(next);
                if place == next {
                    groups.push(Inserts { table: &insert.table, columns, rows: Vec::new() });
                }
                groups[place].rows.push(row);
            }
        }
    }
    groups
}

/// How many rows a group of inserts emits, and for which chunk; none where its table is another.
/// All items of a commit are of one chunk.
pub(crate) fn emitted(group: &Inserts<'_>) -> Option<(ChunkId, i64)> {
    let first = group.rows.first().filter(|_| group.table == crate::emitted::TABLE)?;
    let (Value::Text(job), Value::Int(number)) = (first.get("job_id")?, first.get("chunk")?) else {
        return None;
    };
    Some((ChunkId { job: job.parse().ok()?, number: *number }, group.rows.len() as i64))
}

/// What the conflicts come to: items to hold, and what they change of the counts, in which every
/// item stands as processed so far.
pub(crate) fn settle_conflicts(
    scope: &Scope,
    items: Vec<WriteItem>,
    conflicts: &HashSet<usize>,
) -> (Vec<DeferredItem>, Counts) {
    let mut counts = Counts::default();
    let mut held = Vec::new();
    for (n, item) in items.into_iter().enumerate() {
        if conflicts.contains(&n) {
            counts.processed -= 1;
            held.extend(item.conflicted(scope.job_type.step.on_conflict, &mut counts));
        }
    }
    (held, counts)
}

/// A column of an insert's table, or the error that names the columns there are.
pub(crate) fn insert_column<'a>(
    table: &str,
    columns: &'a [Column],
    name: &str,
) -> Result<&'a Column, Error> {
    columns.iter().find(|column| column.name == name).ok_or_else(|| {
        let known = names(columns.iter().map(|column| &column.name));
        refused(format!("insert: `{table}` has no column `{name}`; there is {known}"))
    })
}

fn check<'a>(scope: &'a Scope, name: &str) -> Result<&'a Column, Error> {
    may_set(scope, name)?;
    scope.table.column(name).ok_or_else(|| {
        let known = names(scope.table.columns.iter().map(|column| &column.name));
        refused(format!("update: `{}` has no column `{name}`; there is {known}", scope.table.name))
    })
}

/// Whether an item's outcome may set a column of this name, if there is one.
pub(crate) fn may_set(scope: &Scope, name: &str) -> Result<(), Error> {
    let step = &scope.job_type.step;
    if scope.job_type.source.items {
        return Err(refused(
            "update: the items came with the request, and there is no table to write them back to; \
             use insert",
        ));
    }
    if scope.job_type.source.table.is_none() {
        return Err(refused(
            "update: the source is a query and cannot be written back; use insert",
        ));
    }
    if step.version.as_deref() == Some(name) {
        return Err(refused(format!(
            "update: sets the version column `{name}`, which is Windlass's to raise"
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
    Error::new(Class::Data, message)
}
