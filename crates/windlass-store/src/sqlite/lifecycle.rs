//! Pauses, resumes, cancels and retries jobs.

use async_trait::async_trait;
use windlass_core::{JobId, JobStatus};
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, advance, read_snapshots, sql};
use crate::transitions::{self, JobState};
use crate::{JobCommand, LifecycleStore, Result, values};

#[async_trait]
impl LifecycleStore for SqliteStore {
    async fn command(&self, job: JobId, command: JobCommand) -> Result<JobStatus> {
        self.write(move |tx| run(tx, job, &command)).await
    }
}

fn run(tx: &Transaction<'_>, id: JobId, command: &JobCommand) -> Result<JobStatus> {
    let mut job = advance::lock_job(tx, id)?.ok_or_else(|| transitions::no_job(id))?;
    let transition = transitions::command(&job, command)?;
    advance::apply(tx, &mut job, &transition)?;
    let id = id.to_string();
    match command {
        JobCommand::Pause { .. } | JobCommand::Resume => {}
        JobCommand::Cancel => {
            // Failed segments are reopened, so that they end with the job. A failed merge stays
            // open, since its load may still commit.
            let reopened = tx.execute(sql!("retry_segments"), [&id])?;
            let (merge, _) = values::merge()?;
            let segments = tx.execute(sql!(shared "cancel_segments"), [&id, &merge])?;
            tx.execute(sql!("requeue_merge"), [&id])?;
            let chunks = tx.execute(sql!("cancel_chunks"), [&id])?;
            let segments = reopened as i64 - segments as i64;
            adjust_open(tx, &mut job, segments, -(chunks as i64))?;
        }
        // The chunks that failed cannot be read under the snapshot of the others any more.
        JobCommand::Retry if !job.merge_begun && read_snapshots::has_one(tx, job.id)? => {
            read_snapshots::discard(tx, &mut job, 0)?;
        }
        JobCommand::Retry => {
            let segments = tx.execute(sql!("retry_segments"), [&id])?;
            let chunks = tx.execute(sql!("retry_chunks"), [&id])?;
            adjust_open(tx, &mut job, segments as i64, chunks as i64)?;
        }
    }
    advance::advance(tx, &mut job)?;
    Ok(job.reported_status())
}

fn adjust_open(tx: &Transaction<'_>, job: &mut JobState, segments: i64, chunks: i64) -> Result<()> {
    tx.execute(sql!(shared "adjust_open_counts"), params![job.id.to_string(), segments, chunks])?;
    job.open_segments += segments;
    job.open_chunks += chunks;
    Ok(())
}
