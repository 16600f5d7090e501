//! The condition for the records of a key set: keys AND `source.where` AND filters AND claims.

mod qualify;

use crate::Scope;
use crate::array::Array;
use crate::mysql::Cells;
use crate::sql::{self, Dialect, Sql, cast_type, is_array, row};
use std::borrow::Cow;
use std::ops::Range;
use windlass_core::{BlockRange, Key, KeyRange, KeySet, Keys, Value};

/// Which parts a condition has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// All of them.
    All,
    /// All except `source.where`. For rows that a statement has just changed, which may no longer match
    /// it. No step may change the columns of filters and claims.
    WithoutWhere,
    /// The keys alone.
    Keys,
}

/// The FROM clause: the table, or the query named `source`.
pub(crate) fn relation(dialect: Dialect, scope: &Scope) -> String {
    let source = &scope.job_type.source;
    match (&source.table, &source.query) {
        (Some(table), _) => dialect.quote_table(table),
        (None, query) => query_relation(query.as_deref().unwrap_or_default()),
    }
}

/// A query in a FROM clause. The line break ends a comment at the end of the query.
pub(crate) fn query_relation(query: &str) -> String {
    format!("({}\n) AS source", query.trim().trim_end_matches(';'))
}

/// Whether the source is a query.
pub(crate) fn is_query(scope: &Scope) -> bool {
    scope.job_type.source.table.is_none()
}

/// Adds the condition of a key set on the source.
pub(crate) fn push_key_set<'a>(
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
    if let Some(blocks) = key_set.blocks {
        push_blocks(sql, blocks, alias);
    }
    push_conditions(sql, scope, key_set, alias, bounds);
    if sql.text.len() == begin {
        sql.push("true");
    }
}

/// Adds the condition for the blocks that a record is in. PostgreSQL reads just these blocks, in their order.
fn push_blocks(sql: &mut Sql<'_>, blocks: BlockRange, alias: Option<&str>) {
    let place = sql.dialect.qualified("ctid", alias);
    let bounds = [(">=", Some(blocks.from).filter(|from| *from > 0)), ("<", blocks.before)];
    for (operator, block) in bounds {
        if let Some(block) = block {
            and(sql);
            sql.push(format!("{place} {operator} '({block},0)'::tid"));
        }
    }
}

/// Adds the replacement of `{chunk}`. For a query it is a set of keys, since the statement changes
/// another relation than the query.
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
        push_key_set(sql, scope, key_set, None, Bounds::All);
        sql.push(")");
    } else {
        push_key_set(sql, scope, key_set, alias, Bounds::All);
    }
    sql.push(")");
}

/// Adds `key > after AND key <= upto`, for the bounds that exist.
pub(crate) fn push_range<'a>(
    sql: &mut Sql<'a>,
    scope: &'a Scope,
    range: &'a KeyRange,
    alias: Option<&str>,
) {
    if sql.dialect == Dialect::Postgres
        && scope.key().len() > 1
        && let (Some(after), Some(upto)) = (&range.after, &range.upto)
    {
        return push_between(sql, scope, (after, upto), alias);
    }
    for (operator, bound) in [(" > ", &range.after), (" <= ", &range.upto)] {
        if let Some(key) = bound {
            push_comparison(sql, scope, operator, key, alias);
        }
    }
}

/// Adds both bounds of a range of a key with several columns, so that PostgreSQL finds it by an index. `(a, b) > (1, 2) AND
/// (a, b) <= (1, 9)` alone has two disadvantages there:
///
/// - It is estimated as if the comparisons were independent: a quarter of the table in the middle of it. So the whole
///   table would be read for each chunk. The rows of a range of one column are estimated well.
/// - The index is read from the first bound, but to the last record with the same value of `a`.
///
/// So columns with the same value in both bounds are compared with that value, the others as rows, and the first of
/// these also by itself.
fn push_between<'a>(
    sql: &mut Sql<'a>,
    scope: &'a Scope,
    (after, upto): (&'a Key, &'a Key),
    alias: Option<&str>,
) {
    let last = scope.key().len() - 1;
    let bounds = |n: usize| (value_of(after, n), value_of(upto, n));
    // A bound that is NULL is compared as a part of the row.
    let has_values = |n: usize| *bounds(n).0 != Value::Null && *bounds(n).1 != Value::Null;
    let is_equal = |n: &usize| has_values(*n) && bounds(*n).0 == bounds(*n).1;
    let equal = (0..last).take_while(is_equal).count();
    for n in 0..equal {
        push_columns(sql, scope, n..n + 1, " = ", after, alias);
    }
    push_columns(sql, scope, equal..last + 1, " > ", after, alias);
    push_columns(sql, scope, equal..last + 1, " <= ", upto, alias);
    if equal < last && has_values(equal) {
        push_columns(sql, scope, equal..equal + 1, " >= ", after, alias);
        push_columns(sql, scope, equal..equal + 1, " <= ", upto, alias);
    }
}

/// Adds a comparison of the record's key with this key, such as `key <= upto`.
pub(crate) fn push_comparison<'a>(
    sql: &mut Sql<'a>,
    scope: &'a Scope,
    operator: &str,
    key: &'a Key,
    alias: Option<&str>,
) {
    if sql.dialect == Dialect::Mysql && scope.key().len() > 1 {
        and(sql);
        return push_bound(sql, scope, key, operator, alias);
    }
    push_columns(sql, scope, 0..scope.key().len(), operator, key, alias);
}

/// Adds a comparison of these columns of the record's key with those of this key.
fn push_columns<'a>(
    sql: &mut Sql<'a>,
    scope: &'a Scope,
    columns: Range<usize>,
    operator: &str,
    key: &'a Key,
    alias: Option<&str>,
) {
    and(sql);
    let names = &scope.key()[columns.clone()];
    let several = names.len() > 1;
    sql.push(row(&sql.dialect.quote_columns(names, alias))).push(operator);
    sql.push(if several { "(" } else { "" });
    for (place, (n, column)) in columns.zip(names).enumerate() {
        sql.push(if place > 0 { ", " } else { "" });
        sql.bind_as(value_of(key, n), scope.table.column(column));
    }
    sql.push(if several { ")" } else { "" });
}

/// Adds a comparison with a key of several columns, column by column: MySQL does not use an index for
/// `(a, b) > (1, 2)`. The condition on the first column is repeated, so that MySQL takes the index range
/// from it.
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
pub(crate) fn push_conditions<'a>(
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
        let condition = match alias {
            Some(alias) => Cow::Owned(qualify::qualify(sql.dialect, scope, condition, alias)),
            None => Cow::Borrowed(condition.as_str()),
        };
        // The line break ends a comment at the end of the condition.
        sql.push(format!("({condition}\n)"));
    }
    for (name, values, is_claim) in scope.conditions(key_set.within.as_ref()) {
        let (column, qualified) = (scope.table.column(name), sql.dialect.qualified(name, alias));
        and(sql);
        sql.push(&qualified);
        // Compare by the column's collation, which can use an index, and claims also by bytes.
        let exact = (is_claim && sql::has_collation(column)).then(|| values.clone());
        sql.is_one_of(values, column);
        if let Some(values) = exact {
            sql.push(" AND ");
            sql.is_exactly_one_of(&qualified, &values);
        }
    }
}

/// Adds ` AND ` unless it would be the first condition.
pub(crate) fn and(sql: &mut Sql<'_>) {
    if !sql.text.ends_with(['(', ' ']) {
        sql.push(" AND ");
    }
}

/// Missing values of a key are NULL, which equals nothing.
fn value_of(key: &Key, n: usize) -> Cow<'_, Value> {
    key.0.get(n).map_or(Cow::Owned(Value::Null), Cow::Borrowed)
}

fn push_keys<'a>(sql: &mut Sql<'a>, scope: &'a Scope, keys: &'a [Key], alias: Option<&str>) {
    and(sql);
    if sql.dialect == Dialect::Mysql {
        return push_key_list(sql, scope, keys, alias);
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

/// Adds a list of keys for MySQL. It looks up keys in an index if each is in the statement, but reads the
/// whole table if they come from a JSON document. Only lists with too many values to bind use a document.
fn push_key_list<'a>(sql: &mut Sql<'a>, scope: &'a Scope, keys: &'a [Key], alias: Option<&str>) {
    let columns = sql.dialect.quote_columns(scope.key(), alias);
    if keys.is_empty() {
        sql.push("false");
        return;
    }
    if keys.len() * columns.len() > MAX_BOUND_VALUES {
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
    for (index, key) in keys.iter().enumerate() {
        sql.push(match (index, single) {
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

/// MySQL counts the bound values of a statement in 16 bits. Leaves some for the other conditions.
const MAX_BOUND_VALUES: usize = 60_000;

/// Replaces a missing value of a key.
const NULL: &Value = &Value::Null;
