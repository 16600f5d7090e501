//! The end of a chunk that cannot be read under the snapshot of its job.

use crate::EngineError;
use crate::execute::chunk_runner::{ChunkRunner, LeaseOutcome};
use crate::job_context::JobContext;
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_connectors::ConnectorError;
use windlass_drivers::ErrorClass;
use windlass_store::Store;

/// The time between two questions whether the snapshot is still held.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long the chunk is released after that.
const WAIT: Duration = Duration::from_secs(1);

impl ChunkRunner {
    /// Whether an error says that the snapshot of the job is gone, or the replica that has it.
    pub(super) fn is_snapshot_lost(&self, error: &EngineError) -> bool {
        use ConnectorError::{SnapshotLost, TableRewritten};
        match error {
            EngineError::Data(SnapshotLost(_) | TableRewritten) => true,
            EngineError::Data(error) => {
                let on_replica = self.job.reading.is_some_and(|reading| reading.on_replica);
                on_replica && error.class() == Some(ErrorClass::Connection)
            }
            _ => false,
        }
    }

    /// Releases the chunk without counting an attempt if the snapshot is lost: the job is planned again, and this
    /// chunk is deleted. If its holder confirms the snapshot after the failure, it is this process that cannot
    /// reach it, and the attempt counts.
    pub(super) async fn end_unread(self, error: EngineError) -> LeaseOutcome {
        let chunk = self.lease().chunk;
        if matches!(error, EngineError::Data(ConnectorError::TableRewritten)) {
            self.job.report_rewritten(self.lease.store()).await;
        } else if self.is_confirmed().await {
            return self.fail(unreachable(error)).await;
        }
        tracing::debug!(%chunk, %error, "chunk is released, since the read snapshot of its job is lost");
        self.release(None, WAIT).await
    }

    /// Whether the holder of the snapshot renews its lease from now on. Waits until it does, or until the snapshot
    /// is not held any more.
    async fn is_confirmed(&self) -> bool {
        let (job, number) = (self.lease().chunk.job, self.leased.key_set.snapshot);
        let (store, since) = (self.lease.store(), Instant::now());
        let mut first = None;
        while since.elapsed() < self.job.definition().chunk.lease && !self.must_hand_back() {
            let row = store.read_snapshot(job).await.ok().flatten();
            let held = row.filter(|row| Some(row.number) == number).and_then(|row| row.lease_until);
            let Some(until) = held else { return false };
            match until.cmp(first.get_or_insert(until)) {
                // Its loss was reported.
                Ordering::Less => return false,
                Ordering::Greater => return true,
                Ordering::Equal => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
        false
    }
}

/// Why a chunk cannot be read under a snapshot that exists.
fn unreachable(error: EngineError) -> EngineError {
    let EngineError::Data(ConnectorError::SnapshotLost(reason)) = error else { return error };
    let message = format!(
        "{reason}; the worker that holds the snapshot has confirmed it since, so this worker reaches another server \
         by the same URL; let all workers reach one server, or set source.consistency = \"chunk\""
    );
    EngineError::Data(ConnectorError::SnapshotLost(message))
}

impl JobContext {
    /// Reports that the source's table was rewritten, so that the job is read again under a new snapshot.
    pub(crate) async fn report_rewritten(&self, store: &Arc<dyn Store>) {
        let (job, Some(reading)) = (self.snapshot.id, self.reading) else { return };
        tracing::warn!(%job, "the table was rewritten, so the read snapshot of the job is lost");
        if let Err(error) = store.expire_read_snapshot(job, reading.number).await {
            tracing::debug!(%job, %error, "failed to record that the read snapshot is lost");
        }
    }
}
