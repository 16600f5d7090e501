//! A store that was restored to an older state (a backup, a failover to a replica that lagged): how it
//! is detected, what is refused, and how work continues with `--after-restore`.
//!
//! At the start: the store counts, per connection, how often a process began to work, and each count is
//! recorded beside the connection's ledger after it is committed in the store. A ledger that has seen a
//! higher generation than the store has is newer than the store. The ledger is read first, then the
//! store, so that processes that start at the same time are never taken for a restore.
//!
//! At run time: a fence that is refused while the store confirms the lease is possible only when the
//! store went back in time, since every claim is committed before its fence.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::execute::lease::ChunkLease;
use crate::execute::worker::report;
use crate::merge::merge;
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_connectors::Ledger;
use windlass_core::problem::Code;
use windlass_core::{Cursor, JobId, Problem};
use windlass_drivers::{Error, ErrorClass};
use windlass_store::{Kept, Lease, MERGED, SegmentLease, Standing};

/// How long a connection may take at the start of a process; it is checked again before its first job.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// Ledger rows read at once.
const ROWS: u32 = 1000;

/// What `--after-restore` found and did.
#[derive(Debug, Default)]
pub struct AfterRestore {
    /// The chunks whose epochs were raised to those of the ledger.
    pub raised: u64,
    /// Jobs that have ledger rows and that the store does not know: connection, job, rows.
    pub unknown: Vec<(String, JobId, u64)>,
    /// Connections that could not be reached, with the error.
    pub unreachable: Vec<(String, String)>,
}

impl Engine {
    /// Refuses to work with a store that is older than the ledgers of its connections. One that cannot
    /// be reached now is checked before its first job.
    pub async fn check_restored(&self) -> Result<()> {
        for name in self.ledger_connections() {
            let checking = self.check_generation(&name);
            match tokio::time::timeout(START_TIMEOUT, checking).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(why))) => return Err(Problem::new(Code::Ledger, why).into()),
                Ok(Err(error)) => {
                    tracing::debug!(connection = name, %error, "checked before its first job");
                }
                Err(_) => tracing::debug!(connection = name, "checked before its first job"),
            }
        }
        Ok(())
    }

    /// Continues with a restored store: raises its generations above what the ledgers have seen, and the
    /// epochs of its chunks to those of their ledger rows.
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
            let mut after = MERGED - 1;
            loop {
                let page = history.rows(job, after, ROWS).await?;
                let Some(last) = page.last() else { break };
                after = last.chunk.number;
                let epochs: Vec<_> = page.iter().filter_map(continuable).collect();
                done.raised += store.raise_epochs(job, &epochs).await?;
            }
        }
        // Last: until then a process without the flag is refused.
        store.raise_generation(name, seen).await?;
        Ok(())
    }

    /// Raises the generation of a connection, in the store and then beside its ledger. An error where the
    /// store was restored; it passes when a process continues with `--after-restore`.
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

    /// Why the store is older than the ledger of a connection; none where it is not.
    async fn check_generation(&self, name: &str) -> Result<Option<String>> {
        let identity = self.store().identity().await?;
        let seen = self.connection(name)?.history().generation(identity, name).await?;
        // After the ledger: other processes raise the store's first.
        let own = self.store().generation(name).await?;
        Ok((seen > own).then(|| {
            format!(
                "the store was restored to an older state: the ledger on connection `{name}` has seen \
                 generation {seen} of this store, and the store is at {own}. Jobs submitted since then \
                 are unknown to it, and schedules and outbox rows may be submitted again. StopReason all \
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

/// The chunk and epoch at which the store can go on. A cancelled load has the highest epoch there is,
/// and none comes after it.
fn continuable(row: &Ledger) -> Option<(i64, i64)> {
    (row.epoch < i64::MAX).then_some((row.chunk.number, row.epoch))
}

/// A chunk whose fence was refused. Where the lease is lost, another worker was faster. Where the store
/// confirms it, the store was restored: the job is paused, since every claim would be refused until the
/// epochs have passed those of the ledger.
pub(crate) async fn refused(engine: &Engine, connection: &str, hold: ChunkLease) {
    let Lease { chunk, epoch, nonce } = hold.lease();
    match engine.store().confirm(&[hold.lease()]).await {
        Ok(standings) if standings.first() == Some(&Standing::Held) => {}
        // Dropped, the lease runs out where it was not lost.
        _ => return,
    }
    let row = match row_of(engine, connection, chunk.job, chunk.number).await {
        Ok(row) => row,
        Err(error) => {
            tracing::warn!(%chunk, %error, "cannot read the ledger row that refused the fence");
            return;
        }
    };
    let reason = reason(&format!("chunk {}", chunk.number), row.as_ref(), epoch, nonce);
    tracing::error!(%chunk, "{reason}");
    report(hold.release(Some(&reason), false, Duration::ZERO).await);
    pause(engine, chunk.job, &reason).await;
}

/// A load whose fence was refused. One that the ledger has done is done: a load is once per job.
pub(crate) async fn refused_load(
    engine: &Engine,
    connection: &str,
    lease: SegmentLease,
) -> Result<Kept> {
    let row = row_of(engine, connection, lease.job, MERGED).await?;
    if merge::still_ours(engine, lease).await? == Kept::Lost {
        return Ok(Kept::Lost);
    }
    if row.as_ref().is_some_and(|row| row.cursor == Cursor::End) {
        return Ok(Kept::Yes);
    }
    let reason = match &row {
        Some(row) if row.epoch == i64::MAX => {
            "the store was restored to an older state: this job was \
             cancelled after that; cancel it again, or submit it as a new job"
                .to_owned()
        }
        row => reason("the load", row.as_ref(), lease.epoch, lease.nonce),
    };
    tracing::error!(job = %lease.job, "{reason}");
    pause(engine, lease.job, &reason).await;
    Ok(Kept::Lost)
}

async fn row_of(
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
        Some(row) if row.epoch == epoch => format!("at epoch {epoch} of another claim"),
        Some(row) => format!("at epoch {}", row.epoch),
        None => "gone".to_owned(),
    };
    format!(
        "the store was restored to an older state: the ledger's row of {what} is {ledger}, and the store \
         claims it at epoch {epoch} (nonce {nonce:016x}); start a worker with --after-restore, then resume"
    )
}

async fn pause(engine: &Engine, job: JobId, reason: &str) {
    // Another chunk of the job may have been faster.
    if let Err(error) = engine.store().pause(job, Some(reason)).await {
        tracing::debug!(%job, %error, "not paused");
    }
}
