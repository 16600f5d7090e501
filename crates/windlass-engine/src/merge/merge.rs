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
use crate::merge::result_rows::compute_result;
use crate::merge::{copy, job_result};
use crate::operate::after_restore;
use windlass_connectors::{Bound, ConnectorError, Fence, Ledger, LoadRequest, Rows, Scope};
#[cfg(feature = "html")]
use windlass_core::Value;
use windlass_core::{
    ChunkId, Cursor, JobId, JobStatus, JobType, Load, PaginationState, Report, Request,
};
use windlass_drivers::ErrorClass;
use windlass_store::{JobSnapshot, MERGED, NewPart, Page, REPORT, SegmentLease};

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
            if let Some(load) = &job.definition().load
                && let Some(bounds) = load_bounds(engine, job).await?
            {
                let merge = Merging { engine, job, redrive_chain, lease };
                copy::load_export(merge, load, &bounds, &destination).await?;
            }
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
        let merge = Merging { engine, job, redrive_chain, lease };
        let merged = merge_rows(merge).await?;
        if let Some(report) = &job.definition().report {
            let earlier = stored_report(engine, job.snapshot.id).await?;
            let record =
                async |report: &NewPart| Ok(engine.store().put_report(lease, report).await?);
            let result = merged.whole()?;
            let written = destination::write_report(job, report, result, earlier, record).await?;
            let confirmed = confirm_lease(engine, lease).await;
            if confirmed.as_ref().is_err_and(EngineError::is_lease_lost)
                && is_cancelled(engine, job).await?
            {
                // The job was cancelled before the file became visible, so the cancellation did not find it.
                destination::remove_report(job.snapshot.id, &written).await?;
            }
            confirmed?;
        }
        engine.store().put_merged(lease, &merged.into_part()?).await?;
        if let Some(report) = &job.definition().report {
            write_page(engine, job, report, lease).await?;
        }
    }
    Ok(())
}

/// A merge that this process has leased.
#[derive(Clone, Copy)]
pub(crate) struct Merging<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) job: &'a JobContext,
    pub(crate) redrive_chain: &'a [JobId],
    pub(crate) lease: SegmentLease,
}

/// Computes the result, and loads it if the request covers all records.
async fn merge_rows(merge: Merging<'_>) -> Result<job_result::MergedRows> {
    let Merging { engine, job, redrive_chain, lease } = merge;
    let load = job.definition().load.as_ref();
    let bounds = match load {
        Some(_) => load_bounds(engine, job).await?,
        None => None,
    };
    if let Some(load) = load
        && let (Some(copy), Some(bounds)) = (&load.copy, &bounds)
    {
        return copy::load_result(merge, load, copy, bounds).await;
    }
    let result = compute_result(engine, job, redrive_chain).await?;
    if let (Some(load), Some(bounds)) = (load, &bounds) {
        load_into(engine, job, lease, load, &result, bounds).await?;
    }
    Ok(job_result::MergedRows::whole_of(result))
}

/// The restrictions of the job's load. `None` if it must not load.
async fn load_bounds(engine: &Engine, job: &JobContext) -> Result<Option<Vec<Bound>>> {
    let root = root_request(engine, &job.snapshot).await?;
    match root.filter(|root| !is_partial(&job.snapshot.definition, root)) {
        Some(root) => bounds(job, &root).map(Some),
        None => {
            tracing::info!(
                job = %job.snapshot.id,
                "result not loaded: the request has ids, a limit or filters that `load.replace` does not cover"
            );
            Ok(None)
        }
    }
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
    let mut rows = crate::merge::map_export::decode(merged)?.into_iter();
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

/// Replaces rows of the table by the result, once per job, however often it is called.
async fn load_into(
    engine: &Engine,
    job: &JobContext,
    lease: SegmentLease,
    load: &Load,
    result: &Rows,
    bounds: &[Bound],
) -> Result<()> {
    let Some(ledger) = begin_load(engine, lease, load).await? else { return Ok(()) };
    let params = &job.snapshot.request.params;
    let place = engine.connection(&load.connection)?;
    place.replace(&ledger, LoadRequest { load, result, params, bounds }).await?;
    log_loaded(lease.job, load, result.rows.len() as i64);
    Ok(())
}

pub(super) fn log_loaded(job: JobId, load: &Load, rows: i64) {
    tracing::info!(%job, connection = load.connection, table = load.table, rows, "result loaded");
}

/// Fences the ledger row of a load. `None` if the load is committed already.
pub(super) async fn begin_load(
    engine: &Engine,
    lease: SegmentLease,
    load: &Load,
) -> Result<Option<Ledger>> {
    engine.prepare(&load.connection).await?;
    let chunk = ChunkId { job: lease.job, number: MERGED };
    let fence = Fence { chunk, epoch: lease.epoch, nonce: lease.nonce, lost: false };
    let place = engine.connection(&load.connection)?;
    let fenced = place.fence(&[fence]).await.map_err(lock_as_unavailable);
    let Some(ledger) = fenced?.pop().flatten() else {
        after_restore::handle_refused_load(engine, &load.connection, lease).await?;
        return Ok(None);
    };
    if ledger.cursor == Cursor::End {
        return Ok(None);
    }
    // As after every fence: do not load for a job that has ended.
    confirm_lease(engine, lease).await?;
    Ok(Some(ledger))
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
        read_snapshot: None,
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
