//! Has the databases prepare every statement of a job type: those of planning, `sql`, `refresh`, `map`, `reduce`,
//! `load`, and the updates that other steps may answer.

use crate::engine::Engine;
use crate::merge::copy;
use crate::merge::result_rows::untyped;
use crate::submit::{Checked, describe_problem};
use crate::{EngineError, Result};
use futures::{StreamExt, stream};
use windlass_connectors::{
    Connection, ConnectorError, Params, Reduction, RowCount, Scope, settable_columns,
};
use windlass_core::config::names;
use windlass_core::{Column, ColumnType, JobType, Load, Problem, Source, StepKind};

impl Engine {
    /// Has the databases prepare every statement of a checked job type, in every form in which it will run,
    /// without changing anything. Returns the fields that cannot be prepared before a job has run, with the
    /// reason.
    ///
    /// # Errors
    /// A database refuses a statement.
    pub async fn check_statements(
        &self,
        checked: &Checked,
    ) -> std::result::Result<Vec<String>, Problem> {
        let prepared = self.prepare_statements(checked).await;
        prepared.map_err(|error| describe_problem(&checked.definition, error))
    }

    /// How many records the source of a checked job type has.
    pub async fn row_count(&self, checked: &Checked) -> Result<RowCount> {
        let Checked { definition, table, .. } = checked;
        let scope = Scope::of_all(definition.clone(), table.clone());
        Ok(self.connection(&definition.source.connection)?.row_count(&scope).await?)
    }

    async fn prepare_statements(&self, checked: &Checked) -> Result<Vec<String>> {
        let Checked { definition, table, .. } = checked;
        let source = self.connection(&definition.source.connection)?;
        let scope = Scope::of_all(definition.clone(), table.clone());
        let mut notes = Vec::new();
        if !definition.source.items {
            source.prepare_statements(&scope).await?;
            notes.extend(check_updates(source.as_ref(), &scope).await?);
        }
        let columns = match definition.step.kind {
            StepKind::Map(_) => Some(source.map_columns(&scope).await?),
            _ => None,
        };
        let Some(columns) = columns else {
            if let Some(load) = &definition.load {
                let exported = exported_columns(checked);
                self.check_load(definition, load, &exported).await?;
                if !exported.is_empty() {
                    return Ok(notes);
                }
            }
            let emitted = |field: &str| {
                format!("{field} was not prepared: its columns are known once the step emits rows")
            };
            let reduce = definition.reduce.as_ref().map(|_| emitted("reduce"));
            let load = definition.load.as_ref().map(|_| emitted("load"));
            notes.extend(reduce.into_iter().chain(load));
            return Ok(notes);
        };
        let columns = match definition.reduction()? {
            Some(_) => self.reduced_columns(definition, columns).await?,
            None => columns,
        };
        if let Some(load) = &definition.load {
            self.check_load(definition, load, &columns).await?;
        }
        Ok(notes)
    }

    /// The columns of `reduce`, which is run over an empty table `parts`.
    async fn reduced_columns(
        &self,
        definition: &JobType,
        columns: Vec<Column>,
    ) -> Result<Vec<Column>> {
        let Some(select) = definition.reduction()? else { return Ok(columns) };
        let (place, columns) = match &definition.reduce_in {
            Some(name) => (self.connection(name)?, columns.into_iter().map(untyped).collect()),
            None => (self.connection(&definition.source.connection)?, columns),
        };
        let reduction = Reduction {
            columns: &columns,
            parts: stream::empty().boxed(),
            select: &select,
            params: &Params::new(),
        };
        match place.reduce(reduction).await {
            Ok(result) => Ok(result.columns),
            Err(ConnectorError::Database(error)) if !error.is_unavailable() => {
                let parts = names(columns.iter().map(|column| &column.name));
                let detail =
                    format!("the database refuses it: {error}; the columns of `parts` are {parts}");
                Err(definition.problem("reduce", detail).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that the table of `load` has the columns of the result and of `load.replace`, with types that
    /// can hold the values of the result.
    async fn check_load(&self, definition: &JobType, load: &Load, result: &[Column]) -> Result<()> {
        let source = Source { table: Some(load.table.clone()), ..Source::default() };
        let connection = self.connection(&load.connection)?;
        let table = connection.describe(&source).await?;
        let known = || names(table.columns.iter().map(|column| &column.name));
        let of_result = result.iter().map(|column| ("load.table", &column.name));
        let of_replace = load.replace.iter().map(|name| ("load.replace", name));
        for (field, name) in of_result.chain(of_replace) {
            if table.column(name).is_none() {
                let whose = if field == "load.table" { "of the result" } else { "of load.replace" };
                let detail = format!(
                    "`{}` has no column `{name}` {whose}; its columns are {}",
                    load.table,
                    known()
                );
                return Err(definition.problem(field, detail).into());
            }
        }
        for column in result {
            if let Some(target) = table.column(&column.name)
                && !can_hold(target.kind, column.kind)
            {
                let detail = format!(
                    "`{name}` of the result is of type {}, but the column of `{}` is of type {}; convert it \
                     in the SELECT, as in `CAST({name} AS …)`, or change the column",
                    column.sql_type,
                    load.table,
                    target.sql_type,
                    name = column.name,
                );
                return Err(definition.problem("load.table", detail).into());
            }
        }
        if load.copy.is_some() {
            copy::check_columns(definition, result)?;
        }
        let prepared = connection.prepare_replace(load, result).await;
        prepared.map_err(|error| refused(definition, "load.table", error))
    }
}

/// The columns that an export writes. None for another step, and where the table does not list its columns.
fn exported_columns(checked: &Checked) -> Vec<Column> {
    let StepKind::Export(export) = &checked.definition.step.kind else { return Vec::new() };
    let is_exported =
        |column: &&Column| export.columns.is_empty() || export.columns.contains(&column.name);
    checked.table.columns.iter().filter(is_exported).cloned().collect()
}

/// Has the database prepare the updates that a step with an outcome per item may answer. The columns that it
/// will set are not known, so all are tried together, and one by one if that is refused. Returns a note
/// about the columns that cannot be updated. If none can, that is a problem where the job type names its
/// guard, unless only the privilege is missing: the step may never update.
async fn check_updates(source: &dyn Connection, scope: &Scope) -> Result<Option<String>> {
    let (definition, field) = (&scope.job_type, scope.job_type.step.kind.field());
    let is_per_item = matches!(
        definition.step.kind,
        StepKind::Command(_) | StepKind::Http(_) | StepKind::Handler(_)
    );
    let columns = settable_columns(scope);
    if !is_per_item || columns.is_empty() || definition.guard(&scope.table).is_none() {
        return Ok(None);
    }
    if source.prepare_update(scope, &columns).await.is_ok() {
        return Ok(None);
    }
    let mut first_error = None;
    let mut fixed = Vec::new();
    for column in &columns {
        if let Err(error) = source.prepare_update(scope, std::slice::from_ref(column)).await {
            fixed.push(column);
            first_error.get_or_insert(error);
        }
    }
    let Some(error) = first_error else { return Ok(None) };
    let ConnectorError::Database(database) = &error else { return Err(error.into()) };
    let is_forbidden = matches!(database.code.as_deref(), Some("42501" | "1142" | "1143"));
    let all = fixed.len() == columns.len();
    let has_guard = definition.step.version.is_some() || definition.step.guard.is_some();
    if database.is_unavailable() || all && has_guard && !is_forbidden {
        return Err(refused(definition, field, error));
    }
    let what = if all { "every update".to_owned() } else { format!("updates of {}", names(fixed)) };
    Ok(Some(format!(
        "{field}: the database refuses {what} of a record: {error}; a step that answers no such update needs \
         no change"
    )))
}

/// A statement of this field that the database refused. An unavailable database is no problem of the
/// statement.
fn refused(definition: &JobType, field: &str, error: ConnectorError) -> EngineError {
    match error {
        ConnectorError::Database(error) if !error.is_unavailable() => {
            definition.problem(field, format!("the database refuses it: {error}")).into()
        }
        error => error.into(),
    }
}

/// Whether a column can hold values of this kind. A text may hold any value. A text that is written like a date,
/// an id or bytes may be loaded into such a column, but a number should not depend on how a text is written.
fn can_hold(column: ColumnType, value: ColumnType) -> bool {
    use ColumnType as T;
    let is_number = matches!(column, T::Int | T::Float | T::Numeric);
    if is_number && value == T::Text {
        return false;
    }
    let family = |kind| match kind {
        T::Bool | T::Int | T::Float | T::Numeric => Some(0),
        T::Date | T::Timestamp => Some(1),
        T::Uuid => Some(2),
        T::Bytes => Some(3),
        T::Text | T::Json | T::Other => None,
    };
    match (family(column), family(value)) {
        (Some(column), Some(value)) => column == value,
        _ => true,
    }
}
