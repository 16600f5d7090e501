//! The merger: makes one result of all parts, after the last chunk.
//!
//! It works a segment like a loader, under its epoch and lease. Everything but the load may be done
//! again: a result is the same, and a report is replaced whole. A load is committed with a row of the
//! ledger beside its table, so that it is done once. A report or a manifest becomes visible only after
//! another look at whether the merge is still ours.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::job_context::JobContext;
use crate::merge::destination::{self, JobDestination};
use crate::merge::map_export;
use crate::operate::after_restore;
use futures::stream::{self, StreamExt, TryStreamExt};
use windlass_connectors::{
    Bound, Connection, ConnectorError, EmittedCursor, Fence, LoadRequest, Parts, Reduction, Rows,
    Scope,
};
use windlass_core::{
    ChunkId, Column, ColumnType, Cursor, JobId, JobStatus, JobType, Load, PaginationState, Report,
    Request, StepKind, Value,
};
use windlass_drivers::ErrorClass;
use windlass_store::{JobSnapshot, Kept, MERGED, NewPart, Page, SegmentLease};

/// Parts fetched at once.
const PARTS: u32 = 10;
/// Emitted rows fetched at once.
const ROWS: u32 = 5000;

/// What became of a merge.
pub(crate) enum Merge {
    Done,
    /// Somebody else does it.
    Lost,
    /// Its turn has not come.
    Later,
}

/// Merges a job. What a job and its redrives emit is one result, so they merge in order of age:
/// whoever is last has everything.
pub(crate) async fn merge(engine: &Engine, job: &JobContext, lease: SegmentLease) -> Result<Merge> {
    let redrive_chain = engine.store().redrive_chain(job.snapshot.root).await?;
    let mut older = redrive_chain.iter().take_while(|(id, _)| *id != job.snapshot.id);
    if older.any(|(_, status)| !status.is_final()) {
        return Ok(Merge::Later);
    }
    let redrive_chain: Vec<JobId> = redrive_chain.into_iter().map(|(id, _)| id).collect();
    Ok(match merge_all(engine, job, &redrive_chain, lease).await? {
        Kept::Yes => Merge::Done,
        Kept::Lost => Merge::Lost,
    })
}

async fn merge_all(
    engine: &Engine,
    job: &JobContext,
    redrive_chain: &[JobId],
    lease: SegmentLease,
) -> Result<Kept> {
    if let Some(destination) = JobDestination::of(job)? {
        let parts = destination::parts(engine, job.snapshot.id).await?;
        let kept = match destination.close(job, &parts, still_ours(engine, lease)).await? {
            Some(manifest) => engine.store().put_merged(lease, &manifest).await?,
            None => Kept::Lost,
        };
        if kept == Kept::Lost && is_cancelled(engine, job).await? {
            // What was on its way when the rest was removed. Nobody else would look again.
            destination.clear(job, is_cancelled(engine, job)).await?;
        }
        return Ok(kept);
    }
    if job.definition().reduces() {
        let result = result(engine, job, redrive_chain).await?;
        if let Some(load) = &job.definition().load {
            let root = root_request(engine, &job.snapshot).await?;
            match root.filter(|root| !is_partial(&job.snapshot.definition, root)) {
                Some(root) => {
                    let bounds = bounds(job, &root)?;
                    if load_into(engine, job, lease, load, &result, &bounds).await? == Kept::Lost {
                        return Ok(Kept::Lost);
                    }
                }
                None => tracing::info!(
                    job = %job.snapshot.id,
                    "not loaded: the job covers a part of the source that load.replace does not name"
                ),
            }
        }
        if let Some(report) = &job.definition().report
            && destination::report(job, report, &result, still_ours(engine, lease)).await?
                == Kept::Lost
        {
            return Ok(Kept::Lost);
        }
        let merged = crate::merge::job_result::encode(&result)?;
        let kept = engine.store().put_merged(lease, &merged).await?;
        return Ok(match &job.definition().report {
            Some(report) if kept == Kept::Yes => write_page(engine, job, report, lease).await,
            _ => kept,
        });
    }
    Ok(Kept::Yes)
}

/// Puts a page for people beside the report. It comes of what the store has, so that it can be had
/// again at any time: one that cannot be written is no reason to fail a job whose result is there.
async fn write_page(
    engine: &Engine,
    job: &JobContext,
    report: &Report,
    lease: SegmentLease,
) -> Kept {
    if !report.page {
        return Kept::Yes;
    }
    let id = job.snapshot.id;
    let written = async {
        let page = crate::merge::report_page::of_merged(engine, id).await?;
        destination::page(job, report, page, still_ours(engine, lease)).await
    };
    written.await.unwrap_or_else(|error| {
        tracing::warn!(job = %id, %error, "the page of a report is not there; `windlass job {id} --html FILE` makes it");
        Kept::Yes
    })
}

/// What was made of all parts of a job, where it is there.
pub(crate) async fn merged(engine: &Engine, job: JobId) -> Result<Option<NewPart>> {
    let kept = engine.store().parts(job, MERGED - 1, 1).await?;
    Ok(kept.into_iter().find(|part| part.chunk == MERGED).map(|part| part.part))
}

/// The names of a result's columns, and its rows.
pub(crate) fn rows_of(merged: &NewPart) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
    let mut rows = map_export::decode(merged)?.into_iter();
    let names = rows.next().into_iter().flatten().filter_map(|name| name.to_text()).collect();
    Ok((names, rows.collect()))
}

/// A request for some of the records reports them, and never loads: it would replace the whole by a
/// part of it. Filters whose columns are all in `load.replace` replace just their part.
pub(crate) fn is_partial(definition: &JobType, request: &Request) -> bool {
    let replaced = |filter: &str| {
        let column = definition.source.filters.get(filter);
        let load = definition.load.as_ref();
        load.zip(column).is_some_and(|(load, column)| load.replace.contains(column))
    };
    request.ids.is_some()
        || request.max_items_per_segment.is_some()
        || !request.filters().all(|(filter, _)| replaced(filter))
}

/// The request whose output a job's merge makes whole: its own, or that of the job it redrives,
/// whose keys alone it has. None where that job is gone, and with it what it was restricted to.
pub(crate) async fn root_request(engine: &Engine, job: &JobSnapshot) -> Result<Option<Request>> {
    if job.root == job.id {
        return Ok(Some(job.request.clone()));
    }
    Ok(engine.store().snapshot(job.root).await?.map(|root| root.request))
}

/// What the loaded rows must keep to: the filters of the request and the claims of the identity.
fn bounds(job: &JobContext, root: &Request) -> Result<Vec<Bound>> {
    let request = Request {
        filter: root.filter.clone(),
        params: root.params.clone(),
        ..Request::new(&job.definition().name)
    };
    if job.definition().source.items {
        return Ok(Vec::new());
    }
    let (definition, table) = (job.definition().clone(), job.scope.table.clone());
    Ok(Scope::new(definition, table, &request, &job.snapshot.identity)?.bounds())
}

/// What `reduce` makes of the parts; without one, the parts as they are.
async fn result(engine: &Engine, job: &JobContext, redrive_chain: &[JobId]) -> Result<Rows> {
    let definition = job.definition();
    let (columns, parts) = match &definition.step.kind {
        StepKind::Map(_) => (job.part_columns.to_vec(), mapped(engine, job.snapshot.id)),
        _ => {
            let columns = emitted_columns(emitted(job, redrive_chain, Vec::new())).await?;
            (columns.clone(), emitted(job, redrive_chain, columns))
        }
    };
    let Some(reduction) = definition.reduction()? else {
        let rows = parts.try_concat().await?;
        return Ok(Rows { columns, rows });
    };
    let place = match &definition.reduce_in {
        Some(name) => engine.connection(name)?,
        None => engine.connection(&definition.source.connection)?,
    };
    let columns = match definition.reduce_in {
        // The types of one database mean nothing to another.
        Some(_) => columns.into_iter().map(untyped).collect(),
        None => columns,
    };
    Ok(place
        .reduce(Reduction {
            columns: &columns,
            parts,
            select: &reduction,
            params: &job.snapshot.request.params,
        })
        .await?)
}

fn untyped(column: Column) -> Column {
    Column { sql_type: String::new(), ..column }
}

/// The rows of a job's parts, a few parts at a time.
fn mapped(engine: &Engine, job: JobId) -> Parts<'_> {
    let pages = stream::try_unfold(MERGED, move |after| async move {
        let page = engine.store().parts(job, after, PARTS).await.map_err(away)?;
        let Some(last) = page.last().map(|part| part.chunk) else { return Ok(None) };
        let rows = page.iter().map(|row| map_export::decode(&row.part));
        let rows = rows.collect::<Result<Vec<_>>>().map_err(away)?.concat();
        Ok::<_, ConnectorError>(Some((rows, last)))
    });
    pages.boxed()
}

/// The rows that the items of these jobs emitted, each with the values of these columns.
fn emitted<'a>(job: &'a JobContext, redrive_chain: &'a [JobId], columns: Vec<Column>) -> Parts<'a> {
    let pages = stream::iter(redrive_chain.iter().copied()).flat_map(move |id| {
        let columns = columns.clone();
        stream::try_unfold(EmittedCursor::default(), move |after| {
            let columns = columns.clone();
            async move {
                let page = job.target.emitted(id, &after, ROWS).await?;
                let Some(last) = page.last().map(|row| row.cursor.clone()) else { return Ok(None) };
                let rows = page.iter().map(|row| cells(&row.fields, &columns));
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

fn cells(fields: &str, columns: &[Column]) -> std::result::Result<Vec<Value>, ConnectorError> {
    let json: serde_json::Map<String, serde_json::Value> = serde_json::from_str(fields)
        .map_err(|error| ConnectorError::Unreadable(format!("an emitted row: {error}")))?;
    if columns.is_empty() {
        // Only the names and kinds are of interest.
        return Ok(vec![Value::Json(json.into())]);
    }
    let cell =
        |column: &Column| json.get(&column.name).cloned().map_or(Value::Null, Value::from_json);
    Ok(columns.iter().map(cell).collect())
}

/// The columns of emitted rows: whatever one of them has, of the kind that holds all its values.
async fn emitted_columns(mut rows: Parts<'_>) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = Vec::new();
    while let Some(page) = rows.try_next().await? {
        for row in page {
            let Some(Value::Json(serde_json::Value::Object(fields))) = row.into_iter().next()
            else {
                continue;
            };
            for (name, value) in fields {
                let kind = kind_of(&value);
                match columns.iter_mut().find(|column| column.name == name) {
                    Some(column) => column.kind = wider(column.kind, kind),
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

fn kind_of(value: &serde_json::Value) -> Option<ColumnType> {
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

/// The kind for values of both kinds; `Other` stands for a column of nulls so far.
fn wider(known: ColumnType, kind: Option<ColumnType>) -> ColumnType {
    use ColumnType as T;
    match (known, kind) {
        (known, None) => known,
        (T::Other, Some(kind)) => kind,
        (known, Some(kind)) if known == kind => known,
        (T::Int, Some(T::Float)) | (T::Float, Some(T::Int)) => T::Float,
        _ => T::Text,
    }
}

/// Replaces rows of the table by the result, once, whoever tries.
async fn load_into(
    engine: &Engine,
    job: &JobContext,
    lease: SegmentLease,
    load: &Load,
    result: &Rows,
    bounds: &[Bound],
) -> Result<Kept> {
    engine.prepare(&load.connection).await?;
    let place: &dyn Connection = engine.connection(&load.connection)?.as_ref();
    let chunk = ChunkId { job: lease.job, number: MERGED };
    let fence = Fence { chunk, epoch: lease.epoch, nonce: lease.nonce, lost: false };
    let fenced = place.fence(&[fence]).await.map_err(held);
    let Some(ledger) = fenced?.pop().flatten() else {
        return after_restore::refused_load(engine, &load.connection, lease).await;
    };
    if ledger.cursor == Cursor::End {
        return Ok(Kept::Yes);
    }
    // As after every fence: nobody loads for a job that is over.
    if still_ours(engine, lease).await? == Kept::Lost {
        return Ok(Kept::Lost);
    }
    match place
        .replace(
            &ledger,
            LoadRequest {
                load: load,
                result: result,
                params: &job.snapshot.request.params,
                bounds: bounds,
            },
        )
        .await
    {
        Ok(_) => Ok(Kept::Yes),
        Err(ConnectorError::LeaseLost) => Ok(Kept::Lost),
        Err(error) => Err(error.into()),
    }
}

/// A page that changes nothing is kept only while the segment is ours.
pub(crate) async fn still_ours(engine: &Engine, lease: SegmentLease) -> Result<Kept> {
    let page = Page {
        lease,
        from: PaginationState::Merge,
        to: PaginationState::Merge,
        last: false,
        segments: Vec::new(),
        chunks: Vec::new(),
    };
    Ok(engine.store().load(page).await?)
}

/// Whoever lost the merge may still hold the row, until the database ends its transaction. To wait for
/// that is no failure of ours.
fn held(error: ConnectorError) -> ConnectorError {
    match error.class() {
        Some(ErrorClass::Retry) => {
            let why = format!("an earlier merge has not let go of its load: {error}");
            windlass_drivers::Error::new(ErrorClass::Connection, why).into()
        }
        _ => error,
    }
}

pub(crate) async fn is_cancelled(engine: &Engine, job: &JobContext) -> Result<bool> {
    let found = engine.store().job(job.snapshot.id).await?;
    Ok(found.is_some_and(|job| job.status == JobStatus::Cancelled))
}

/// Fences the load of a merge at this epoch, so that no earlier merger loads any more. Says whether one
/// has loaded already.
pub(crate) async fn fence_load(engine: &Engine, lease: SegmentLease, load: &Load) -> Result<bool> {
    engine.prepare(&load.connection).await?;
    let chunk = ChunkId { job: lease.job, number: MERGED };
    let fence = Fence { chunk, epoch: lease.epoch, nonce: lease.nonce, lost: false };
    let fenced = engine.connection(&load.connection)?.fence(&[fence]).await.map_err(held)?;
    // A row at a higher epoch is fenced already.
    let ledger = fenced.into_iter().next().flatten();
    Ok(ledger.is_some_and(|ledger| ledger.cursor == Cursor::End))
}

/// An error of ours inside a stream of the connector's.
fn away(error: impl Into<EngineError>) -> ConnectorError {
    match error.into() {
        EngineError::Data(error) => error,
        EngineError::Store(windlass_store::StoreError::Database(error)) => error.into(),
        EngineError::Problem(problem) => problem.into(),
        other => ConnectorError::Unreadable(other.to_string()),
    }
}
