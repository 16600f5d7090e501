//! Logs what happens to jobs and chunks: completed chunks, dead letters, and the end of a job.

use crate::execute::heartbeat::Heartbeat;
use std::time::Duration;
use windlass_core::{ChunkId, Counts, Job, JobId, JobStatus};
use windlass_store::{NewDeadLetter, Store};

/// Dead letters that are logged one by one in each group that is copied to the store.
const MAX_LOGGED_LETTERS: usize = 10;

/// Logs a completed chunk.
pub(crate) fn log_chunk(chunk: ChunkId, counts: Counts, duration: Duration) {
    let Counts { read, processed, skipped, dead, .. } = counts;
    let (job, number, seconds) = (chunk.job, chunk.number, duration.as_secs_f64());
    tracing::info!(%job, chunk = number, rows = read, processed, skipped, dead, seconds, "chunk completed");
}

/// Logs dead letters that were copied to the store.
pub(crate) fn log_dead_letters(chunk: ChunkId, letters: &[NewDeadLetter]) {
    let (job, chunk) = (chunk.job, chunk.number);
    for letter in letters.iter().take(MAX_LOGGED_LETTERS) {
        tracing::info!(%job, chunk, key = letter.key, error = letter.error, "dead letter");
    }
    if let Some(more) = letters.len().checked_sub(MAX_LOGGED_LETTERS).filter(|more| *more > 0) {
        tracing::info!(%job, chunk, more, "more dead letters");
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
