//! The statements of a job type in every form in which they will run. `windlass check` has the database
//! prepare each of them, so that it finds typos, missing tables, ambiguous columns and wrong types.

use crate::key_check::key_checks;
use crate::key_walk::{self, Step};
use crate::predicate::Bounds;
use crate::sql::{Dialect, Sql};
use crate::statement::columns_of;
use crate::value_lookup::ValueLookup;
use crate::{ConnectorError, Result, Scope, WriteItem, statement};
use std::collections::HashSet;
use std::sync::Arc;
use windlass_core::{
    Change, Column, ColumnType, Fragment, Key, KeyRange, KeySet, Keys, Record, StepKind, Value,
};

/// The restrictions and the key sets that change the text of a statement.
pub(crate) struct Forms {
    dialect: Dialect,
    scopes: Vec<Scope>,
    key_sets: Vec<KeySet>,
}

impl Forms {
    pub(crate) fn of(dialect: Dialect, scope: &Scope) -> Forms {
        let sample = |name: &String, n: usize| sample(dialect, scope.table.column(name), n);
        let restricted = |values: usize| {
            let values = |column: &String| (0..values).map(|n| sample(column, n)).collect();
            let source = &scope.job_type.source;
            let filters = source.filters.iter();
            let claims = source.claims.values();
            Scope {
                filters: filters
                    .map(|(name, column)| (name.clone(), column.clone(), values(column)))
                    .collect(),
                claims: claims.map(|column| (column.clone(), values(column))).collect(),
                ..scope.clone()
            }
        };
        let key = |n: usize| Key(scope.key().iter().map(|column| sample(column, n)).collect());
        let range = |after: Option<Key>, upto: Option<Key>| Keys::Range(KeyRange { after, upto });
        let keys = [
            range(None, Some(key(1))),
            range(Some(key(0)), Some(key(1))),
            range(Some(key(0)), None),
            range(None, None),
            Keys::List(vec![key(0)]),
            Keys::List(vec![key(0), key(1)]),
        ];
        Forms {
            dialect,
            scopes: vec![scope.clone(), restricted(1), restricted(2)],
            key_sets: keys.into_iter().map(|keys| KeySet::new(None, keys)).collect(),
        }
    }

    /// Each statement once, with the field of the definition that it comes from.
    pub(crate) fn statements(&self) -> Result<Vec<(&'static str, Sql<'_>)>> {
        let mut statements = Vec::new();
        for scope in &self.scopes {
            for key_set in &self.key_sets {
                self.add(scope, key_set, &mut statements)?;
            }
        }
        let mut seen = HashSet::new();
        statements.retain(|(_, sql)| seen.insert(sql.text.clone()));
        // The source first: an error in `source.where` is an error of every statement.
        statements.sort_by_key(|(field, _)| !field.starts_with("source"));
        Ok(statements)
    }

    /// The job type without restrictions, and with filters and claims.
    pub(crate) fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// The ranges of keys.
    pub(crate) fn ranges(&self) -> Vec<KeyRange> {
        let range = |key_set: &KeySet| match &key_set.keys {
            Keys::Range(range) => Some(range.clone()),
            Keys::List(_) => None,
        };
        self.key_sets.iter().filter_map(range).collect()
    }

    /// The look-ups of each filter, by the name of the filter.
    pub(crate) fn lookups(&self) -> Vec<(String, ValueLookup<'_>)> {
        let several = self.scopes.last().into_iter();
        several
            .flat_map(|scope| scope.filters.iter().map(move |filter| (scope, filter)))
            .map(|(scope, (name, _, values))| {
                let lookup = ValueLookup::new(self.dialect, scope, name, values);
                (format!("source.filters.{name}"), lookup)
            })
            .collect()
    }

    fn add<'a>(
        &self,
        scope: &'a Scope,
        key_set: &'a KeySet,
        statements: &mut Vec<(&'static str, Sql<'a>)>,
    ) -> Result<()> {
        let dialect = self.dialect;
        let field = source_field(scope);
        statements.push((field, statement::select(dialect, scope, key_set, Bounds::All, 1)));
        // Planning counts, numbers and walks along the keys.
        statements.push((field, statement::count(dialect, scope, key_set)));
        for direction in ["", " DESC"] {
            let step = Step { direction, limit: 1, offset: 1 };
            let walk = key_walk::select(dialect, scope, key_set, Bounds::All, step);
            statements.push((field, walk));
        }
        if !scope.walks_by_key(None) {
            statements.push((field, key_walk::number(dialect, scope, key_set, 1, 1)));
        }
        let checks = key_checks(dialect, scope, None);
        statements.extend(checks.into_iter().map(|(sql, _)| ("source.key", sql)));
        let step = &scope.job_type.step;
        match &step.kind {
            StepKind::Map(_) => {
                statements.push(("step.map", statement::map(dialect, scope, Some(key_set))?));
            }
            StepKind::Sql(_) | StepKind::Refresh => {
                statements.push((step.kind.field(), statement::step(dialect, scope, key_set)?));
            }
            _ => {}
        }
        let marks = [
            statement::mark(dialect, scope, key_set)?,
            statement::unmark(dialect, scope, key_set)?,
        ];
        statements.extend(marks.into_iter().flatten().map(|sql| ("step.mark", sql)));
        Ok(())
    }
}

/// The field that a statement of Windlass's own about the source comes from.
pub(crate) fn source_field(scope: &Scope) -> &'static str {
    let source = &scope.job_type.source;
    match (&source.condition, &source.query) {
        (Some(_), _) => "source.where",
        (None, Some(_)) => "source.query",
        (None, None) => "source.table",
    }
}

/// An update of these columns, for a statement that is not run.
pub(crate) fn sample_update(dialect: Dialect, scope: &Scope, columns: &[String]) -> WriteItem {
    let sample = |name: &String| sample(dialect, scope.table.column(name), 0);
    let version = scope.job_type.step.version.as_ref();
    WriteItem {
        key: Key(scope.key().iter().map(sample).collect()),
        guard: version.map_or(Value::Null, sample),
        change: Arc::new(Change {
            update: columns.iter().map(|name| (name.clone(), Value::Null)).collect(),
            ..Change::default()
        }),
        record: Record::new(columns_of(scope), Vec::new()),
        attempts: 0,
        conflicts: 0,
    }
}

/// A value of a column, for a statement that is not run. PostgreSQL evaluates it while planning, so a text
/// that is not of the column's type would be refused.
fn sample(dialect: Dialect, column: Option<&Column>, n: usize) -> Value {
    match column.map_or(ColumnType::Other, |column| column.kind) {
        ColumnType::Int => Value::Int(n as i64),
        ColumnType::Float => Value::Float(n as f64),
        ColumnType::Bool => Value::Bool(n > 0),
        ColumnType::Bytes => Value::Bytes(vec![n as u8]),
        ColumnType::Text if dialect != Dialect::Postgres => Value::Text(n.to_string()),
        _ => Value::Null,
    }
}

/// The problem of a statement that the database refused. An unavailable database is no problem of the
/// statement.
pub(crate) fn refused(scope: &Scope, field: &str, error: ConnectorError) -> ConnectorError {
    let ConnectorError::Database(database) = &error else { return error };
    if database.is_unavailable() {
        return error;
    }
    let is_ambiguous = matches!(database.code.as_deref(), Some("42702" | "1052"))
        || database.message.contains("ambiguous column name");
    let hint = match is_ambiguous && field.starts_with("step.") {
        true => ambiguous(scope, &database.message),
        false => String::new(),
    };
    scope.job_type.problem(field, format!("the database refuses it: {database}{hint}")).into()
}

/// How to resolve an ambiguous column: `{chunk}` has the columns of the key, the filters and the claims, and
/// those of `source.where`.
fn ambiguous(scope: &Scope, message: &str) -> String {
    let source = &scope.job_type.source;
    let own = source.key.iter().chain(source.filters.values()).chain(source.claims.values());
    let is_own = own.into_iter().any(|column| {
        message.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == column)
    });
    let condition = source.condition.as_deref().unwrap_or_default();
    let table = source.table.as_deref().unwrap_or("the source");
    let template = scope.job_type.statement().ok().flatten();
    let fragments = template.iter().flat_map(|template| template.fragments());
    let mut chunks = fragments.filter_map(|fragment| match fragment {
        Fragment::Chunk(alias) => Some(alias.is_some()),
        _ => None,
    });
    match (chunks.all(|has_alias| has_alias), is_own || !condition.is_empty()) {
        (true, _) if condition.contains('(') => format!(
            "; {{chunk:alias}} does not qualify columns in a subquery of source.where: write \
             `{table}.column` there, which becomes `alias.column`; qualify other columns with their table"
        ),
        (false, true) => format!(
            "; {{chunk}} has unqualified columns of `{table}`, and another table of the statement has \
             a column of the same name: give `{table}` an alias and write {{chunk:alias}}, for \
             example `FROM {table} AS v … WHERE {{chunk:v}}`, which qualifies them"
        ),
        _ => "; qualify the column with its table".to_owned(),
    }
}
