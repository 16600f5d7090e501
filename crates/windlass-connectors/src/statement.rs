//! The statements for a key set: select, count, the step's own, and the mark.

use crate::guard;
use crate::key_check::copy_column;
use crate::predicate::{Bounds, push_chunk, push_key_set, relation};
use crate::sql::{Dialect, Sql, inner};
use crate::{Params, Result, Scope};
use std::borrow::Cow;
use windlass_core::{
    Column, ColumnType, Counts, Fragment, KeyRange, KeySet, Keys, StepKind, Template, Value,
};

/// Selects all columns of a key set's records, in key order, then the guard and [`copy_column`] where there
/// are such.
pub(crate) fn select<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    key_set: &'a KeySet,
    bounds: Bounds,
    limit: u64,
) -> Sql<'a> {
    // Renamed, since ORDER BY would otherwise sort by the text of a cast column.
    let named = |(n, column): (usize, &Column)| {
        format!("{} AS windlass_{n}", dialect.render(column, &dialect.quote(&column.name)))
    };
    let mut columns: Vec<String> = scope.table.columns.iter().enumerate().map(named).collect();
    let guard = guard::expression(dialect, scope, None);
    columns.extend(guard.map(|guard| format!("{guard} AS {}", guard::NAME)));
    columns.extend(copy_column(dialect, scope));
    let text = format!("SELECT {} FROM {} WHERE ", columns.join(", "), relation(dialect, scope));
    let mut sql = Sql::new(dialect, text);
    push_key_set(&mut sql, scope, key_set, None, bounds);
    let order = dialect.quote_columns(scope.key(), None).join(", ");
    sql.push(format!(" ORDER BY {order} LIMIT {limit}"));
    sql
}

/// Selects these columns of a key set's records, in key order.
pub(crate) fn extract<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    key_set: &'a KeySet,
    columns: &[Column],
) -> Sql<'a> {
    let render = |column: &Column| dialect.render(column, &dialect.quote(&column.name));
    let columns: Vec<String> = columns.iter().map(render).collect();
    extract_into(Sql::new(dialect, ""), scope, key_set, &columns)
}

/// Appends a SELECT of these expressions of a key set's records: in key order, or those of whole blocks in the
/// order in which they are stored.
pub(crate) fn extract_into<'a>(
    mut sql: Sql<'a>,
    scope: &'a Scope,
    key_set: &'a KeySet,
    expressions: &[String],
) -> Sql<'a> {
    let dialect = sql.dialect;
    let list = expressions.join(", ");
    sql.push(format!("SELECT {list} FROM {} WHERE ", relation(dialect, scope)));
    push_key_set(&mut sql, scope, key_set, None, Bounds::All);
    let is_stored_order = key_set.blocks.is_some() && key_set.keys == Keys::Range(KeyRange::ALL);
    if !is_stored_order {
        sql.push(format!(" ORDER BY {}", dialect.quote_columns(scope.key(), None).join(", ")));
    }
    sql
}

/// Counts a key set's records.
pub(crate) fn count<'a>(dialect: Dialect, scope: &'a Scope, key_set: &'a KeySet) -> Sql<'a> {
    let mut sql =
        Sql::new(dialect, format!("SELECT count(*) FROM {} WHERE ", relation(dialect, scope)));
    push_key_set(&mut sql, scope, key_set, None, Bounds::All);
    sql
}

/// Counts the records of each key set in one statement. The rows carry the index of their key set.
pub(crate) fn count_each<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    key_sets: &'a [KeySet],
) -> Sql<'a> {
    let relation = relation(dialect, scope);
    let mut sql = Sql::new(dialect, "");
    for (index, key_set) in key_sets.iter().enumerate() {
        let more = if index > 0 { " UNION ALL " } else { "" };
        sql.push(format!("{more}SELECT {index}, count(*) FROM {relation} WHERE "));
        push_key_set(&mut sql, scope, key_set, None, Bounds::All);
    }
    sql
}

/// The most key sets that one statement counts, and the most values that it binds.
const MAX_COUNTED_KEY_SETS: usize = 50;
const MAX_BOUND_VALUES: usize = 10_000;

/// Divides key sets into batches for [`count_each`], each with the index of its first key set.
pub(crate) fn count_batches<'a>(
    scope: &Scope,
    key_sets: &'a [KeySet],
) -> impl Iterator<Item = (usize, &'a [KeySet])> {
    let filters = scope.filters.iter().map(|(_, _, values)| values.len());
    let claims = scope.claims.iter().map(|(_, values)| values.len());
    let bound = filters.chain(claims).sum::<usize>() + 2 * scope.key().len();
    // A list of keys binds each of its keys where the database has no arrays.
    let size = match key_sets.iter().any(|key_set| matches!(key_set.keys, Keys::List(_))) {
        true => 1,
        false => (MAX_BOUND_VALUES / bound.max(1)).clamp(1, MAX_COUNTED_KEY_SETS),
    };
    (0..).step_by(size).zip(key_sets.chunks(size))
}

/// Whether the step's statement affects every record of its key set, so that they need not be counted.
pub(crate) fn touches_all(scope: &Scope, key_set: &KeySet) -> Result<bool> {
    let job_type = &scope.job_type;
    let exact = match (&job_type.step.kind, job_type.statement()?, &job_type.source.table) {
        (StepKind::Refresh, ..) => true,
        (_, Some(template), Some(table)) => template.updates_exactly(table),
        _ => false,
    };
    // Listed keys without a record are not affected, but count as read.
    Ok(exact && scope.table.plain && matches!(key_set.keys, Keys::Range(_)))
}

/// The `map` statement of a job on a key set. Without a key set it returns no rows, only columns.
pub(crate) fn map<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    key_set: Option<&'a KeySet>,
) -> Result<Sql<'a>> {
    let template = scope.job_type.statement()?;
    let fragments = template.as_ref().map_or(&[][..], Template::fragments);
    Ok(map_of(dialect, scope, fragments, key_set))
}

/// The `map` statement of these fragments.
pub(crate) fn map_of<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    fragments: &[Fragment],
    key_set: Option<&'a KeySet>,
) -> Sql<'a> {
    let mut sql = Sql::new(dialect, "");
    for fragment in fragments {
        match (fragment, key_set) {
            (Fragment::Text(text), _) => {
                sql.push(text);
            }
            (Fragment::Source { named }, _) => {
                sql.push(source(dialect, scope, *named));
            }
            (Fragment::Chunk(alias), Some(key_set)) => {
                sql.push("(");
                push_key_set(&mut sql, scope, key_set, alias.as_deref(), Bounds::All);
                sql.push(")");
            }
            (Fragment::Chunk(_), None) => {
                sql.push("(1 = 0)");
            }
            (Fragment::Param(name), _) => {
                sql.bind(Cow::Owned(param(&scope.params, name)));
            }
        }
    }
    sql.text.truncate(inner(&sql.text).len() + sql.text.len() - sql.text.trim_start().len());
    sql
}

/// A `reduce` statement with its params.
pub(crate) fn reduce<'a>(dialect: Dialect, template: &Template, params: &Params) -> Sql<'a> {
    let mut sql = Sql::new(dialect, "");
    for fragment in template.fragments() {
        match fragment {
            Fragment::Text(text) => {
                sql.push(text);
            }
            Fragment::Param(name) => {
                sql.bind(Cow::Owned(param(params, name)));
            }
            // The definition refuses these.
            Fragment::Chunk(_) | Fragment::Source { .. } => {}
        }
    }
    sql.text.truncate(inner(&sql.text).len() + sql.text.len() - sql.text.trim_start().len());
    sql
}

/// The replacement of `{source}`.
fn source(dialect: Dialect, scope: &Scope, named: bool) -> String {
    let relation = relation(dialect, scope);
    match relation.strip_suffix(" AS source") {
        // The statement names the query itself.
        Some(query) if named => query.to_owned(),
        _ => relation,
    }
}

/// What a statement adds to the counts that its commit began with. Affected rows count as processed,
/// the others as skipped. A statement on another table may affect any number of rows per item, so
/// `processed` is limited to `read`.
pub(crate) fn outcome(scope: &Scope, expected: Counts, read: i64, affected: i64) -> Result<Counts> {
    // Rows may have been inserted between the count and the statement.
    let read = if scope.job_type.changes_source()? { read.max(affected) } else { read };
    let processed = affected.min(read);
    Ok(Counts {
        read: read - expected.read,
        processed: processed - expected.processed,
        skipped: read - processed - expected.skipped,
        ..Counts::default()
    })
}

/// The statement of a `sql` or `refresh` step on a key set.
pub(crate) fn step<'a>(dialect: Dialect, scope: &'a Scope, key_set: &'a KeySet) -> Result<Sql<'a>> {
    let job_type = &scope.job_type;
    let template = job_type.statement()?;
    let mut sql = Sql::new(dialect, "");
    match (&job_type.step.kind, template) {
        (StepKind::Sql(_), Some(template)) => {
            for fragment in template.fragments() {
                match fragment {
                    Fragment::Text(text) => sql.push(text),
                    Fragment::Chunk(alias) => {
                        push_chunk(&mut sql, scope, key_set, alias.as_deref());
                        &mut sql
                    }
                    // Statements that change rows name their table themselves.
                    Fragment::Source { named } => sql.push(source(dialect, scope, *named)),
                    // Each use is bound separately, since each may need another type.
                    Fragment::Param(name) => sql.bind(Cow::Owned(param(&scope.params, name))),
                };
            }
        }
        (StepKind::Refresh, _) => {
            let unchanged = scope.table.rewritable.as_deref().map(|column| dialect.quote(column));
            let unchanged = unchanged.map(|column| format!("{column} = {column}"));
            let missing = || job_type.problem("step.version", "is missing");
            let set =
                guard::raise_version(dialect, scope, None).or(unchanged).ok_or_else(missing)?;
            sql.push(format!("UPDATE {} SET {set} WHERE ", relation(dialect, scope)));
            push_chunk(&mut sql, scope, key_set, None);
        }
        _ => {
            return Err(job_type
                .problem("step", "has no statement: its items are processed one by one")
                .into());
        }
    }
    Ok(sql)
}

/// Sets the mark of a key set's rows where it is not set. `None` when the job type has no mark.
pub(crate) fn mark<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    key_set: &'a KeySet,
) -> Result<Option<Sql<'a>>> {
    let Some(column) = mark_column(scope)? else { return Ok(None) };
    let value = match (column.kind, dialect) {
        (ColumnType::Bool, Dialect::Postgres) => "true",
        (ColumnType::Bool | ColumnType::Int | ColumnType::Float | ColumnType::Numeric, _) => "1",
        _ => "'1'",
    };
    Ok(Some(set_mark(dialect, scope, key_set, column, value, Bounds::All)))
}

/// Counts the rows that [`mark`] marks, and the different values of each column of their key. After it, all
/// of them have the mark.
pub(crate) fn count_marked<'a>(dialect: Dialect, scope: &'a Scope, key_set: &'a KeySet) -> Sql<'a> {
    let values = dialect.quote_columns(scope.key(), None);
    let values: String = values.iter().map(|key| format!(", count(DISTINCT {key})")).collect();
    let relation = relation(dialect, scope);
    let mut sql = Sql::new(dialect, format!("SELECT count(*){values} FROM {relation} WHERE "));
    push_key_set(&mut sql, scope, key_set, None, Bounds::All);
    sql
}

/// Clears the mark of a key set's rows, including rows that no longer match `source.where`. `None` when
/// the job type has no mark.
pub(crate) fn unmark<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    key_set: &'a KeySet,
) -> Result<Option<Sql<'a>>> {
    let Some(column) = mark_column(scope)? else { return Ok(None) };
    let value = match (column.kind, dialect) {
        _ if column.nullable => "NULL",
        (ColumnType::Bool, Dialect::Postgres) => "false",
        (ColumnType::Bool | ColumnType::Int | ColumnType::Float | ColumnType::Numeric, _) => "0",
        _ => "''",
    };
    Ok(Some(set_mark(dialect, scope, key_set, column, value, Bounds::WithoutWhere)))
}

fn set_mark<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    key_set: &'a KeySet,
    column: &Column,
    value: &str,
    bounds: Bounds,
) -> Sql<'a> {
    let (table, name) = (relation(dialect, scope), dialect.quote(&column.name));
    let mut sql = Sql::new(dialect, format!("UPDATE {table} SET {name} = {value} WHERE "));
    push_key_set(&mut sql, scope, key_set, None, bounds);
    sql.push(match dialect {
        Dialect::Mysql => format!(" AND NOT ({name} <=> {value})"),
        Dialect::Postgres | Dialect::Sqlite => format!(" AND {name} IS DISTINCT FROM {value}"),
    });
    sql
}

fn mark_column(scope: &Scope) -> Result<Option<&Column>> {
    let Some(name) = &scope.job_type.step.mark else { return Ok(None) };
    match scope.table.column(name) {
        Some(column) => Ok(Some(column)),
        None => {
            Err(scope.job_type.problem("step.mark", format!("there is no column `{name}`")).into())
        }
    }
}

fn param(params: &Params, name: &str) -> Value {
    params.get(name).cloned().map_or(Value::Null, Value::from_json)
}

/// The positions of the key columns among the table's columns.
pub(crate) struct ColumnPositions {
    key: Vec<Option<usize>>,
}

impl ColumnPositions {
    pub(crate) fn of(scope: &Scope) -> ColumnPositions {
        let position =
            |name: &String| scope.table.columns.iter().position(|column| column.name == *name);
        ColumnPositions { key: scope.key().iter().map(position).collect() }
    }

    /// The positions of the key columns.
    pub(crate) fn key_positions(&self) -> impl Iterator<Item = usize> {
        self.key.iter().flatten().copied()
    }

    /// The key of a record with these values.
    pub(crate) fn key(&self, values: &[Value]) -> windlass_core::Key {
        let value = |position: &Option<usize>| position.and_then(|n| values.get(n)).cloned();
        windlass_core::Key(
            self.key.iter().map(|position| value(position).unwrap_or(Value::Null)).collect(),
        )
    }
}

/// The names of the table's columns, shared by every record of a batch.
pub(crate) fn columns_of(scope: &Scope) -> windlass_core::Columns {
    scope.table.columns.iter().map(|column| column.name.clone()).collect()
}

/// `INSERT INTO table (columns)`
pub(crate) fn insert_into(dialect: Dialect, table: &str, columns: &[&str]) -> String {
    let columns: Vec<String> = columns.iter().map(|column| dialect.quote(column)).collect();
    format!("INSERT INTO {} ({})", dialect.quote_table(table), columns.join(", "))
}
