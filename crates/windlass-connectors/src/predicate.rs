//! The records of an key_set as a condition: keys AND `source.where` AND filters AND claims.

use crate::Scope;
use crate::array::Array;
use crate::mysql::Cells;
use crate::sql::{self, Dialect, Sql, cast_type, is_array, row};
use std::borrow::Cow;
use windlass_core::{Key, KeyRange, KeySet, Keys, Value};

/// Which of the bounds a condition is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// All of them: what a step may reach.
    All,
    /// All but `source.where`. For rows that a statement has just changed, which may have left
    /// the fixed condition by that; filter and claim columns no step may set.
    WithoutWhere,
    /// The keys alone.
    Keys,
}

/// What to select from: the table, or the query under the name `source`.
pub(crate) fn relation(dialect: Dialect, scope: &Scope) -> String {
    let source = &scope.job_type.source;
    match (&source.table, &source.query) {
        (Some(table), _) => dialect.quote_table(table),
        (None, query) => query_relation(query.as_deref().unwrap_or_default()),
    }
}

/// A query as something to select from. The line break ends a comment at its end.
pub(crate) fn query_relation(query: &str) -> String {
    format!("({}\n) AS source", query.trim().trim_end_matches(';'))
}

/// Whether the source is a query.
pub(crate) fn is_query(scope: &Scope) -> bool {
    scope.job_type.source.table.is_none()
}

/// Adds the condition of an key_set on the source's own relation.
pub(crate) fn push_extent<'a>(
    sql: &mut Sql<'a>,
    scope: &'a Scope,
    key_set: &'a KeySet,
    alias: Option<&str>,
    bounds: Bounds,
) {
    let begin = sql.text.len();
    match &key_set.keys {
        Keys::Range(range) => push_range(sql, scope, range, alias),
        Keys::List(keys) => push_keys(sql, scope, keys, alias),
    }
    push_limits(sql, scope, key_set, alias, bounds);
    if sql.text.len() == begin {
        sql.push("true");
    }
}

/// Adds what `{chunk}` stands for. A query is not what the statement changes, so there the chunk
/// is a set of keys.
pub(crate) fn push_chunk<'a>(
    sql: &mut Sql<'a>,
    scope: &'a Scope,
    key_set: &'a KeySet,
    alias: Option<&str>,
) {
    sql.push("(");
    if is_query(scope) {
        let keys = row(&sql.dialect.quote_columns(scope.key(), alias));
        let columns = sql.dialect.quote_columns(scope.key(), None).join(", ");
        let relation = relation(sql.dialect, scope);
        sql.push(format!("{keys} IN (SELECT {columns} FROM {relation} WHERE "));
        push_extent(sql, scope, key_set, None, Bounds::All);
        sql.push(")");
    } else {
        push_extent(sql, scope, key_set, alias, Bounds::All);
    }
    sql.push(")");
}

/// Adds `key > after AND key <= upto`, as far as there are bounds.
pub(crate) fn push_range<'a>(
    sql: &mut Sql<'a>,
    scope: &'a Scope,
    range: &'a KeyRange,
    alias: Option<&str>,
) {
    for (operator, bound) in [(" > ", &range.after), (" <= ", &range.upto)] {
        if let Some(key) = bound {
            and(sql);
            if sql.dialect == Dialect::Mysql && scope.key().len() > 1 {
                push_bound(sql, scope, key, operator, alias);
                continue;
            }
            sql.push(row(&sql.dialect.quote_columns(scope.key(), alias))).push(operator);
            push_key(sql, scope, key);
        }
    }
}

/// Adds a comparison with a key of several columns, written out: MySQL finds no range of an index
/// in `(a, b) > (1, 2)`. What the first column comes to is said twice, which is what it takes the
/// range from.
fn push_bound<'a>(
    sql: &mut Sql<'a>,
    scope: &'a Scope,
    key: &'a Key,
    operator: &str,
    alias: Option<&str>,
) {
    let beyond = if operator.contains('>') { " > " } else { " < " };
    let last = scope.key().len() - 1;
    let compare = |sql: &mut Sql<'a>, n: usize, operator: &str| {
        let column = &scope.key()[n];
        sql.push(sql.dialect.qualified(column, alias)).push(operator);
        sql.bind_as(value_of(key, n), scope.table.column(column));
    };
    compare(sql, 0, if beyond == " > " { " >= " } else { " <= " });
    sql.push(" AND ");
    for n in 0..last {
        sql.push("(");
        compare(sql, n, beyond);
        sql.push(" OR ");
        compare(sql, n, " = ");
        sql.push(" AND ");
    }
    compare(sql, last, operator);
    sql.push(")".repeat(last));
}

/// Adds `source.where`, the filters and the claims.
pub(crate) fn push_limits<'a>(
    sql: &mut Sql<'a>,
    scope: &'a Scope,
    key_set: &'a KeySet,
    alias: Option<&str>,
    bounds: Bounds,
) {
    if bounds == Bounds::Keys {
        return;
    }
    if let (Bounds::All, Some(condition)) = (bounds, &scope.job_type.source.condition) {
        and(sql);
        // The line break ends a comment at the end of the condition.
        sql.push(format!("({condition}\n)"));
    }
    for (name, values, is_claim) in scope.conditions(key_set.within.as_ref()) {
        let (column, qualified) = (scope.table.column(name), sql.dialect.qualified(name, alias));
        and(sql);
        sql.push(&qualified);
        // The equality of the column's collation, which an index serves, and for claims that of the
        // bytes beside it.
        let exact = (is_claim && sql::has_collation(column)).then(|| values.clone());
        sql.is_one_of(values, column);
        if let Some(values) = exact {
            sql.push(" AND ");
            sql.is_exactly_one_of(&qualified, &values);
        }
    }
}

/// Adds ` AND `, unless a condition has only just begun.
pub(crate) fn and(sql: &mut Sql<'_>) {
    if !sql.text.ends_with(['(', ' ']) {
        sql.push(" AND ");
    }
}

fn push_key<'a>(sql: &mut Sql<'a>, scope: &'a Scope, key: &'a Key) {
    let several = scope.key().len() > 1;
    sql.push(if several { "(" } else { "" });
    for (n, column) in scope.key().iter().enumerate() {
        sql.push(if n > 0 { ", " } else { "" });
        sql.bind_as(value_of(key, n), scope.table.column(column));
    }
    sql.push(if several { ")" } else { "" });
}

/// A key of too few values matches nothing, as a comparison with NULL does.
fn value_of(key: &Key, n: usize) -> Cow<'_, Value> {
    key.0.get(n).map_or(Cow::Owned(Value::Null), Cow::Borrowed)
}

fn push_keys<'a>(sql: &mut Sql<'a>, scope: &'a Scope, keys: &'a [Key], alias: Option<&str>) {
    and(sql);
    if sql.dialect == Dialect::Mysql {
        return push_listed(sql, scope, keys, alias);
    }
    let columns = sql.dialect.quote_columns(scope.key(), alias);
    sql.push(row(&columns));
    let types = || scope.key().iter().map(|column| scope.table.column(column)).enumerate();
    let array = |n: usize, column| {
        let values: Vec<&Value> = keys.iter().map(|key| key.0.get(n).unwrap_or(NULL)).collect();
        Array::of(&values, column)
    };
    match sql.dialect {
        Dialect::Sqlite => {
            sql.push(" IN (");
            sql.json_rows(keys.iter().map(|key| key.0.as_slice()), columns.len());
            sql.push(")");
        }
        Dialect::Postgres if columns.len() == 1 && !types().any(|(_, c)| is_array(c)) => {
            for (n, column) in types() {
                sql.push(" = ANY(");
                sql.array(array(n, column));
                if let Some(column) = column {
                    sql.push("::").push(cast_type(column)).push("[]");
                }
                sql.push(")");
            }
        }
        Dialect::Postgres => {
            let casts: Vec<String> = types()
                .map(|(n, column)| match column {
                    Some(column) => format!("k{n}::{}", cast_type(column)),
                    None => format!("k{n}"),
                })
                .collect();
            sql.push(format!(" IN (SELECT {} FROM unnest(", casts.join(", ")));
            for (n, column) in types() {
                sql.push(if n > 0 { ", " } else { "" });
                sql.array(array(n, column));
            }
            let names: Vec<String> = (0..casts.len()).map(|n| format!("k{n}")).collect();
            sql.push(format!(") AS keys({}))", names.join(", ")));
        }
        Dialect::Mysql => {}
    }
}

/// Adds a list of keys for MySQL, which looks them up one by one in an index where each stands in
/// the statement, and reads the whole table where they come out of a document. Beyond what may be
/// bound there is no other way.
fn push_listed<'a>(sql: &mut Sql<'a>, scope: &'a Scope, keys: &'a [Key], alias: Option<&str>) {
    let columns = sql.dialect.quote_columns(scope.key(), alias);
    if keys.is_empty() {
        sql.push("false");
        return;
    }
    if keys.len() * columns.len() > MOST_BOUND {
        let mut cells = Cells::default();
        let mut values = Vec::new();
        for (n, name) in scope.key().iter().enumerate() {
            let column = keys.iter().map(|key| key.0.get(n).unwrap_or(NULL));
            values.push(cells.compared(column, scope.table.column(name)));
        }
        sql.push(format!("{} IN (SELECT {} FROM ", row(&columns), values.join(", ")));
        cells.push(sql);
        sql.push(")");
        return;
    }
    let single = columns.len() == 1;
    sql.push(if single { format!("{} IN (", columns[0]) } else { "(".to_owned() });
    for (place, key) in keys.iter().enumerate() {
        sql.push(match (place, single) {
            (0, _) => "",
            (_, true) => ", ",
            (_, false) => " OR ",
        });
        for (n, name) in scope.key().iter().enumerate() {
            if !single {
                sql.push(if n > 0 { " AND " } else { "(" }).push(&columns[n]).push(" = ");
            }
            sql.bind_as(value_of(key, n), scope.table.column(name));
        }
        sql.push(if single { "" } else { ")" });
    }
    sql.push(")");
}

/// MySQL counts the values of a statement in 16 bits; some are left to the rest of it.
const MOST_BOUND: usize = 60_000;

/// What stands where a key has too few values.
const NULL: &Value = &Value::Null;
