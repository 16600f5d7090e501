//! The context of a job that is read under a snapshot: the server that has the snapshot, and how to read under it.

use crate::Result;
use crate::engine::Engine;
use crate::job_context::{JobContext, Reading};
use std::sync::Arc;
use windlass_connectors::{Connection, ReadSnapshot};
use windlass_core::JobId;
use windlass_store::ReadSnapshotRow;

/// The name of the connection itself among its servers. A replica has the name of its URL.
pub(super) const PRIMARY: &str = "primary";

/// Contexts that are cached. Processes seldom read more jobs at once.
const MAX_CONTEXTS: usize = 64;

impl Engine {
    /// The context for reading a job under its snapshot of this number. `None` if that snapshot is not held any
    /// more, or if this process cannot reach its server.
    pub(crate) async fn context_under(
        &self,
        id: JobId,
        number: i64,
    ) -> Result<Option<Arc<JobContext>>> {
        let job = self.context(id).await?;
        if let Some(known) = self.shared.reading.lock().await.get(&id)
            && known.reading.is_some_and(|reading| reading.number == number)
            && known.resolved_at == job.resolved_at
        {
            return Ok(Some(known.clone()));
        }
        let row = self.store().read_snapshot(id).await?;
        let Some(row) = row.filter(|row| row.number == number && row.lease_until.is_some()) else {
            return Ok(None);
        };
        let Some(context) = self.under(&job, row).await? else { return Ok(None) };
        let context = Arc::new(context);
        let mut contexts = self.shared.reading.lock().await;
        if contexts.len() >= MAX_CONTEXTS {
            contexts.clear();
        }
        contexts.insert(id, context.clone());
        Ok(Some(context))
    }

    /// The context for planning a segment of a job: under its snapshot, if it has one.
    pub(super) async fn context_of_segment(&self, id: JobId) -> Result<Option<Arc<JobContext>>> {
        let job = self.context(id).await?;
        if !job.definition().wants_snapshot() {
            return Ok(Some(job));
        }
        match self.store().read_snapshot(id).await? {
            Some(row) if row.lease_until.is_some() => self.context_under(id, row.number).await,
            _ => Ok(Some(job)),
        }
    }

    /// Reads a job under this snapshot. `None` if this process has no connection to its server.
    async fn under(&self, job: &JobContext, row: ReadSnapshotRow) -> Result<Option<JobContext>> {
        let ReadSnapshotRow { number, server, name, fingerprint, .. } = row;
        let connection = &job.definition().source.connection;
        let opened = match self.replicas(connection) {
            _ if server == PRIMARY => self.connection(connection)?.clone(),
            Some(replicas) if let Some(replica) = replicas.server(&server).await => replica?,
            _ => {
                tracing::warn!(job = %job.snapshot.id, "the job is read under a snapshot of {server}, which is no replica of `{connection}` in the configuration of this process");
                return Ok(None);
            }
        };
        let reading = Reading { number, on_replica: server != PRIMARY };
        Ok(Some(job.under(opened, ReadSnapshot { name, fingerprint }, reading)))
    }
}

impl JobContext {
    /// The context with all reads under a snapshot of this server.
    pub(super) fn under(
        &self,
        server: Arc<dyn Connection>,
        snapshot: ReadSnapshot,
        reading: Reading,
    ) -> JobContext {
        let mut job = self.clone();
        job.scope.read_snapshot = Some(snapshot);
        (job.source, job.fan_in) = (server.clone(), server);
        job.reading = Some(reading);
        job
    }
}
