//! The rows of a job's result: the parts of its chunks, or what its items emitted, reduced by a database.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::job_context::JobContext;
use crate::merge::map_export;
use futures::stream::{self, StreamExt, TryStreamExt};
use std::collections::HashMap;
use std::sync::Arc;
use windlass_connectors::{Connection, ConnectorError, EmittedCursor, Parts, Reduction, Rows};
use windlass_core::problem::Code;
use windlass_core::{
    Column, ColumnType, ExactValue, JobId, JobStatus, Json, Problem, StepKind, Value,
};
use windlass_store::MERGED;

/// Parts fetched per page.
const PARTS_PER_PAGE: u32 = 10;
/// Emitted rows fetched per page.
const EMITTED_ROWS_PER_PAGE: u32 = 5000;

/// The result of `reduce` over the parts; without `reduce`, all rows of the parts.
pub(super) async fn compute_result(
    engine: &Engine,
    job: &JobContext,
    redrive_chain: &[JobId],
) -> Result<Rows> {
    let (columns, parts) = parts_of(engine, job, redrive_chain).await?;
    let Some(select) = job.definition().reduction()? else {
        let rows = parts.try_concat().await?;
        return Ok(Rows { columns, rows });
    };
    let (place, columns) = reducer(engine, job, columns)?;
    let params = &job.snapshot.request.params;
    let reduction = Reduction { columns: &columns, parts, select: &select, params };
    Ok(place.reduce(reduction).await?)
}

/// Sends the same result in batches, at least one, without keeping it in memory.
#[cfg(feature = "export")]
pub(super) async fn send_result(
    engine: &Engine,
    job: &JobContext,
    redrive_chain: &[JobId],
    batches: tokio::sync::mpsc::Sender<Rows>,
) -> Result<()> {
    let (columns, mut parts) = parts_of(engine, job, redrive_chain).await?;
    let Some(select) = job.definition().reduction()? else {
        let empty = Rows { columns: columns.clone(), rows: Vec::new() };
        let mut wanted = batches.send(empty).await.is_ok();
        while wanted && let Some(rows) = parts.try_next().await? {
            wanted = batches.send(Rows { columns: columns.clone(), rows }).await.is_ok();
        }
        return Ok(());
    };
    let (place, columns) = reducer(engine, job, columns)?;
    let params = &job.snapshot.request.params;
    let reduction = Reduction { columns: &columns, parts, select: &select, params };
    Ok(place.reduce_into(reduction, batches).await?)
}

/// The columns and the rows of all parts.
async fn parts_of<'a>(
    engine: &'a Engine,
    job: &'a JobContext,
    redrive_chain: &'a [JobId],
) -> Result<(Vec<Column>, Parts<'a>)> {
    Ok(match &job.definition().step.kind {
        StepKind::Map(_) => {
            let columns = job.part_columns.to_vec();
            check_earlier_parts(engine, job, redrive_chain).await?;
            let width = columns.len();
            let parts = redrive_chain.iter().map(|id| mapped(engine, *id, width));
            (columns, stream::iter(parts.collect::<Vec<_>>()).flatten().boxed())
        }
        _ => {
            let columns = emitted_columns(emitted(job, redrive_chain, Vec::new())).await?;
            (columns.clone(), emitted(job, redrive_chain, columns))
        }
    })
}

/// The database that runs `reduce`, with the columns of the parts as it knows them.
fn reducer<'a>(
    engine: &'a Engine,
    job: &JobContext,
    columns: Vec<Column>,
) -> Result<(&'a Arc<dyn Connection>, Vec<Column>)> {
    let definition = job.definition();
    Ok(match &definition.reduce_in {
        // The SQL types of the source may not exist in the other database.
        Some(name) => (engine.connection(name)?, columns.into_iter().map(untyped).collect()),
        None => (engine.connection(&definition.source.connection)?, columns),
    })
}

/// A column without the SQL type of its database, which may not exist in another one.
pub(crate) fn untyped(column: Column) -> Column {
    Column { sql_type: String::new(), ..column }
}

/// Refuses to merge a redrive without the parts of the original job, since its result would replace that of all
/// rows by that of a few.
pub(super) async fn check_earlier_parts(
    engine: &Engine,
    job: &JobContext,
    chain: &[JobId],
) -> Result<()> {
    let root = job.snapshot.root;
    if !chain.contains(&root) || root == job.snapshot.id {
        return Ok(());
    }
    let original = engine.job(root).await?;
    let refuse = |why: &str| {
        let detail = format!("cannot merge this redrive with job {root}, {why}");
        Err(Problem::new(Code::Status, detail).into())
    };
    if original.status != JobStatus::Completed {
        return refuse("which is not completed; retry that job, then redrive");
    }
    if original.chunks.total > 0 && engine.store().parts(root, MERGED, 1).await?.is_empty() {
        return refuse("whose parts were pruned; submit the job type again");
    }
    Ok(())
}

/// Streams the rows of a job's parts, a page of parts at a time. They must have this many columns: a redrive uses
/// the current definition.
fn mapped(engine: &Engine, job: JobId, columns: usize) -> Parts<'_> {
    let pages = stream::try_unfold(MERGED, move |after| async move {
        let page =
            engine.store().parts(job, after, PARTS_PER_PAGE).await.map_err(into_data_error)?;
        let Some(last) = page.last().map(|part| part.chunk) else { return Ok(None) };
        let rows = page.iter().map(|row| map_export::decode(&row.part));
        let rows = rows.collect::<Result<Vec<_>>>().map_err(into_data_error)?.concat();
        if rows.iter().any(|row| row.len() != columns) {
            let detail = format!(
                "the parts of job {job} have other columns than step.map has now; submit the job type again"
            );
            return Err(Problem::field(Code::Source, "step.map", detail).into());
        }
        Ok::<_, ConnectorError>(Some((rows, last)))
    });
    pages.boxed()
}

/// Streams the rows that the items of these jobs emitted, as values of these columns.
fn emitted<'a>(job: &'a JobContext, redrive_chain: &'a [JobId], columns: Vec<Column>) -> Parts<'a> {
    let pages = stream::iter(redrive_chain.iter().copied()).flat_map(move |id| {
        let columns = columns.clone();
        stream::try_unfold(EmittedCursor::default(), move |after| {
            let columns = columns.clone();
            async move {
                let page = job.target.emitted(id, &after, EMITTED_ROWS_PER_PAGE).await?;
                let Some(last) = page.last().map(|row| row.cursor.clone()) else { return Ok(None) };
                let rows = page.iter().map(|row| row_values(&row.fields, &columns));
                Ok::<_, ConnectorError>(Some((
                    rows.collect::<std::result::Result<Vec<_>, _>>()?,
                    last,
                )))
            }
        })
        .boxed()
    });
    pages.boxed()
}

fn row_values(fields: &str, columns: &[Column]) -> std::result::Result<Vec<Value>, ConnectorError> {
    if columns.is_empty() {
        // The caller wants the names and types, not the values.
        return Ok(Json::from_text(fields).map(Value::Json).into_iter().collect());
    }
    let mut row: HashMap<String, ExactValue> = serde_json::from_str(fields)
        .map_err(|error| ConnectorError::Unreadable(format!("an emitted row: {error}")))?;
    let mut value = |column: &Column| row.remove(&column.name).map_or(Value::Null, |value| value.0);
    Ok(columns.iter().map(&mut value).collect())
}

/// The columns of emitted rows: every field of any row, with a type that holds all its values.
async fn emitted_columns(mut rows: Parts<'_>) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = Vec::new();
    while let Some(page) = rows.try_next().await? {
        for row in page {
            let fields = row.into_iter().next().map(|row| row.to_json());
            let Some(serde_json::Value::Object(fields)) = fields else {
                continue;
            };
            for (name, value) in fields {
                let kind = json_type(&value);
                match columns.iter_mut().find(|column| column.name == name) {
                    Some(column) => column.kind = widen(column.kind, kind),
                    None => columns.push(Column {
                        name,
                        kind: kind.unwrap_or(ColumnType::Other),
                        sql_type: String::new(),
                        nullable: true,
                    }),
                }
            }
        }
    }
    Ok(columns)
}

fn json_type(value: &serde_json::Value) -> Option<ColumnType> {
    use serde_json::Value as Json;
    Some(match value {
        Json::Null => return None,
        Json::Bool(_) => ColumnType::Bool,
        Json::Number(number) if number.is_i64() => ColumnType::Int,
        Json::Number(_) => ColumnType::Float,
        Json::String(_) => ColumnType::Text,
        Json::Array(_) | Json::Object(_) => ColumnType::Json,
    })
}

/// A type that holds values of both types. `Other` stands for a column with only nulls so far.
fn widen(known: ColumnType, kind: Option<ColumnType>) -> ColumnType {
    use ColumnType as T;
    match (known, kind) {
        (known, None) => known,
        (T::Other, Some(kind)) => kind,
        (known, Some(kind)) if known == kind => known,
        (T::Int, Some(T::Float)) | (T::Float, Some(T::Int)) => T::Float,
        _ => T::Text,
    }
}

/// An engine error as the error type of the connectors, for use inside their streams.
fn into_data_error(error: impl Into<EngineError>) -> ConnectorError {
    match error.into() {
        EngineError::Data(error) => error,
        EngineError::Store(windlass_store::StoreError::Database(error)) => error.into(),
        EngineError::Problem(problem) => problem.into(),
        other => ConnectorError::Unreadable(other.to_string()),
    }
}
