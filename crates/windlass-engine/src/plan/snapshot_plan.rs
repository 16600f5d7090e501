//! Plans a job that is read at one instant: takes the snapshot, and plans under it.

use super::block_plan::{blocks_of, chunks};
use super::page::{chunks_page, next_page};
use super::read_snapshot::PRIMARY;
use crate::Result;
use crate::engine::Engine;
use crate::job_context::{JobContext, Reading};
use std::sync::Arc;
use windlass_connectors::{Connection, ConnectorError, HeldSnapshot};
use windlass_core::{Consistency, ErrorKind, PaginationState};
use windlass_store::{LeasedSegment, NewReadSnapshot, Page};

/// The first page of a job.
pub(super) enum SnapshotPlan {
    /// Each chunk is read at its own instant: there is one chunk, or the database has no snapshots.
    Plain(Page),
    /// It is read under this snapshot.
    Under(Page, Box<dyn HeldSnapshot>),
    /// This process holds as many snapshots as its connections allow.
    Busy,
}

/// Plans a new job. A job of a single chunk needs no snapshot: the chunk is one statement.
pub(super) async fn plan(
    engine: &Engine,
    job: &Arc<JobContext>,
    segment: &LeasedSegment,
    worker: &str,
) -> Result<SnapshotPlan> {
    let by_keys = async |job: &JobContext| next_page(job, segment, PaginationState::Plan).await;
    if job.is_redrive() {
        return Ok(SnapshotPlan::Plain(by_keys(job).await?));
    }
    let count = blocks_of(job).await?;
    let plain = match count {
        Some(count) => {
            job.source.check_keys(&job.scope, None).await?;
            Some(chunks_page(segment, chunks(count, job)))
        }
        None if is_small(job) => Some(by_keys(job).await?),
        None => None,
    };
    let plain = match plain {
        Some(page) if is_one_chunk(&page) => return Ok(SnapshotPlan::Plain(page)),
        // Blocks make no sense without a snapshot: an updated row moves to another block.
        plain => plain.filter(|_| count.is_none()),
    };
    let (server, connection, held) = match hold(engine, job).await {
        Ok(Some(held)) => held,
        Ok(None) => return Ok(SnapshotPlan::Busy),
        Err(error) => {
            let is_required = job.definition().source.consistency == Some(Consistency::Snapshot);
            if is_required || error.kind() != ErrorKind::Permanent {
                return Err(error);
            }
            return Ok(SnapshotPlan::Plain(match plain {
                Some(page) => page,
                None => by_keys(job).await?,
            }));
        }
    };
    let number = engine.store().read_snapshot(job.snapshot.id).await?;
    let number = number.map_or(1, |last| last.number + 1);
    let snapshot = held.snapshot().clone();
    let (name, fingerprint) = (snapshot.name.clone(), snapshot.fingerprint.clone());
    let reading = Reading { number, on_replica: server != PRIMARY };
    let under = job.under(connection, snapshot, reading);
    let mut page = match count {
        Some(count) => chunks_page(segment, chunks(count, job)),
        None => by_keys(&under).await?,
    };
    if is_one_chunk(&page) {
        held.release().await;
        page.read_under(None);
        return Ok(SnapshotPlan::Plain(page));
    }
    page.read_under(Some(number));
    let lease = job.definition().chunk.lease;
    let worker = worker.to_owned();
    page.read_snapshot = Some(NewReadSnapshot { number, server, name, fingerprint, worker, lease });
    Ok(SnapshotPlan::Under(page, held))
}

/// Whether the job has probably one chunk, so that planning it twice otherwise is no loss.
fn is_small(job: &JobContext) -> bool {
    let items = u64::from(job.definition().chunk_items());
    let ids = job.snapshot.request.ids.as_ref().map(|ids| ids.len() as u64);
    let rows = ids.unwrap_or(job.scope.table.estimated_rows);
    // The rows of a query are not estimated.
    rows > 0 && rows <= items
}

fn is_one_chunk(page: &Page) -> bool {
    (page.segments.is_empty() || page.planned) && page.chunks.len() <= 1
}

/// The name of a server, its connection, and a snapshot on it.
type Taken = (String, Arc<dyn Connection>, Box<dyn HeldSnapshot>);

/// Takes a snapshot on a healthy replica, or on the primary if there is none.
async fn hold(engine: &Engine, job: &JobContext) -> Result<Option<Taken>> {
    let name = &job.definition().source.connection;
    let replicas = match engine.replicas(name) {
        Some(replicas) => replicas.servers().await,
        None => Vec::new(),
    };
    for (server, connection) in replicas {
        match connection.hold_snapshot(&job.scope).await {
            Ok(held) => return Ok(held.map(|held| (server, connection, held))),
            Err(ConnectorError::Problem(problem)) => return Err(problem.into()),
            Err(error) => {
                tracing::warn!(%error, "failed to take a snapshot on replica {server}; trying the next server");
            }
        }
    }
    let primary = engine.connection(name)?.clone();
    let held = primary.hold_snapshot(&job.scope).await?;
    Ok(held.map(|held| (PRIMARY.to_owned(), primary, held)))
}
