//! Has the databases prepare every statement of a job type: `source.where`, `sql`, `map`, `reduce`, `load`.

use crate::Result;
use crate::engine::Engine;
use crate::merge::merge::untyped;
use crate::submit::{Checked, describe_problem};
use futures::{StreamExt, stream};
use windlass_connectors::{ConnectorError, Params, Reduction, RowCount, Scope};
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
        if !definition.source.items {
            source.prepare_statements(&scope).await?;
        }
        let columns = match definition.step.kind {
            StepKind::Map(_) => Some(source.map_columns(&scope).await?),
            _ => None,
        };
        let Some(columns) = columns else {
            if let Some(load) = &definition.load {
                self.check_load(definition, load, &[]).await?;
            }
            let emitted = |field: &str| {
                format!("{field} was not prepared: its columns are known once the step emits rows")
            };
            let reduce = definition.reduce.as_ref().map(|_| emitted("reduce"));
            let load = definition.load.as_ref().map(|_| emitted("load"));
            return Ok(reduce.into_iter().chain(load).collect());
        };
        let columns = match definition.reduction()? {
            Some(_) => self.reduced_columns(definition, columns).await?,
            None => columns,
        };
        if let Some(load) = &definition.load {
            self.check_load(definition, load, &columns).await?;
        }
        Ok(Vec::new())
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
        let table = self.connection(&load.connection)?.describe(&source).await?;
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
                    "`{}` of the result is of type {}, but the column of `{}` is of type {}",
                    column.name, column.sql_type, load.table, target.sql_type
                );
                return Err(definition.problem("load.table", detail).into());
            }
        }
        Ok(())
    }
}

/// Whether a column can hold values of this kind. A text may hold any value, and any column may hold a text
/// that is written like its values.
fn can_hold(column: ColumnType, value: ColumnType) -> bool {
    use ColumnType as T;
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
