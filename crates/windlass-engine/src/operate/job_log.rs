//! Logs what happens to jobs and chunks: completed chunks, dead letters, and the end of a job.

use crate::execute::heartbeat::Heartbeat;
use std::time::Duration;
use windlass_connectors::Marked;
use windlass_core::{ChunkId, Counts, Job, JobId, JobStatus};
use windlass_store::{NewDeadLetter, Store};

/// What is logged about a completed chunk.
pub(crate) struct ChunkSummary {
    pub(crate) chunk: ChunkId,
    pub(crate) counts: Counts,
    /// The rows that this lease marked and updated, if the step has a mark.
    pub(crate) marked: Option<(i64, i64)>,
    /// Since it was leased.
    pub(crate) duration: Duration,
}

impl ChunkSummary {
    /// Logs the completed chunk. If a step with a mark has found nothing to do, an earlier lease or another
    /// job has updated the rows.
    pub(crate) fn log(self) {
        let ChunkSummary { chunk: ChunkId { job, number }, counts, .. } = self;
        let Counts { read, processed, skipped, dead, .. } = counts;
        let seconds = self.duration.as_secs_f64();
        match self.marked {
            None => {
                tracing::info!(%job, chunk = number, rows = read, processed, skipped, dead, seconds, "chunk completed");
            }
            Some((0, 0)) => {
                tracing::info!(%job, chunk = number, marked = 0, updated = 0, seconds, "chunk already processed");
            }
            Some((marked, updated)) => {
                tracing::info!(%job, chunk = number, rows = read, processed, skipped, dead, marked, updated, seconds, "chunk completed");
            }
        }
    }
}

/// Logs the rows that a chunk is expected to have, how many values its key columns have, and the rows that
/// are marked. Keys may be personal data, so their values are not logged.
pub(crate) fn log_marked(chunk: ChunkId, estimated_rows: i64, key: &[String], marked: &Marked) {
    let (job, chunk, rows) = (chunk.job, chunk.number, marked.rows);
    let values = marked.values.iter().zip(key);
    let keys: Vec<String> = values.map(|(values, column)| format!("{values} {column}")).collect();
    let keys = keys.join(", ");
    tracing::info!(%job, chunk, estimated_rows, keys, "chunk started");
    tracing::info!(%job, chunk, rows, "rows marked");
}

/// Logs each dead letter that was copied to the store.
pub(crate) fn log_dead_letters(chunk: ChunkId, letters: &[NewDeadLetter]) {
    let (job, chunk) = (chunk.job, chunk.number);
    for letter in letters {
        tracing::info!(%job, chunk, key = letter.key, error = letter.error, "dead letter");
    }
}

/// Logs the end of a job, if the chunks that this process has just ended were the last ones.
pub(crate) async fn log_end_by_chunk(store: &dyn Store, heartbeat: &Heartbeat, id: JobId) {
    // While this process has more chunks of the job, the job is not at its end.
    if heartbeat.has_chunk_of(id) {
        return;
    }
    if let Ok(Some(status)) = store.status(id).await
        && status.is_final()
    {
        log_ended(store, id).await;
    }
}

/// Logs the end of a job, if it has ended. Does not read the job where not even warnings are logged.
pub(crate) async fn log_ended(store: &dyn Store, id: JobId) {
    if tracing::enabled!(tracing::Level::WARN)
        && let Ok(Some(job)) = store.job(id).await
        && job.has_ended()
    {
        log_job_end(&job);
    }
}

/// Logs a job that has ended: at info, or at warn if it failed.
pub(crate) fn log_job_end(job: &Job) {
    let Job { id, job_type, status, items, chunks, error, .. } = job;
    let seconds = job.working_time(job.finished_at.unwrap_or_default());
    let seconds = seconds.map_or(0.0, |time| time.as_seconds_f64());
    if *status == JobStatus::Failed {
        let error = error.as_deref().unwrap_or_default();
        tracing::warn!(job = %id, job_type, chunks = chunks.total, failed_chunks = chunks.failed,
            processed = items.processed, skipped = items.skipped, dead = items.dead, seconds, error,
            "job failed");
    } else {
        tracing::info!(job = %id, job_type, %status, chunks = chunks.total,
            processed = items.processed, skipped = items.skipped, dead = items.dead,
            conflicts = items.conflicts, seconds, "job ended");
    }
}
