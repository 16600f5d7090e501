//! Leases, ends and hands back chunks.

use async_trait::async_trait;
use windlass_core::{ChunkStatus, Counts, JobId};
use windlass_drivers::Param;

use super::{PostgresStore, Transaction, advance, finish, params, parts, sql};
use crate::fields::Fields;
use crate::transitions::{self, JobState};
use crate::values::{QUEUED_LEASE, clean, millis};
use crate::{
    Capabilities, ChunkOutcome, ChunkRow, ChunkStore, HandBack, Lease, LeasedChunk, Progress,
    Result, StoreError, rows,
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
        // Fair shares leave slots free if a job has fewer waiting chunks than its share. If they lease nothing,
        // there is nothing, or other processes are leasing the last chunks right now.
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
            if more.is_empty() {
                break;
            }
            leased.extend(more);
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
        let (tx, rows) = match outcome {
            ChunkOutcome::Completed { .. } => self.begin_async_commit_with(sql, params).await?,
            // The ledger does not record that a chunk failed or was cancelled.
            _ => self.begin_with(sql, params).await?,
        };
        if let Some(row) = rows.first()
            && write_end(&tx, lease, progress, &outcome).await?
        {
            let job = JobState::read(row)?;
            if let ChunkOutcome::Completed { part: Some(part), .. } = &outcome {
                parts::put(&tx, lease, part).await?;
            }
            advance_job(&tx, job, progress, &outcome).await?;
            return tx.commit().await;
        }
        let repeated = check_repeated(&tx, lease, outcome.status()).await;
        tx.rollback().await?;
        repeated
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
        if !self.single_async_commit(sql, &params(false)).await?.is_empty() {
            return Ok(());
        }
        let (tx, rows) = self.begin_async_commit_with(sql, &params(true)).await?;
        let Some(row) = rows.first() else {
            tx.rollback().await?;
            return Err(StoreError::LeaseLost);
        };
        advance::advance(&tx, &mut JobState::read(row)?).await?;
        tx.commit().await
    }

    async fn release(&self, lease: Lease, progress: &Progress, back: HandBack) -> Result<()> {
        let tx = self.begin().await?;
        let mut params = progress_params(lease, progress, back.error.as_deref());
        params.extend_from_slice(params![
            i64::from(back.attempt),
            millis(back.wait),
            progress.marked
        ]);
        let released = match tx.execute(sql!("release_chunk"), &params).await? {
            0 => check_repeated(&tx, lease, ChunkStatus::Pending).await,
            _ => Ok(()),
        };
        if released.is_ok() && back.wait.is_zero() {
            tx.signal();
        }
        finish(tx, released).await
    }
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
