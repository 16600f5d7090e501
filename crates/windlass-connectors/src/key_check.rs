//! Whether every record has a key, and no two the same. What the schema promises costs nothing; of a
//! query, or a key that the schema lets be null, the rows themselves are asked: all of them when a
//! job is planned, and those of each batch again when it is read.

use crate::predicate::{Bounds, is_query, push_extent, relation};
use crate::sql::{Dialect, Sql};
use crate::{Result, Scope};
use windlass_core::problem::{Code, Problem};
use windlass_core::{Key, KeyRange, KeySet, Keys};
use windlass_drivers::{Class, Error};

/// What is to be asked of the rows of a source: a statement that gives one offending key or none,
/// and the problem that such a key is.
pub(crate) type Question<'a> = (Sql<'a>, fn(&Scope, &Key) -> Problem);

/// What the schema leaves open, for the first rows or for all. The statements read what the
/// job may reach and nothing else.
pub(crate) fn questions(dialect: Dialect, scope: &Scope, most: Option<u64>) -> Vec<Question<'_>> {
    let mut questions: Vec<Question<'_>> = Vec::new();
    if scope.key_may_be_null() {
        questions.push((null_key(dialect, scope, most), null_problem));
    }
    if scope.key_may_repeat() && scope.needs_unique_key() {
        questions.push((repeated_key(dialect, scope, most), repeated_problem));
    }
    questions
}

/// A key with a null.
fn null_key(dialect: Dialect, scope: &Scope, most: Option<u64>) -> Sql<'_> {
    let mut sql = keys(dialect, scope, most);
    let is_null: Vec<String> = names(scope).map(|name| format!("{name} IS NULL")).collect();
    sql.push(format!(" WHERE {} LIMIT 1", is_null.join(" OR ")));
    sql
}

/// A key that several records have, by the database's own equality.
fn repeated_key(dialect: Dialect, scope: &Scope, most: Option<u64>) -> Sql<'_> {
    let mut sql = keys(dialect, scope, most);
    let names: Vec<String> = names(scope).collect();
    sql.push(format!(" GROUP BY {} HAVING count(*) > 1 LIMIT 1", names.join(", ")));
    sql
}

/// The keys of what a job may reach, under names of our own.
fn keys(dialect: Dialect, scope: &Scope, most: Option<u64>) -> Sql<'_> {
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
    push_extent(&mut sql, scope, &EVERYTHING, None, Bounds::All);
    if let Some(most) = most {
        sql.push(format!(" LIMIT {most}"));
    }
    sql.push(") AS windlass_keys");
    sql
}

static EVERYTHING: KeySet = KeySet { within: None, keys: Keys::Range(KeyRange::ALL) };

fn names(scope: &Scope) -> impl Iterator<Item = String> {
    (0..scope.key().len()).map(|n| format!("windlass_{n}"))
}

/// The number of a row among those of its key, as a column of a SELECT, where nothing else says
/// that there is only one. Two keys may be equal though their texts are not, so the database counts.
pub(crate) fn copy_column(dialect: Dialect, scope: &Scope) -> Option<String> {
    let counted = scope.key_may_repeat() && scope.needs_unique_key();
    let columns = dialect.quote_columns(scope.key(), None).join(", ");
    counted.then(|| {
        format!("row_number() OVER (PARTITION BY {columns} ORDER BY {columns}) AS windlass_copy")
    })
}

/// Refuses a record that has no key, or the key of the record before it: its number among those of
/// its key says so, or the key itself. That fails its chunk, as an error of the data does; the other
/// chunks continue.
pub(crate) fn check_read(scope: &Scope, before: Option<&Key>, key: &Key, copy: i64) -> Result<()> {
    let problem = if key.has_null() {
        null_problem(scope, key)
    } else if scope.needs_unique_key() && (copy > 1 || before == Some(key)) {
        repeated_problem(scope, key)
    } else {
        return Ok(());
    };
    Err(Error::new(Class::Data, problem.to_string()).into())
}

/// Refuses a key with a null: no range reaches its record.
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
        "{} is NULL in a row of {}, and no chunk can reach a row without a key; leave such rows out \
         with source.where, or name a key that every row has",
        nulls.join(", "),
        named(scope)
    );
    Problem::field(Code::Source, "source.key", detail)
}

fn repeated_problem(scope: &Scope, key: &Key) -> Problem {
    let detail = format!(
        "({}) = ({key}) stands in more than one row of {}, and a step that works on single records \
         needs a unique key; name more columns in source.key, or make the source give one row for \
         each key",
        scope.key().join(", "),
        named(scope)
    );
    Problem::field(Code::Source, "source.key", detail)
}

fn named(scope: &Scope) -> String {
    if is_query(scope) { "the query".to_owned() } else { format!("`{}`", scope.table.name) }
}
