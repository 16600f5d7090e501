//! Statements that walk along the keys, for databases that need one query per chunk.

use crate::Scope;
use crate::predicate::{Bounds, push_key_set, relation};
use crate::sql::{Dialect, Sql};
use windlass_core::{Key, KeySet};

/// Which keys of a key set to select.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    /// Empty, or ` DESC`.
    pub(crate) direction: &'a str,
    pub(crate) limit: u64,
    pub(crate) offset: u64,
}

/// Selects keys of a key set in order.
pub(crate) fn select<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    key_set: &'a KeySet,
    bounds: Bounds,
    Step { direction, limit, offset }: Step<'_>,
) -> Sql<'a> {
    let columns = dialect.quote_columns(scope.key(), None);
    let text = format!("SELECT {} FROM {} WHERE ", columns.join(", "), relation(dialect, scope));
    let mut sql = Sql::new(dialect, text);
    push_key_set(&mut sql, scope, key_set, None, bounds);
    let order = columns.join(&format!("{direction}, "));
    sql.push(format!(" ORDER BY {order}{direction} LIMIT {limit} OFFSET {offset}"));
    sql
}

/// Selects the first keys of a key set in order, each with the number of its records. Records with equal keys must not
/// be in two chunks, so such a key is listed once.
pub(crate) fn list<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    key_set: &'a KeySet,
    limit: u64,
) -> Sql<'a> {
    let columns = dialect.quote_columns(scope.key(), None);
    // Renamed, since ORDER BY would otherwise sort by the text of a cast column.
    let named = |(n, name): (usize, &String)| {
        let column = scope.table.column(name);
        let rendered = column.map_or(columns[n].clone(), |c| dialect.render(c, &columns[n]));
        format!("{rendered} AS windlass_{n}")
    };
    let selected: Vec<String> = scope.key().iter().enumerate().map(named).collect();
    let text = format!(
        "SELECT {}, {} FROM {} WHERE ",
        selected.join(", "),
        records_of_key(dialect, scope),
        relation(dialect, scope)
    );
    let mut sql = Sql::new(dialect, text);
    push_key_set(&mut sql, scope, key_set, None, Bounds::All);
    let order = columns.join(", ");
    if scope.key_may_repeat() {
        sql.push(format!(" GROUP BY {order}"));
    }
    sql.push(format!(" ORDER BY {order} LIMIT {limit}"));
    sql
}

/// The number of a key's records in a list of keys, which is grouped by them if they may repeat.
pub(crate) fn records_of_key(dialect: Dialect, scope: &Scope) -> &'static str {
    match (scope.key_may_repeat(), dialect) {
        (true, _) => "count(*)",
        (false, Dialect::Postgres) => "1::bigint",
        (false, Dialect::Sqlite | Dialect::Mysql) => "1",
    }
}

/// Numbers all keys of a key set in one pass, for queries and views, where one query per chunk might run
/// the whole query each time. A chunk ends with the last record of a key, at or after the n-th record.
/// The last column is the number of records up to there.
pub(crate) fn number<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    key_set: &'a KeySet,
    every: u64,
    max: u64,
) -> Sql<'a> {
    let columns = dialect.quote_columns(scope.key(), None);
    let named = |(n, column): (usize, &String)| format!("{column} AS windlass_{n}");
    let selected: Vec<String> = columns.iter().enumerate().map(named).collect();
    let rendered: Vec<String> = scope
        .key()
        .iter()
        .enumerate()
        .map(|(n, column)| match scope.table.column(column) {
            Some(column) => dialect.render(column, &format!("windlass_{n}")),
            None => format!("windlass_{n}"),
        })
        .collect();
    let order = columns.join(", ");
    let mut sql = Sql::new(
        dialect,
        format!(
            "SELECT {}, windlass_upto FROM (SELECT {}, \
             row_number() OVER (ORDER BY {order}) AS windlass_n, \
             rank() OVER (ORDER BY {order}) AS windlass_first, \
             count(*) OVER (ORDER BY {order}) AS windlass_upto FROM {} WHERE ",
            rendered.join(", "),
            selected.join(", "),
            relation(dialect, scope),
        ),
    );
    push_key_set(&mut sql, scope, key_set, None, Bounds::All);
    // The records of a key have the numbers from `windlass_first` to `windlass_upto`. A multiple of the
    // chunk size is among them if the remainder of the division is less than their count.
    sql.push(format!(
        ") AS numbered WHERE windlass_n = windlass_upto \
         AND windlass_upto % {every} < windlass_upto - windlass_first + 1 \
         ORDER BY windlass_n LIMIT {max}"
    ));
    sql
}

/// Converts the number of records up to each key into the number since the previous key.
pub(crate) fn count_chunks(ends: Vec<(Key, i64)>) -> Vec<(Key, i64)> {
    let mut before = 0;
    let count = |(key, upto): (Key, i64)| (key, upto - std::mem::replace(&mut before, upto));
    ends.into_iter().map(count).collect()
}
