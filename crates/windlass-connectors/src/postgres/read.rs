//! Reads and counts records, and removes duplicate values.

use super::row::{self, get, typed_values, value};
use crate::array::Array;
use crate::item_reader::ItemReader;
use crate::key_check::KeyCheck;
use crate::predicate::{Bounds, relation};
use crate::sql::{Dialect, Sql, cast_type, quote};
use crate::{Batch, Item, Result, Scope, statement};
use futures::StreamExt;
use std::ops::ControlFlow;
use windlass_core::{KeySet, Value};
use windlass_drivers::{Postgres, Row, Transaction};

/// Reads records of a key set in key order, up to a number of records and of bytes, in one round trip
/// with these settings.
pub(super) async fn read(
    db: &Postgres,
    settings: &str,
    scope: &Scope,
    key_set: &KeySet,
    limit: u32,
    bytes: usize,
) -> Result<Batch> {
    let (sql, mut reader) = selection(scope, key_set, limit, bytes);
    db.read(settings, &sql.text, &sql.params(), |row| push_row(&mut reader, scope, &row)).await?;
    Ok(reader.into_batch(limit))
}

/// The statement that reads one record more than `limit`, and the reader of its rows.
fn selection<'a>(
    scope: &'a Scope,
    key_set: &'a KeySet,
    limit: u32,
    bytes: usize,
) -> (Sql<'a>, ItemReader<'a>) {
    let most = u64::from(limit) + 1;
    let sql = statement::select(Dialect::Postgres, scope, key_set, Bounds::All, most);
    (sql, ItemReader::new(Dialect::Postgres, scope, bytes))
}

/// [`read`] in a transaction that has begun.
pub(super) async fn read_in(
    transaction: &Transaction,
    scope: &Scope,
    key_set: &KeySet,
    limit: u32,
    bytes: usize,
) -> Result<Batch> {
    let (sql, mut reader) = selection(scope, key_set, limit, bytes);
    let mut rows = transaction.stream(&sql.text, &sql.params()).await?;
    while let Some(row) = rows.next().await {
        if push_row(&mut reader, scope, &row?)?.is_break() {
            break;
        }
    }
    Ok(reader.into_batch(limit))
}

/// All items of a [`statement::select`].
pub(super) async fn fetch(
    transaction: &Transaction,
    scope: &Scope,
    sql: &Sql<'_>,
) -> Result<Vec<Item>> {
    let mut reader = ItemReader::new(Dialect::Postgres, scope, usize::MAX);
    for row in transaction.query(&sql.text, &sql.params()).await? {
        let _ = push_row(&mut reader, scope, &row)?;
    }
    Ok(reader.into_items())
}

fn push_row(reader: &mut ItemReader<'_>, scope: &Scope, row: &Row) -> Result<ControlFlow<()>> {
    let values = typed_values(row, &scope.table.columns, scope.key())?;
    let guard = reader.guard_position().map_or(Ok(Value::Null), |index| value(row, index))?;
    let copy = reader.copy_position().map_or(Ok(1), |index| get(row, index))?;
    reader.push(values, guard, copy)
}

/// Refuses a source in which a record has no key, or a key that is not unique.
pub(super) async fn check_keys(
    transaction: &Transaction,
    scope: &Scope,
    checks: Vec<KeyCheck<'_>>,
) -> Result<()> {
    for (sql, problem) in checks {
        if let Some(found) = transaction.query_opt(&sql.text, &sql.params()).await? {
            return Err(problem(scope, &row::key(&found, scope.key().len())?).into());
        }
    }
    Ok(())
}

/// Counts the records of a key set.
pub(super) async fn count(
    transaction: &Transaction,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<i64> {
    let sql = statement::count(Dialect::Postgres, scope, key_set);
    get(&transaction.query_one(&sql.text, &sql.params()).await?, 0)
}

/// Counts the records of each of these key sets, several in one statement.
pub(super) async fn count_each(
    transaction: &Transaction,
    scope: &Scope,
    key_sets: &[KeySet],
) -> Result<Vec<i64>> {
    let mut counts = vec![0; key_sets.len()];
    for (first, key_sets) in statement::count_batches(scope, key_sets) {
        let sql = statement::count_each(Dialect::Postgres, scope, key_sets);
        for row in transaction.query(&sql.text, &sql.params()).await? {
            counts[first + get::<i32>(&row, 0)? as usize] = get(&row, 1)?;
        }
    }
    Ok(counts)
}

/// Removes the rows that the server considers equal to an earlier one. Each row is looked up and returned
/// as the table has it, since different texts may be equal (`1.0` and `1.00`, citext). A row that does
/// not exist is returned as given. The empty half of the UNION gives the values the collations of their
/// columns.
pub(super) async fn distinct(
    transaction: &Transaction,
    scope: &Scope,
    columns: &[String],
    rows: &[Vec<Value>],
) -> Result<Vec<Vec<Value>>> {
    if rows.is_empty() || columns.is_empty() {
        return Ok(rows.to_vec());
    }
    let quoted: Vec<String> = columns.iter().map(|name| quote(name)).collect();
    let names: Vec<String> = (0..columns.len()).map(|n| format!("c{n}")).collect();
    let mut casts = names.clone();
    let mut rendered = names.clone();
    for (n, name) in columns.iter().enumerate() {
        if let Some(column) = scope.table.column(name) {
            casts[n] = format!("v.c{n}::{}", cast_type(column));
            rendered[n] = Dialect::Postgres.render(column, &format!("c{n}"));
        }
    }
    let listed = |what: &dyn Fn(usize, &String) -> String, between: &str| {
        let all = quoted.iter().enumerate().map(|(n, column)| what(n, column));
        all.collect::<Vec<_>>().join(between)
    };
    let known = listed(
        &|n, _| format!("coalesce(windlass_stored.s{n}, windlass_given.c{n}) AS c{n}"),
        ", ",
    );
    let stored = listed(&|n, column| format!("{column} AS s{n}"), ", ");
    let source = relation(Dialect::Postgres, scope);
    // With an index, one lookup per row is fast. A query is better run once for all rows.
    let stored = match scope.table.index_on(&columns.iter().map(String::as_str).collect::<Vec<_>>())
    {
        Some(_) => format!(
            "LATERAL (SELECT {stored} FROM {source} WHERE {} LIMIT 1) AS windlass_stored ON true",
            listed(&|n, column| format!("{column} = windlass_given.c{n}"), " AND ")
        ),
        None => format!(
            "(SELECT {stored} FROM {source}) AS windlass_stored ON {}",
            listed(&|n, _| format!("windlass_stored.s{n} = windlass_given.c{n}"), " AND ")
        ),
    };
    let given = listed(&|n, _| format!("windlass_given.c{n}"), ", ");
    let mut sql = Sql::new(
        Dialect::Postgres,
        format!(
            "SELECT {rendered} FROM (SELECT DISTINCT ON ({given}) {known}, windlass_given.ord FROM (\
             SELECT {none}, 0::bigint AS ord FROM {source} WHERE false \
             UNION ALL SELECT {casts}, v.ord FROM unnest(",
            rendered = rendered.join(", "),
            none = listed(&|n, column| format!("{column} AS c{n}"), ", "),
            casts = casts.join(", "),
        ),
    );
    for (n, name) in columns.iter().enumerate() {
        let values: Vec<&Value> =
            rows.iter().map(|row| row.get(n).unwrap_or(&Value::Null)).collect();
        sql.push(if n > 0 { ", " } else { "" });
        sql.array(Array::of(&values, scope.table.column(name)));
    }
    let names = names.join(", ");
    sql.push(format!(
        ") WITH ORDINALITY AS v({names}, ord)) AS windlass_given LEFT JOIN {stored} \
         ORDER BY {given}, windlass_given.ord) AS once ORDER BY ord"
    ));
    let found = transaction.query(&sql.text, &sql.params()).await?;
    found.iter().map(|row| (0..columns.len()).map(|n| value(row, n)).collect()).collect()
}
