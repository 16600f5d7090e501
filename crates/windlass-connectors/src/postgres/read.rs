//! Reading records, counting them, and telling values apart.

use super::row::{self, get, value, values};
use crate::array::Array;
use crate::key_check::{check_read, copy_column, questions};
use crate::predicate::{Bounds, relation};
use crate::sql::{Dialect, Sql, cast_type, quote};
use crate::{Batch, Item, Result, Scope, statement};
use std::ops::ControlFlow;
use windlass_core::{Columns, KeySet, Record, Value};
use windlass_drivers::{Postgres, Row, Transaction};

/// Reads records of an key_set in key order, at most so many and about so many bytes, in one round
/// trip with these settings.
pub(super) async fn read(
    db: &Postgres,
    settings: &str,
    scope: &Scope,
    key_set: &KeySet,
    limit: u32,
    bytes: usize,
) -> Result<Batch> {
    let sql =
        statement::select(Dialect::Postgres, scope, key_set, Bounds::All, u64::from(limit) + 1);
    let mut reader = Reader::new(scope, bytes);
    db.read(settings, &sql.text, &sql.params(), |row| reader.take(&row)).await?;
    Ok(Batch::of(reader.items, reader.all, limit))
}

/// The items of a statement made by [`statement::select`], all of them.
pub(super) async fn fetch(
    transaction: &Transaction,
    scope: &Scope,
    sql: &Sql<'_>,
) -> Result<Vec<Item>> {
    let mut reader = Reader::new(scope, usize::MAX);
    for row in transaction.query(&sql.text, &sql.params()).await? {
        let _ = reader.take(&row)?;
    }
    Ok(reader.items)
}

/// Makes rows into items as they arrive, up to a limit of bytes.
struct Reader<'a> {
    scope: &'a Scope,
    columns: Columns,
    places: statement::Places,
    /// Whether each row says its number among those of its key.
    numbered: bool,
    left: usize,
    items: Vec<Item>,
    /// Whether nothing was left out.
    all: bool,
}

impl Reader<'_> {
    fn new(scope: &Scope, bytes: usize) -> Reader<'_> {
        let (columns, places) = (statement::columns_of(scope), statement::Places::of(scope));
        let numbered = copy_column(Dialect::Postgres, scope).is_some();
        Reader { scope, columns, places, numbered, left: bytes, items: Vec::new(), all: true }
    }

    fn take(&mut self, row: &Row) -> Result<ControlFlow<()>> {
        let values = values(row, self.columns.len())?;
        let (key, version) = (self.places.key(&values), self.places.version(&values));
        let copy = if self.numbered { get(row, self.columns.len())? } else { 1 };
        // The row behind the last one is checked too: were it of the same key, no batch would have it.
        check_read(self.scope, self.items.last().map(|item| &item.key), &key, copy)?;
        if self.left == 0 {
            self.all = false;
            return Ok(ControlFlow::Break(()));
        }
        let record = Record::new(self.columns.clone(), values);
        self.left = self.left.saturating_sub(record.size());
        self.items.push(Item { key, version, record });
        Ok(ControlFlow::Continue(()))
    }
}

/// Refuses a source in which a record has no key, or not one of its own.
pub(super) async fn check_keys(
    transaction: &Transaction,
    scope: &Scope,
    most: Option<u64>,
) -> Result<()> {
    for (sql, problem) in questions(Dialect::Postgres, scope, most) {
        if let Some(found) = transaction.query_opt(&sql.text, &sql.params()).await? {
            return Err(problem(scope, &row::key(&found, scope.key().len())?).into());
        }
    }
    Ok(())
}

/// How many records an key_set has now.
pub(super) async fn count(
    transaction: &Transaction,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<i64> {
    let sql = statement::count(Dialect::Postgres, scope, key_set);
    get(&transaction.query_one(&sql.text, &sql.params()).await?, 0)
}

/// How many records each of these key_sets has now, several in one statement.
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

/// The rows without those that the server holds equal to an earlier one. Each is looked up and
/// stands as it is written in the table, since several texts may be equal there (`1.0` and `1.00`,
/// the letters of a citext); one that is not there stands as it was given. The empty half of the
/// union gives the values the collations of the columns they are meant for.
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
    // By its index a table is asked for each row; a query is better run once for all of them.
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
