//! Leases, ends and hands back chunks.

use async_trait::async_trait;
use windlass_core::{ChunkStatus, Counts, JobId, JobStatus};
use windlass_drivers::{Param, Row};

use super::{PostgresStore, Transaction, advance, completed_jobs, params, parts, segments, sql};
use crate::fields::Fields;
use crate::transitions::{self, JobState};
use crate::values::{QUEUED_LEASE, clean, millis};
use crate::{
    Capabilities, ChunkOutcome, ChunkRow, ChunkStore, HandBack, Lease, LeasedChunk, Progress,
    Result, Split, StoreError, Topics, rows,
};

#[async_trait]
impl ChunkStore for PostgresStore {
    async fn chunks(
        &self,
        job: JobId,
        status: Option<ChunkStatus>,
        after: Option<i64>,
        limit: u32,
    ) -> Result<Vec<ChunkRow>> {
        let status = status.map(|status| status.as_str());
        self.read(sql!("list_chunks"), params![job, status, after, limit], rows::chunk).await
    }

    async fn lease_chunks(&self, by: &Capabilities, limit: u32) -> Result<Vec<LeasedChunk>> {
        let (connections, handlers) = (by.connections.as_slice(), by.handlers.as_slice());
        let above = by.above_priority.map(i64::from);
        let except = by.except.as_slice();
        let mut leased = Vec::new();
        // Fair shares leave slots free if a job has fewer waiting chunks than its share, which others may have. If they
        // lease nothing, there is nothing, or other processes are leasing the last chunks right now.
        for fair in [true, false] {
            let wanted = limit - leased.len() as u32;
            if wanted == 0 {
                break;
            }
            let (jobs, bounds) = self.lease_hint.get();
            let params = params![
                connections,
                handlers,
                by.only_job,
                wanted,
                &by.worker,
                above,
                jobs,
                bounds,
                except,
                fair,
                millis(QUEUED_LEASE),
            ];
            let rows = self.lease(sql!("lease_chunks"), params).await?;
            let more: Vec<_> = rows.iter().map(rows::leased_chunk).collect::<Result<_>>()?;
            self.lease_hint.learn(&more, above.is_none());
            leased.extend(more);
            let Some(row) = rows.first() else { break };
            if !row.flag("may_have_more")? {
                break;
            }
        }
        Ok(leased)
    }

    async fn end_chunk(
        &self,
        lease: Lease,
        progress: &Progress,
        outcome: ChunkOutcome,
    ) -> Result<()> {
        // The first statement locks the job and counts the chunk as ended. If the lease turns out to
        // be lost, the rollback undoes that.
        let (sql, params) = (sql!("count_ended_chunk"), params![lease.chunk.job, 1_i64]);
        let run = || async {
            let (tx, rows) = match outcome {
                ChunkOutcome::Completed { .. } => self.begin_async_commit_with(sql, params).await?,
                // The ledger does not record that a chunk failed or was cancelled.
                _ => self.begin_with(sql, params).await?,
            };
            let ended = end(&tx, rows.first(), lease, progress, &outcome).await;
            tx.finish(ended).await
        };
        self.repeat(run).await
    }

    async fn complete_together(&self, chunks: &[(Lease, Progress)]) -> Result<()> {
        let Some((first, _)) = chunks.first() else { return Ok(()) };
        let count = |of: fn(&Counts) -> i64| -> Vec<i64> {
            chunks.iter().map(|(_, progress)| of(&progress.counts)).collect()
        };
        let cursors: Vec<_> =
            chunks.iter().map(|(_, progress)| progress.cursor.to_text()).collect();
        let columns: &[Param<'_>] = params![
            first.chunk.job,
            chunks.iter().map(|(lease, _)| lease.chunk.number).collect::<Vec<_>>(),
            chunks.iter().map(|(lease, _)| lease.epoch).collect::<Vec<_>>(),
            cursors.as_slice(),
            count(|counts| counts.read),
            count(|counts| counts.processed),
            count(|counts| counts.skipped),
            count(|counts| counts.dead),
            count(|counts| counts.conflicts),
            chunks.len() as i64,
        ];
        let sql = sql!("complete_chunks");
        let nonces: Vec<_> = chunks.iter().map(|(lease, _)| lease.nonce).collect();
        let marked: Vec<_> = chunks.iter().map(|(_, progress)| progress.marked).collect();
        let params = |may_be_last: bool| {
            [columns, params![may_be_last, nonces.clone(), marked.clone()]].concat()
        };
        // A group with the first chunk of its job may be all of a small job.
        let may_be_all = chunks.iter().any(|(lease, _)| lease.chunk.number == 0);
        if !may_be_all && !self.single_async_commit(sql, &params(false)).await?.is_empty() {
            return Ok(());
        }
        let params = params(true);
        let run = || async {
            let (tx, rows) = self.begin_async_commit_with(sql, &params).await?;
            let ended = match rows.first().map(JobState::read) {
                Some(Ok(mut job)) => advance::advance(&tx, &mut job).await,
                Some(Err(error)) => Err(error),
                None => Err(StoreError::LeaseLost),
            };
            tx.finish(ended).await
        };
        self.repeat(run).await
    }

    async fn complete_jobs(&self, chunks: &[(Lease, Progress)]) -> Result<Vec<bool>> {
        completed_jobs::complete(self, chunks).await
    }

    async fn split(&self, lease: Lease, progress: &Progress, split: &Split) -> Result<bool> {
        let (sql, params) = (sql!("count_ended_chunk"), params![lease.chunk.job, 1_i64]);
        let run = || async {
            let (tx, rows) = self.begin_with(sql, params).await?;
            let done = end_and_split(&tx, rows.first(), lease, progress, split).await;
            tx.finish(done).await
        };
        self.repeat(run).await
    }

    async fn release(&self, lease: Lease, progress: &Progress, back: HandBack) -> Result<()> {
        let run = || async {
            let tx = self.begin().await?;
            let done = release(&tx, lease, progress, &back).await;
            tx.finish(done).await
        };
        self.repeat(run).await
    }
}

/// Ends a chunk whose job was counted down in `counted`.
async fn end(
    tx: &Transaction,
    counted: Option<&Row>,
    lease: Lease,
    progress: &Progress,
    outcome: &ChunkOutcome,
) -> Result<()> {
    if let Some(row) = counted
        && write_end(tx, lease, progress, outcome).await?
    {
        let job = JobState::read(row)?;
        if let Some(more) = outcome.more_items() {
            let (job, number) = (lease.chunk.job, lease.chunk.number);
            let params = params![job, number, more];
            tx.execute(sql!(shared "correct_chunk_items"), params).await?;
            tx.execute(sql!(shared "correct_job_items"), params![job, more]).await?;
        }
        if let ChunkOutcome::Completed { part: Some(part), .. } = outcome {
            parts::put(tx, lease, part).await?;
        }
        return advance_job(tx, job, progress, outcome).await;
    }
    tx.undo();
    check_repeated(tx, lease, outcome.status()).await
}

/// Completes a chunk whose job was counted down in `counted`, and inserts what remains of it. Returns whether the
/// job takes it.
async fn end_and_split(
    tx: &Transaction,
    counted: Option<&Row>,
    lease: Lease,
    progress: &Progress,
    split: &Split,
) -> Result<bool> {
    let outcome = ChunkOutcome::Completed { settled: Vec::new(), part: None, more_items: 0 };
    let ended = match counted {
        Some(row) if write_end(tx, lease, progress, &outcome).await? => Some(JobState::read(row)?),
        _ => None,
    };
    let Some(job) = ended else {
        tx.undo();
        return check_repeated(tx, lease, ChunkStatus::Completed).await.map(|()| true);
    };
    if job.status != JobStatus::Processing {
        tx.undo();
        return Ok(false);
    }
    let job = add_rest(tx, lease, &job, split).await?;
    advance_job(tx, job, progress, &outcome).await?;
    Ok(true)
}

async fn release(
    tx: &Transaction,
    lease: Lease,
    progress: &Progress,
    back: &HandBack,
) -> Result<()> {
    let mut params = progress_params(lease, progress, back.error.as_deref());
    let (attempt, wait) = (i64::from(back.attempt), millis(back.wait));
    params.extend_from_slice(params![attempt, wait, progress.marked]);
    if tx.execute(sql!("release_chunk"), &params).await? == 0 {
        check_repeated(tx, lease, ChunkStatus::Pending).await?;
    }
    if back.wait.is_zero() {
        tx.signal();
    }
    Ok(())
}

/// Shortens a chunk and inserts what remains of it as new chunks.
async fn add_rest(
    tx: &Transaction,
    lease: Lease,
    job: &JobState,
    split: &Split,
) -> Result<JobState> {
    let kept = serde_json::to_string(&split.kept.key_set)?;
    let params = params![job.id, lease.chunk.number, kept, split.kept.items];
    let segment = tx.query_one(sql!(shared "shorten_chunk"), params).await?.int("segment")?;
    segments::insert_chunks(tx, job, segment, &split.rest).await?;
    let added = split.rest.len() as i64;
    let params = params![job.id, 0_i64, added, added, 0_i64];
    let job = JobState::read(&tx.query_one(sql!("add_to_job"), params).await?)?;
    tx.signal_topics(Topics::CHUNKS);
    Ok(job)
}

async fn write_end(
    tx: &Transaction,
    lease: Lease,
    progress: &Progress,
    outcome: &ChunkOutcome,
) -> Result<bool> {
    let mut params = progress_params(lease, progress, outcome.error());
    params.extend_from_slice(params![outcome.status().as_str(), progress.marked]);
    Ok(tx.execute(sql!("end_chunk"), &params).await? > 0)
}

/// The first parameters of statements that write the progress of a chunk.
fn progress_params(lease: Lease, progress: &Progress, error: Option<&str>) -> Vec<Param<'static>> {
    let Counts { read, processed, skipped, dead, conflicts, .. } = progress.counts;
    let (chunk, cursor) = (lease.chunk, progress.cursor.to_text());
    let of_lease = params![chunk.job, chunk.number, lease.epoch, lease.nonce];
    let of_work = params![cursor, read, processed, skipped, dead, conflicts, error.map(clean)];
    [of_lease.as_slice(), of_work].concat()
}

/// Settles dead letters after the end of a chunk, and fails, pauses or ends the job.
async fn advance_job(
    tx: &Transaction,
    mut job: JobState,
    progress: &Progress,
    outcome: &ChunkOutcome,
) -> Result<()> {
    let settled = outcome.settled();
    if job.redrive && !settled.is_empty() {
        tx.execute(sql!("settle_dead_letters"), params![job.id, settled]).await?;
    }
    if let ChunkOutcome::Failed { error, fail_job: true, .. } = outcome
        && let Some(transition) = transitions::fail(&job, error.clone())
    {
        advance::apply(tx, &mut job, &transition).await?;
    }
    if transitions::has_budget(&job, progress.counts.dead) {
        let dead = tx.query_one(sql!("count_dead_items"), params![job.id]).await?.int("dead")?;
        if let Some(transition) = transitions::check_budget(&job, dead) {
            advance::apply(tx, &mut job, &transition).await?;
            tx.execute(sql!("record_exceeded_budget"), params![job.id]).await?;
        }
    }
    advance::advance(tx, &mut job).await
}

/// Succeeds if an earlier call with this lease brought the chunk into this status.
async fn check_repeated(tx: &Transaction, lease: Lease, status: ChunkStatus) -> Result<()> {
    let params = params![lease.chunk.job, lease.chunk.number];
    let row = tx.query_opt(sql!(shared "chunk_state"), params).await?;
    let made_before = row.map(|row| transitions::is_chunk_at(&row, lease, status)).transpose()?;
    transitions::repeated(made_before.unwrap_or_default())
}
