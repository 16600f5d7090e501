//! Checks that every record has a unique key. What the schema guarantees costs nothing. Otherwise, for a
//! query or for a nullable key, the rows are checked: all of them when a job is planned, and those of a
//! batch again when it is read.

use crate::predicate::{Bounds, is_query, push_key_set, relation};
use crate::sql::{Dialect, Sql};
use crate::{Result, Scope};
use windlass_core::problem::{Code, Problem};
use windlass_core::{Key, KeyRange, KeySet, Keys};
use windlass_drivers::{Error, ErrorClass};

/// A check of the rows of a source: a statement that returns one offending key or nothing, and the
/// problem to report for that key.
pub(crate) type KeyCheck<'a> = (Sql<'a>, fn(&Scope, &Key) -> Problem);

/// The checks that the schema leaves to be done, on the first `max_rows` or on all rows. They read only
/// records of the job.
pub(crate) fn key_checks(
    dialect: Dialect,
    scope: &Scope,
    max_rows: Option<u64>,
) -> Vec<KeyCheck<'_>> {
    let mut checks: Vec<KeyCheck<'_>> = Vec::new();
    if scope.key_may_be_null() {
        checks.push((null_key(dialect, scope, max_rows), null_problem));
    }
    if scope.key_may_repeat() && scope.needs_unique_key() {
        checks.push((repeated_key(dialect, scope, max_rows), repeated_problem));
    }
    checks
}

/// Selects a key with a null.
fn null_key(dialect: Dialect, scope: &Scope, max_rows: Option<u64>) -> Sql<'_> {
    let mut sql = keys(dialect, scope, max_rows);
    let is_null: Vec<String> = names(scope).map(|name| format!("{name} IS NULL")).collect();
    sql.push(format!(" WHERE {} LIMIT 1", is_null.join(" OR ")));
    sql
}

/// Selects a key that several records have, by the database's own equality.
fn repeated_key(dialect: Dialect, scope: &Scope, max_rows: Option<u64>) -> Sql<'_> {
    let mut sql = keys(dialect, scope, max_rows);
    let names: Vec<String> = names(scope).collect();
    sql.push(format!(" GROUP BY {} HAVING count(*) > 1 LIMIT 1", names.join(", ")));
    sql
}

/// The keys of the job's records, under names that no column of the user's has.
fn keys(dialect: Dialect, scope: &Scope, max_rows: Option<u64>) -> Sql<'_> {
    let columns = dialect.quote_columns(scope.key(), None).into_iter().zip(names(scope));
    let columns: Vec<String> =
        columns.map(|(column, name)| format!("{column} AS {name}")).collect();
    let rendered: Vec<String> = scope
        .key()
        .iter()
        .zip(names(scope))
        .map(|(column, name)| match scope.table.column(column) {
            Some(column) => dialect.render(column, &name),
            None => name,
        })
        .collect();
    let text = format!(
        "SELECT {} FROM (SELECT {} FROM {} WHERE ",
        rendered.join(", "),
        columns.join(", "),
        relation(dialect, scope)
    );
    let mut sql = Sql::new(dialect, text);
    push_key_set(&mut sql, scope, &EVERYTHING, None, Bounds::All);
    if let Some(max_rows) = max_rows {
        sql.push(format!(" LIMIT {max_rows}"));
    }
    sql.push(") AS windlass_keys");
    sql
}

static EVERYTHING: KeySet = KeySet::new(None, Keys::Range(KeyRange::ALL));

fn names(scope: &Scope) -> impl Iterator<Item = String> {
    (0..scope.key().len()).map(|n| format!("windlass_{n}"))
}

/// A column of a SELECT that numbers the rows of each key, where the schema does not guarantee that
/// there is only one. Keys with different texts may be equal, so the database has to count.
pub(crate) fn copy_column(dialect: Dialect, scope: &Scope) -> Option<String> {
    let counted = scope.key_may_repeat() && scope.needs_unique_key();
    let columns = dialect.quote_columns(scope.key(), None).join(", ");
    counted.then(|| {
        format!("row_number() OVER (PARTITION BY {columns} ORDER BY {columns}) AS windlass_copy")
    })
}

/// Refuses a record that has no key, or the same key as an earlier record: by its number among the rows
/// of its key, or by the key of the previous record. The error is of the class `Data`: it fails the
/// chunk, and the other chunks continue.
pub(crate) fn check_read(scope: &Scope, before: Option<&Key>, key: &Key, copy: i64) -> Result<()> {
    let problem = if key.has_null() {
        null_problem(scope, key)
    } else if scope.needs_unique_key() && (copy > 1 || before == Some(key)) {
        repeated_problem(scope, key)
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorClass::Data, problem.to_string()).into())
}

/// Refuses a key with a null, since no range contains it.
pub(crate) fn check_null(scope: &Scope, key: &Key) -> Result<()> {
    if key.has_null() {
        return Err(null_problem(scope, key).into());
    }
    Ok(())
}

fn null_problem(scope: &Scope, key: &Key) -> Problem {
    let nulls = scope.key().iter().zip(&key.0).filter(|(_, value)| value.is_null());
    let nulls: Vec<String> = nulls.map(|(column, _)| format!("`{column}`")).collect();
    let detail = format!(
        "{} is NULL in a row of {}, and no chunk can contain a row without a key; exclude such rows \
         with source.where, or name a key that every row has",
        nulls.join(", "),
        named(scope)
    );
    Problem::field(Code::Source, "source.key", detail)
}

fn repeated_problem(scope: &Scope, key: &Key) -> Problem {
    let detail = format!(
        "({}) = ({key}) occurs in more than one row of {}, and a step that processes single records \
         needs a unique key; name more columns in source.key, or make the source return one row for \
         each key",
        scope.key().join(", "),
        named(scope)
    );
    Problem::field(Code::Source, "source.key", detail)
}

fn named(scope: &Scope) -> String {
    if is_query(scope) { "the query".to_owned() } else { format!("`{}`", scope.table.name) }
}
