//! Logs the end of a job with its counts and duration.

use windlass_core::{Job, JobStatus};

/// Logs a job that has ended: at info, or at warn if it failed.
pub(crate) fn log_job_end(job: &Job) {
    let Job { id, job_type, status, items, chunks, error, .. } = job;
    let begun = job.started_at.unwrap_or(job.created_at);
    let seconds = job.finished_at.map(|end| (end - begun).as_seconds_f64());
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
