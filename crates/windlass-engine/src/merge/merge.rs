//! Merges all parts of a job into one result, after its last chunk.
//!
//! The merge is a segment with an epoch and a lease, like those that are planned. All of it except the
//! load may be repeated: the result is the same, and a report is replaced atomically. The load is
//! committed together with a ledger row beside its table, so it happens once. A report or a manifest
//! is made visible only after the lease was checked again.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::job_context::JobContext;
use crate::merge::destination::{self, JobDestination};
use crate::merge::map_export;
use crate::operate::after_restore;
use futures::stream::{self, StreamExt, TryStreamExt};
use std::collections::HashMap;
use windlass_connectors::{
    Bound, Connection, ConnectorError, EmittedCursor, Fence, LoadRequest, Parts, Reduction, Rows,
    Scope,
};
use windlass_core::problem::Code;
use windlass_core::{
    ChunkId, Column, ColumnType, Cursor, ExactValue, JobId, JobStatus, JobType, Json, Load,
    PaginationState, Problem, Report, Request, StepKind, Value,
};
use windlass_drivers::ErrorClass;
use windlass_store::{JobSnapshot, MERGED, NewPart, Page, REPORT, SegmentLease};

/// Parts fetched per page.
const PARTS_PER_PAGE: u32 = 10;
/// Emitted rows fetched per page.
const EMITTED_ROWS_PER_PAGE: u32 = 5000;

/// What became of a merge.
pub(crate) enum MergeOutcome {
    /// The result, report and load are committed.
    Done,
    /// The lease is lost: another process merges.
    Lost,
    /// An older job of the same redrive chain has not ended.
    NotYet,
}

/// Merges a job. A job and its redrives produce one result together, so they merge in order of age,
/// and the last one has all rows.
pub(crate) async fn merge(
    engine: &Engine,
    job: &JobContext,
    lease: SegmentLease,
) -> Result<MergeOutcome> {
    let redrive_chain = engine.store().redrive_chain(job.snapshot.root).await?;
    let mut older = redrive_chain.iter().take_while(|(id, _)| *id != job.snapshot.id);
    if older.any(|(_, status)| !status.is_final()) {
        return Ok(MergeOutcome::NotYet);
    }
    let redrive_chain: Vec<JobId> = redrive_chain.into_iter().map(|(id, _)| id).collect();
    match merge_all(engine, job, &redrive_chain, lease).await {
        Ok(()) => Ok(MergeOutcome::Done),
        Err(error) if error.is_lease_lost() => Ok(MergeOutcome::Lost),
        Err(error) => Err(error),
    }
}

async fn merge_all(
    engine: &Engine,
    job: &JobContext,
    redrive_chain: &[JobId],
    lease: SegmentLease,
) -> Result<()> {
    if let Some(destination) = JobDestination::of(job)? {
        let parts = destination::list_parts(engine, job.snapshot.id).await?;
        let merged: Result<()> = async {
            let confirmed = confirm_lease(engine, lease);
            let manifest = destination.write_manifest(job, &parts, confirmed).await?;
            Ok(engine.store().put_merged(lease, &manifest).await?)
        }
        .await;
        if merged.as_ref().is_err_and(EngineError::is_lease_lost)
            && is_cancelled(engine, job).await?
        {
            // Parts that were being written while the output was deleted; no later clean-up finds them.
            destination.delete_all(job, is_cancelled(engine, job)).await?;
        }
        return merged;
    }
    if job.definition().reduces() {
        let result = compute_result(engine, job, redrive_chain).await?;
        if let Some(load) = &job.definition().load {
            let root = root_request(engine, &job.snapshot).await?;
            match root.filter(|root| !is_partial(&job.snapshot.definition, root)) {
                Some(root) => {
                    let bounds = bounds(job, &root)?;
                    load_into(engine, job, lease, load, &result, &bounds).await?;
                }
                None => tracing::info!(
                    job = %job.snapshot.id,
                    "result not loaded: the request has ids, a limit or filters that `load.replace` does not cover"
                ),
            }
        }
        if let Some(report) = &job.definition().report {
            let earlier = stored_report(engine, job.snapshot.id).await?;
            let record =
                async |report: &NewPart| Ok(engine.store().put_report(lease, report).await?);
            let written = destination::write_report(job, report, &result, earlier, record).await?;
            let confirmed = confirm_lease(engine, lease).await;
            if confirmed.as_ref().is_err_and(EngineError::is_lease_lost)
                && is_cancelled(engine, job).await?
            {
                // The job was cancelled before the file became visible, so the cancellation did not find it.
                destination::remove_report(job.snapshot.id, &written).await?;
            }
            confirmed?;
        }
        let merged = crate::merge::job_result::encode(&result)?;
        engine.store().put_merged(lease, &merged).await?;
        if let Some(report) = &job.definition().report {
            write_page(engine, job, report, lease).await?;
        }
    }
    Ok(())
}

/// The report page is HTML, which this build leaves out.
#[cfg(not(feature = "html"))]
async fn write_page(_: &Engine, _: &JobContext, _: &Report, _: SegmentLease) -> Result<()> {
    Ok(())
}

/// Writes the HTML page next to the report. A failure does not fail the job: the page is rendered from
/// the store and can be produced again at any time.
#[cfg(feature = "html")]
async fn write_page(
    engine: &Engine,
    job: &JobContext,
    report: &Report,
    lease: SegmentLease,
) -> Result<()> {
    if !report.page {
        return Ok(());
    }
    let id = job.snapshot.id;
    let written = async {
        let page = crate::merge::report_page::render_merged(engine, id).await?;
        destination::write_report_page(job, report, page, confirm_lease(engine, lease)).await
    };
    match written.await {
        Err(error) if !error.is_lease_lost() => {
            tracing::warn!(job = %id, %error,
                "failed to write the HTML report; create it with `windlass job {id} --html FILE`");
            Ok(())
        }
        written => written,
    }
}

/// The merged result or the manifest of a job, if it is stored.
pub(crate) async fn stored_result(engine: &Engine, job: JobId) -> Result<Option<NewPart>> {
    let kept = engine.store().parts(job, MERGED - 1, 1).await?;
    Ok(kept.into_iter().find(|part| part.chunk == MERGED).map(|part| part.part))
}

/// The report that a merge of this job has recorded. Its file may not be there.
pub(crate) async fn stored_report(engine: &Engine, job: JobId) -> Result<Option<NewPart>> {
    let kept = engine.store().parts(job, REPORT - 1, 1).await?;
    Ok(kept.into_iter().find(|part| part.chunk == REPORT).map(|part| part.part))
}

/// The column names and the rows of a stored result.
#[cfg(feature = "html")]
pub(crate) fn decode_result(merged: &NewPart) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
    let mut rows = map_export::decode(merged)?.into_iter();
    let names = rows.next().into_iter().flatten().filter_map(|name| name.to_text()).collect();
    Ok((names, rows.collect()))
}

/// Whether a request covers only some records. Its result is reported but never loaded, because it
/// would replace the rows of all records. Filters whose columns are all in `load.replace` do not count,
/// because they replace only their own rows.
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

/// The request whose output a merge completes: the job's own, or for a redrive that of the original
/// job. `None` if the original job was pruned, since its filters are then unknown.
pub(crate) async fn root_request(engine: &Engine, job: &JobSnapshot) -> Result<Option<Request>> {
    if job.root == job.id {
        return Ok(Some(job.request.clone()));
    }
    Ok(engine.store().snapshot(job.root).await?.map(|root| root.request))
}

/// Restricts a load to the rows that the filters of the request and the claims of the identity allow.
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

/// The result of `reduce` over the parts; without `reduce`, all rows of the parts.
async fn compute_result(
    engine: &Engine,
    job: &JobContext,
    redrive_chain: &[JobId],
) -> Result<Rows> {
    let definition = job.definition();
    let (columns, parts) = match &definition.step.kind {
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
        // The SQL types of the source may not exist in the other database.
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

/// A column without the SQL type of its database, which may not exist in another one.
pub(crate) fn untyped(column: Column) -> Column {
    Column { sql_type: String::new(), ..column }
}

/// Refuses to merge a redrive without the parts of the original job, since its result would replace that of all
/// rows by that of a few.
async fn check_earlier_parts(engine: &Engine, job: &JobContext, chain: &[JobId]) -> Result<()> {
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

/// Replaces rows of the table by the result, once per job, however often it is called.
async fn load_into(
    engine: &Engine,
    job: &JobContext,
    lease: SegmentLease,
    load: &Load,
    result: &Rows,
    bounds: &[Bound],
) -> Result<()> {
    engine.prepare(&load.connection).await?;
    let place: &dyn Connection = engine.connection(&load.connection)?.as_ref();
    let chunk = ChunkId { job: lease.job, number: MERGED };
    let fence = Fence { chunk, epoch: lease.epoch, nonce: lease.nonce, lost: false };
    let fenced = place.fence(&[fence]).await.map_err(lock_as_unavailable);
    let Some(ledger) = fenced?.pop().flatten() else {
        return after_restore::handle_refused_load(engine, &load.connection, lease).await;
    };
    if ledger.cursor == Cursor::End {
        return Ok(());
    }
    // As after every fence: do not load for a job that has ended.
    confirm_lease(engine, lease).await?;
    let params = &job.snapshot.request.params;
    place.replace(&ledger, LoadRequest { load, result, params, bounds }).await?;
    tracing::info!(job = %lease.job, connection = load.connection, table = load.table,
        rows = result.rows.len(), "result loaded");
    Ok(())
}

/// Checks that the lease of the merge still holds, by committing a page that changes nothing.
pub(crate) async fn confirm_lease(engine: &Engine, lease: SegmentLease) -> Result<()> {
    let page = Page {
        lease,
        from: PaginationState::Merge,
        to: PaginationState::Merge,
        last: false,
        segments: Vec::new(),
        chunks: Vec::new(),
        planned: false,
    };
    Ok(engine.store().commit_page(page).await?)
}

/// A lock timeout as an unavailable database, so that it does not count as an attempt: a process that
/// lost the merge may hold the row lock until the database ends its transaction.
fn lock_as_unavailable(error: ConnectorError) -> ConnectorError {
    match error.class() {
        Some(ErrorClass::Retry) => {
            let why = format!("another transaction still holds the lock of this load: {error}");
            windlass_drivers::Error::new(ErrorClass::Connection, why).into()
        }
        _ => error,
    }
}

pub(crate) async fn is_cancelled(engine: &Engine, job: &JobContext) -> Result<bool> {
    let found = engine.store().job(job.snapshot.id).await?;
    Ok(found.is_some_and(|job| job.status == JobStatus::Cancelled))
}

/// Fences the load of a merge at this epoch, so that no earlier merge can load. Returns whether a load
/// was already committed.
pub(crate) async fn fence_load(engine: &Engine, lease: SegmentLease, load: &Load) -> Result<bool> {
    engine.prepare(&load.connection).await?;
    let chunk = ChunkId { job: lease.job, number: MERGED };
    let fence = Fence { chunk, epoch: lease.epoch, nonce: lease.nonce, lost: false };
    let fenced =
        engine.connection(&load.connection)?.fence(&[fence]).await.map_err(lock_as_unavailable)?;
    // No row means that a higher epoch has fenced it already.
    let ledger = fenced.into_iter().next().flatten();
    Ok(ledger.is_some_and(|ledger| ledger.cursor == Cursor::End))
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
