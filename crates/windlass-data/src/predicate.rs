//! The records of an extent as a condition: keys AND `source.where` AND filters AND claims.

use crate::Scope;
use crate::array::Array;
use crate::sql::{Dialect, Sql, qualified, quote_columns, quote_table, row};
use std::borrow::Cow;
use windlass_core::{Extent, Key, KeyRange, Part, Value};

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
pub(crate) fn relation(scope: &Scope) -> String {
    let source = &scope.job_type.source;
    match (&source.table, &source.query) {
        (Some(table), _) => quote_table(table),
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

/// Adds the condition of an extent on the source's own relation.
pub(crate) fn push_extent<'a>(
    sql: &mut Sql<'a>,
    scope: &'a Scope,
    extent: &'a Extent,
    alias: Option<&str>,
    bounds: Bounds,
) {
    let begin = sql.text.len();
    match &extent.part {
        Part::Range(range) => push_range(sql, scope, range, alias),
        Part::Keys(keys) => push_keys(sql, scope, keys, alias),
    }
    push_limits(sql, scope, extent, alias, bounds);
    if sql.text.len() == begin {
        sql.push("true");
    }
}

/// Adds what `{chunk}` stands for. A query is not what the statement changes, so there the chunk
/// is a set of keys.
pub(crate) fn push_chunk<'a>(
    sql: &mut Sql<'a>,
    scope: &'a Scope,
    extent: &'a Extent,
    alias: Option<&str>,
) {
    sql.push("(");
    if is_query(scope) {
        let keys = quote_columns(scope.key(), alias);
        let columns = quote_columns(scope.key(), None).join(", ");
        sql.push(format!("{} IN (SELECT {columns} FROM {} WHERE ", row(&keys), relation(scope)));
        push_extent(sql, scope, extent, None, Bounds::All);
        sql.push(")");
    } else {
        push_extent(sql, scope, extent, alias, Bounds::All);
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
            sql.push(row(&quote_columns(scope.key(), alias))).push(operator);
            push_key(sql, scope, key);
        }
    }
}

/// Adds `source.where`, the filters and the claims.
pub(crate) fn push_limits<'a>(
    sql: &mut Sql<'a>,
    scope: &'a Scope,
    extent: &'a Extent,
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
    for (column, values) in scope.conditions(extent.within.as_ref()) {
        and(sql);
        sql.push(qualified(column, alias));
        sql.is_one_of(values, scope.table.column(column));
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
        // A key of too few values matches nothing, as a comparison with NULL does.
        let value = key.0.get(n).map_or(Cow::Owned(Value::Null), Cow::Borrowed);
        sql.bind_as(value, scope.table.column(column));
    }
    sql.push(if several { ")" } else { "" });
}

fn push_keys<'a>(sql: &mut Sql<'a>, scope: &'a Scope, keys: &'a [Key], alias: Option<&str>) {
    and(sql);
    let columns = quote_columns(scope.key(), alias);
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
        Dialect::Postgres if columns.len() == 1 => {
            for (n, column) in types() {
                sql.push(" = ANY(");
                sql.array(array(n, column));
                if let Some(column) = column {
                    sql.push("::").push(&column.sql_type).push("[]");
                }
                sql.push(")");
            }
        }
        Dialect::Postgres => {
            let casts: Vec<String> = types()
                .map(|(n, column)| match column {
                    Some(column) => format!("k{n}::{}", column.sql_type),
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
    }
}

/// What stands where a key has too few values.
const NULL: &Value = &Value::Null;
