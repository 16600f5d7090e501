//! Detects a store that was restored to an older state (from a backup, or by failover to a replica that
//! lagged), and continues with it after `--after-restore`.
//!
//! At start: the store counts a generation per connection, raised whenever a process starts to work with
//! it. After the count is committed in the store, it is recorded beside the connection's ledger. If the
//! ledger has a higher generation than the store, the store is older. The ledger is read first, then the
//! store, so that processes that start at the same time are never mistaken for a restore.
//!
//! At run time: a fence is refused although the store confirms the lease. Every lease is committed before
//! its fence, so this happens only if the store went back in time.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::execute::lease::ChunkLease;
use crate::execute::lease::log_unrecorded;
use crate::merge::merge;
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_connectors::Ledger;
use windlass_core::problem::Code;
use windlass_core::{Cursor, JobId, JobStatus, Problem};
use windlass_drivers::{Error, ErrorClass};
use windlass_store::{Lease, LeaseStatus, MERGED, SegmentLease, StoreError};

/// Timeout per connection for the check at start. A connection that is not checked then is checked
/// before its first job.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// Ledger rows read per page.
const LEDGER_ROWS_PER_PAGE: u32 = 1000;

/// What `--after-restore` found and did.
///
/// ```no_run
/// # async fn example(engine: &windlass_engine::Engine) -> windlass_engine::Result<()> {
/// let done = engine.continue_after_restore().await?;
/// println!("{} chunks raised", done.raised);
/// for (connection, job, rows) in &done.unknown {
///     println!("{connection}: {rows} ledger rows of job {job}, which the store does not know");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct AfterRestore {
    /// Number of chunks whose epochs were raised to those of the ledger.
    pub raised: u64,
    /// Jobs that have ledger rows but are unknown to the store: connection, job, rows.
    pub unknown: Vec<(String, JobId, u64)>,
    /// Jobs that were planned further after the backup, and are therefore cancelled: connection, job, ledger rows of
    /// chunks that the store does not know.
    pub replanned: Vec<(String, JobId, u64)>,
    /// Connections that could not be reached, with the error.
    pub unreachable: Vec<(String, String)>,
}

impl Engine {
    /// Fails if the store is older than the ledger of a connection. A connection that cannot be reached
    /// now is checked before its first job.
    ///
    /// # Errors
    /// A store that was restored from a backup, and must be started with `--after-restore`.
    pub async fn check_restored(&self) -> Result<()> {
        for name in self.ledger_connections() {
            let checking = self.check_generation(&name);
            match tokio::time::timeout(START_TIMEOUT, checking).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(why))) => return Err(Problem::new(Code::Ledger, why).into()),
                Ok(Err(error)) => {
                    tracing::debug!(connection = name, %error,
                        "cannot check the ledger generation now; checking before the first job");
                }
                Err(_) => tracing::debug!(
                    connection = name,
                    "timeout checking the ledger generation; checking before the first job"
                ),
            }
        }
        Ok(())
    }

    /// Makes a restored store usable: raises its generations above those recorded beside the ledgers, and
    /// the epochs of its chunks to those of their ledger rows.
    ///
    /// # Errors
    /// The store fails. A connection that cannot be reached is listed in the result.
    pub async fn continue_after_restore(&self) -> Result<AfterRestore> {
        let mut done = AfterRestore::default();
        for name in self.ledger_connections() {
            match self.continue_connection(&name, &mut done).await {
                Err(EngineError::Data(error)) => done.unreachable.push((name, error.to_string())),
                outcome => outcome?,
            }
        }
        Ok(done)
    }

    async fn continue_connection(&self, name: &str, done: &mut AfterRestore) -> Result<()> {
        let (store, history) = (self.store(), self.connection(name)?.history());
        let seen = history.generation(store.identity().await?, name).await?;
        for (job, rows) in history.jobs().await? {
            if store.status(job).await?.is_none() {
                done.unknown.push((name.to_owned(), job, rows));
                continue;
            }
            // Chunks are numbered as they are planned.
            let planned = store.job(job).await?.map_or(0, |job| job.chunks.total);
            let (mut after, mut unknown) = (MERGED - 1, 0);
            loop {
                let page = history.rows(job, after, LEDGER_ROWS_PER_PAGE).await?;
                let Some(last) = page.last() else { break };
                after = last.chunk.number;
                let epochs: Vec<_> = page.iter().filter_map(chunk_epoch).collect();
                done.raised += store.raise_epochs(job, &epochs).await?;
                unknown += page.iter().filter(|row| row.chunk.number >= planned).count() as u64;
            }
            if unknown > 0 && self.cancel_replanned(job).await? {
                done.replanned.push((name.to_owned(), job, unknown));
            }
        }
        // Last, so that until then a process without the flag fails its check.
        store.raise_generation(name, seen).await?;
        Ok(())
    }

    /// Cancels a job with committed chunks that the store does not know. Planned again, the chunks of the same numbers
    /// may have other keys, so that the ledger does not tell which records are done. Returns false if it has ended.
    async fn cancel_replanned(&self, job: JobId) -> Result<bool> {
        let ended = self.store().status(job).await?.is_none_or(JobStatus::is_final);
        if !ended {
            self.store().cancel(job).await?;
            tracing::error!(%job, "job cancelled: it was planned further after the backup that the store was \
                restored from; submit again what is missing");
        }
        Ok(!ended)
    }

    /// Raises the generation of a connection, first in the store and then beside its ledger. Fails if the
    /// store was restored, until a process was started with `--after-restore`.
    pub(crate) async fn record_generation(&self, name: &str) -> Result<()> {
        if let Some(why) = self.check_generation(name).await? {
            tracing::error!(connection = name, "{why}");
            return Err(EngineError::Data(Error::new(ErrorClass::Connection, why).into()));
        }
        let generation = self.store().raise_generation(name, 0).await?;
        let identity = self.store().identity().await?;
        let history = self.connection(name)?.history();
        Ok(history.raise_generation(identity, name, generation).await?)
    }

    /// Explains how the store is older than the ledger of a connection; `None` if it is not.
    async fn check_generation(&self, name: &str) -> Result<Option<String>> {
        let identity = self.store().identity().await?;
        let seen = self.connection(name)?.history().generation(identity, name).await?;
        // Read after the ledger, because other processes raise the store's generation first.
        let own = self.store().generation(name).await?;
        Ok((seen > own).then(|| {
            format!(
                "the store was restored to an older state: the ledger on connection `{name}` \
                 records generation {seen} of this store, but the store is at {own}. Jobs submitted since then \
                 are unknown to it, and schedules and outbox rows may be submitted again. Stop all \
                 processes that worked with the store before, read \"After restoring the store\" in \
                 docs/operations.md, and start one with --after-restore"
            )
        }))
    }

    /// The connections whose ledgers this configuration writes.
    fn ledger_connections(&self) -> Vec<String> {
        let mut names = BTreeSet::new();
        for job_type in self.config().jobs.values() {
            if !job_type.step.kind.makes_parts() {
                names.insert(job_type.source.connection.clone());
            }
            names.extend(job_type.load.as_ref().map(|load| load.connection.clone()));
        }
        names.into_iter().filter(|name| self.connection(name).is_ok()).collect()
    }
}

/// The chunk and epoch of a ledger row that the store can continue from. A cancelled load has the
/// maximum epoch, which nothing can follow.
fn chunk_epoch(row: &Ledger) -> Option<(i64, i64)> {
    (row.epoch < i64::MAX).then_some((row.chunk.number, row.epoch))
}

/// Handles a chunk whose fence was refused. If the lease is lost, another worker was faster, and there
/// is nothing to do. If the store confirms the lease, the store was restored: the job is paused, since
/// every lease would be refused until the epochs exceed those of the ledger.
pub(crate) async fn handle_refused_fence(engine: &Engine, connection: &str, lease: ChunkLease) {
    let Lease { chunk, epoch, nonce } = lease.lease();
    match engine.store().confirm(&[lease.lease()]).await {
        Ok(statuses) if statuses.first() == Some(&LeaseStatus::Held) => {}
        // If the lease is not lost, it expires.
        _ => return,
    }
    let row = match ledger_row(engine, connection, chunk.job, chunk.number).await {
        Ok(row) => row,
        Err(error) => {
            tracing::warn!(%chunk, %error, "failed to read the ledger row that refused the fence; the lease will expire");
            return;
        }
    };
    let reason = reason(&format!("chunk {}", chunk.number), row.as_ref(), epoch, nonce);
    tracing::error!(%chunk, "{reason}");
    log_unrecorded(lease.release(Some(&reason), false, Duration::ZERO).await);
    pause(engine, chunk.job, &reason).await;
}

/// The number of a chunk that has a ledger row and that the store does not know, if there is one. Ledger rows are made
/// after their chunks, so such a row shows that the store was restored.
pub(crate) async fn unknown_chunk(
    engine: &Engine,
    connection: &str,
    job: JobId,
) -> Result<Option<i64>> {
    let history = engine.connection(connection)?.history();
    let store = engine.store();
    let known = async || Result::Ok(store.job(job).await?.map_or(0, |job| job.chunks.total));
    let mut total = known().await?;
    while let Some(row) = history.rows(job, total - 1, 1).await?.first() {
        // Its chunk may have been added since the store was read.
        total = known().await?;
        if row.chunk.number >= total {
            return Ok(Some(row.chunk.number));
        }
    }
    Ok(None)
}

/// Releases a chunk and pauses its job, because the store does not know another chunk that has a ledger row.
pub(crate) async fn handle_unknown_chunk(engine: &Engine, lease: ChunkLease, unknown: i64) {
    let chunk = lease.lease().chunk;
    let reason = format!(
        "the store was restored to an older state: it does not know chunk {unknown}, which has a ledger row; \
         start a worker with --after-restore"
    );
    tracing::error!(%chunk, "{reason}");
    log_unrecorded(lease.release(Some(&reason), false, Duration::ZERO).await);
    pause(engine, chunk.job, &reason).await;
}

/// Handles a load whose fence was refused. If the ledger shows that the load was committed, it is done:
/// a job loads once.
pub(crate) async fn handle_refused_load(
    engine: &Engine,
    connection: &str,
    lease: SegmentLease,
) -> Result<()> {
    let row = ledger_row(engine, connection, lease.job, MERGED).await?;
    merge::confirm_lease(engine, lease).await?;
    if row.as_ref().is_some_and(|row| row.cursor == Cursor::End) {
        return Ok(());
    }
    let reason = match &row {
        Some(row) if row.epoch == i64::MAX => {
            "the store was restored to an older state, from before this job was cancelled; cancel \
             it again, or submit it as a new job"
                .to_owned()
        }
        row => reason("the load", row.as_ref(), lease.epoch, lease.nonce),
    };
    tracing::error!(job = %lease.job, "{reason}");
    pause(engine, lease.job, &reason).await;
    Err(StoreError::LeaseLost.into())
}

async fn ledger_row(
    engine: &Engine,
    connection: &str,
    job: JobId,
    number: i64,
) -> Result<Option<Ledger>> {
    let rows = engine.connection(connection)?.history().rows(job, number - 1, 1).await?;
    Ok(rows.into_iter().find(|row| row.chunk.number == number))
}

fn reason(what: &str, row: Option<&Ledger>, epoch: i64, nonce: i64) -> String {
    let ledger = match row {
        Some(row) if row.epoch == epoch => format!("at epoch {epoch} of another lease"),
        Some(row) => format!("at epoch {}", row.epoch),
        None => "missing".to_owned(),
    };
    format!(
        "the store was restored to an older state: the ledger row of {what} is {ledger}, but the store \
         leased it at epoch {epoch} (nonce {nonce:016x}); start a worker with --after-restore, then \
         resume the job"
    )
}

async fn pause(engine: &Engine, job: JobId, reason: &str) {
    // Fails if another chunk has already paused the job.
    if let Err(error) = engine.store().pause(job, Some(reason)).await {
        tracing::debug!(%job, %error, "job not paused");
    }
}
