//! Pauses, resumes, cancels and retries jobs.

use async_trait::async_trait;
use windlass_core::{JobId, JobStatus};

use super::{PostgresStore, Transaction, advance, params, read_snapshots, sql};
use crate::transitions::{self, JobState};
use crate::{JobCommand, LifecycleStore, Result, values};

#[async_trait]
impl LifecycleStore for PostgresStore {
    async fn command(&self, job: JobId, command: JobCommand) -> Result<JobStatus> {
        let commanded = || async {
            let tx = self.begin().await?;
            let done = run(&tx, job, &command).await;
            tx.finish(done).await
        };
        self.repeat(commanded).await
    }
}

async fn run(tx: &Transaction, id: JobId, command: &JobCommand) -> Result<JobStatus> {
    let mut job = advance::lock_job(tx, id).await?.ok_or_else(|| transitions::no_job(id))?;
    let transition = transitions::command(&job, command)?;
    advance::apply(tx, &mut job, &transition).await?;
    match command {
        JobCommand::Pause { .. } | JobCommand::Resume => {}
        JobCommand::Cancel => {
            // Failed segments are reopened, so that they end with the job. A failed merge stays
            // open, since its load may still commit.
            let reopened = tx.execute(sql!("retry_segments"), params![id]).await?;
            let (merge, _) = values::merge()?;
            let segments = tx.execute(sql!(shared "cancel_segments"), params![id, merge]).await?;
            tx.execute(sql!("requeue_merge"), params![id]).await?;
            let chunks = tx.execute(sql!("cancel_chunks"), params![id]).await?;
            let segments = reopened as i64 - segments as i64;
            adjust_open(tx, &mut job, segments, -(chunks as i64)).await?;
        }
        // The chunks that failed cannot be read under the snapshot of the others any more.
        JobCommand::Retry if !job.merge_begun && read_snapshots::has_one(tx, id).await? => {
            read_snapshots::discard(tx, &mut job, 0).await?;
        }
        JobCommand::Retry => {
            let segments = tx.execute(sql!("retry_segments"), params![id]).await?;
            let chunks = tx.execute(sql!("retry_chunks"), params![id]).await?;
            adjust_open(tx, &mut job, segments as i64, chunks as i64).await?;
        }
    }
    advance::advance(tx, &mut job).await?;
    Ok(job.reported_status())
}

async fn adjust_open(
    tx: &Transaction,
    job: &mut JobState,
    segments: i64,
    chunks: i64,
) -> Result<()> {
    tx.execute(sql!(shared "adjust_open_counts"), params![job.id, segments, chunks]).await?;
    job.open_segments += segments;
    job.open_chunks += chunks;
    Ok(())
}
