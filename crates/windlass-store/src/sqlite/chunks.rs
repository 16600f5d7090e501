//! Leases, ends and hands back chunks.

use async_trait::async_trait;
use windlass_core::{ChunkStatus, JobId, JobStatus};
use windlass_drivers::rusqlite::types::Value;
use windlass_drivers::rusqlite::{Row, params, params_from_iter};

use super::transaction::Transaction;
use super::{SqliteStore, advance, parts, segments, sql};
use crate::fields::Fields;
use crate::transitions::{self, JobState};
use crate::values::{QUEUED_LEASE, clean, millis};
use crate::{
    Capabilities, ChunkOutcome, ChunkRow, ChunkStore, HandBack, Lease, LeasedChunk, Progress,
    Result, Split, rows,
};

#[async_trait]
impl ChunkStore for SqliteStore {
    async fn chunks(
        &self,
        job: JobId,
        status: Option<ChunkStatus>,
        after: Option<i64>,
        limit: u32,
    ) -> Result<Vec<ChunkRow>> {
        let params = (job.to_string(), status.map(|status| status.as_str()), after, limit);
        self.query(sql!("list_chunks"), params, |row| rows::chunk(row)).await
    }

    async fn lease_chunks(&self, by: &Capabilities, limit: u32) -> Result<Vec<LeasedChunk>> {
        let by = by.clone();
        let lease = move |tx: &Transaction<'_>| {
            let jobs = leasable_jobs(tx, &by, "chunks")?;
            let mut leased = Vec::new();
            // Fair shares leave slots free if a job has fewer waiting chunks than its share.
            for fair in [true, false] {
                for peers in jobs.chunk_by(|one, other| one.priority == other.priority) {
                    let wanted = i64::from(limit) - leased.len() as i64;
                    if wanted == 0 {
                        break;
                    }
                    let shares = match fair && peers.len() > 1 {
                        true => shares(tx, peers, wanted)?,
                        false => peers.iter().map(|job| (job.id.clone(), wanted)).collect(),
                    };
                    for (job, share) in shares {
                        let wanted = i64::from(limit) - leased.len() as i64;
                        leased.extend(lease_of(tx, &by, &job, share.min(wanted))?);
                    }
                    // The rest goes to this priority before a lower one.
                    if fair && !leased.is_empty() {
                        break;
                    }
                }
            }
            Ok(leased)
        };
        self.write(lease).await
    }

    async fn end_chunk(
        &self,
        lease: Lease,
        progress: &Progress,
        outcome: ChunkOutcome,
    ) -> Result<()> {
        let progress = progress.clone();
        self.write(move |tx| end(tx, lease, &progress, &outcome)).await
    }

    async fn complete_together(&self, chunks: &[(Lease, Progress)]) -> Result<()> {
        let chunks = chunks.to_vec();
        let complete = move |tx: &Transaction<'_>| {
            for (lease, _) in &chunks {
                check_at(tx, *lease, ChunkStatus::Processing)?;
            }
            let completed =
                ChunkOutcome::Completed { settled: Vec::new(), part: None, more_items: 0 };
            chunks.iter().try_for_each(|(lease, progress)| end(tx, *lease, progress, &completed))
        };
        self.write(complete).await
    }

    async fn split(&self, lease: Lease, progress: &Progress, split: &Split) -> Result<bool> {
        let (progress, split) = (progress.clone(), split.clone());
        self.write(move |tx| end_split(tx, lease, &progress, &split)).await
    }

    async fn release(&self, lease: Lease, progress: &Progress, back: HandBack) -> Result<()> {
        let mut params = progress_params(lease, progress, back.error.as_deref());
        let more =
            [i64::from(back.attempt).into(), millis(back.wait).into(), progress.marked.into()];
        params.extend(more);
        let release = move |tx: &Transaction<'_>| {
            if tx.execute(sql!("release_chunk"), params_from_iter(params))? == 0 {
                check_at(tx, lease, ChunkStatus::Pending)?;
            }
            if back.wait.is_zero() { tx.signal() } else { Ok(()) }
        };
        self.write(release).await
    }
}

/// Leases at most this many chunks of a job.
fn lease_of(
    tx: &Transaction<'_>,
    by: &Capabilities,
    job: &str,
    wanted: i64,
) -> Result<Vec<LeasedChunk>> {
    if wanted <= 0 {
        return Ok(Vec::new());
    }
    let free = tx.query_one(sql!("free_slots"), [job], |row| row.opt_int("free"))?;
    let wanted = free.map_or(wanted, |free| wanted.min(free.max(0)));
    let chunks = tx.query(sql!("leasable_chunks"), params![job, wanted], |row| {
        Ok((row.int("number")?, row.flag("lost")?))
    })?;
    if !chunks.is_empty() {
        tx.execute(sql!("start_job"), [job])?;
    }
    let lease = |(number, lost): (i64, bool)| {
        let params = params![job, number, by.worker, lost, millis(QUEUED_LEASE)];
        tx.query_one(sql!("lease_chunk"), params, |row| rows::leased_chunk(row))
    };
    chunks.into_iter().map(lease).collect()
}

/// How many of the wanted chunks each job may have, so that all have the same number in progress
/// afterwards. The jobs with the fewest in progress come first.
fn shares(tx: &Transaction<'_>, peers: &[LeasableJob], wanted: i64) -> Result<Vec<(String, i64)>> {
    let mut jobs = Vec::new();
    for job in peers.iter().take(MAX_PEERS) {
        let next =
            tx.query(sql!("leasable_chunks"), params![job.id, 1], |row| row.int("number"))?;
        if !next.is_empty() {
            let busy = tx.query_one(sql!("busy_chunks"), [&job.id], |row| row.int("busy"))?;
            jobs.push((job.id.clone(), busy));
        }
    }
    jobs.sort_by_key(|(_, busy)| *busy);
    // The level that the first k jobs reach with the wanted chunks; the lowest one counts.
    let (mut level, mut sum) = (i64::MAX, wanted);
    for ((_, busy), count) in jobs.iter().zip(1..) {
        sum += busy;
        level = level.min((sum + count - 1) / count);
    }
    Ok(jobs.into_iter().map(|(job, busy)| (job, level - busy)).collect())
}

/// The most jobs that share slots. The others wait until these have no more chunks.
const MAX_PEERS: usize = 64;

/// A job of which chunks or segments can be leased.
pub(super) struct LeasableJob {
    pub(super) id: String,
    priority: i64,
}

/// The jobs of which this process can lease chunks or segments, in the order of leasing.
pub(super) fn leasable_jobs(
    tx: &Transaction<'_>,
    by: &Capabilities,
    what: &str,
) -> Result<Vec<LeasableJob>> {
    let connections = serde_json::to_string(&by.connections)?;
    let handlers = serde_json::to_string(&by.handlers)?;
    let only_job = by.only_job.map(|id| id.to_string());
    let except = serde_json::to_string(&by.except)?;
    let params = params![connections, handlers, only_job, what, by.above_priority, except];
    tx.query(sql!("leasable_jobs"), params, |row| {
        Ok(LeasableJob { id: row.text("id")?, priority: row.int("priority")? })
    })
}

fn end(
    tx: &Transaction<'_>,
    lease: Lease,
    progress: &Progress,
    outcome: &ChunkOutcome,
) -> Result<()> {
    if !write_end(tx, lease, progress, outcome)? {
        return check_at(tx, lease, outcome.status());
    }
    let id = [lease.chunk.job.to_string()];
    let job = tx.query_one(sql!("count_ended_chunk"), id, |row| JobState::read(row))?;
    if let Some(more) = outcome.more_items() {
        let job = lease.chunk.job.to_string();
        let params = params![job, lease.chunk.number, more];
        tx.execute(sql!(shared "correct_chunk_items"), params)?;
        tx.execute(sql!(shared "correct_job_items"), params![job, more])?;
    }
    if let ChunkOutcome::Completed { part: Some(part), .. } = outcome {
        parts::put(tx, lease, part)?;
    }
    advance_job(tx, job, progress, outcome)
}

fn end_split(
    tx: &Transaction<'_>,
    lease: Lease,
    progress: &Progress,
    split: &Split,
) -> Result<bool> {
    if check_at(tx, lease, ChunkStatus::Processing).is_err() {
        return check_at(tx, lease, ChunkStatus::Completed).map(|()| true);
    }
    let id = lease.chunk.job.to_string();
    let job = advance::lock_job(tx, lease.chunk.job)?;
    let Some(job) = job.filter(|job| job.status == JobStatus::Processing) else {
        return Ok(false);
    };
    let kept = serde_json::to_string(&split.kept.key_set)?;
    let params = params![id, lease.chunk.number, kept, split.kept.items];
    let segment = tx.query_one(sql!(shared "shorten_chunk"), params, |row| row.int("segment"))?;
    segments::insert_chunks(tx, &job, segment, &split.rest)?;
    let added = split.rest.len() as i64;
    let params = params![id, 0, added, added, 0];
    tx.query_one(sql!("add_to_job"), params, |row| JobState::read(row))?;
    tx.signal()?;
    end(
        tx,
        lease,
        progress,
        &ChunkOutcome::Completed { settled: Vec::new(), part: None, more_items: 0 },
    )?;
    Ok(true)
}

fn write_end(
    tx: &Transaction<'_>,
    lease: Lease,
    progress: &Progress,
    outcome: &ChunkOutcome,
) -> Result<bool> {
    let mut params = progress_params(lease, progress, outcome.error());
    params.extend([outcome.status().as_str().to_owned().into(), progress.marked.into()]);
    Ok(tx.execute(sql!("end_chunk"), params_from_iter(params))? > 0)
}

/// The first parameters of statements that write the progress of a chunk.
fn progress_params(lease: Lease, progress: &Progress, error: Option<&str>) -> Vec<Value> {
    let (chunk, counts) = (lease.chunk, progress.counts);
    let mut params: Vec<Value> = vec![chunk.job.to_string().into(), chunk.number.into()];
    params.extend([lease.epoch, lease.nonce].map(Value::from));
    params.push(progress.cursor.to_text().into());
    let counts = [counts.read, counts.processed, counts.skipped, counts.dead, counts.conflicts];
    params.extend(counts.map(Value::from));
    params.push(error.map(clean).into());
    params
}

/// Settles dead letters after the end of a chunk, and fails, pauses or ends the job.
fn advance_job(
    tx: &Transaction<'_>,
    mut job: JobState,
    progress: &Progress,
    outcome: &ChunkOutcome,
) -> Result<()> {
    let id = job.id.to_string();
    let settled = outcome.settled();
    if job.redrive && !settled.is_empty() {
        tx.execute(sql!("settle_dead_letters"), params![id, serde_json::to_string(settled)?])?;
    }
    if let ChunkOutcome::Failed { error, fail_job: true, .. } = outcome
        && let Some(transition) = transitions::fail(&job, error.clone())
    {
        advance::apply(tx, &mut job, &transition)?;
    }
    if transitions::has_budget(&job, progress.counts.dead) {
        let dead = tx.query_one(sql!("count_dead_items"), [&id], |row| row.int("dead"))?;
        if let Some(transition) = transitions::check_budget(&job, dead) {
            advance::apply(tx, &mut job, &transition)?;
            tx.execute(sql!("record_exceeded_budget"), [&id])?;
        }
    }
    advance::advance(tx, &mut job)
}

/// Succeeds if this lease brought the chunk into this status.
fn check_at(tx: &Transaction<'_>, lease: Lease, status: ChunkStatus) -> Result<()> {
    let params = params![lease.chunk.job.to_string(), lease.chunk.number];
    let read = |row: &Row<'_>| transitions::is_chunk_at(row, lease, status);
    let is_at = tx.query_opt(sql!(shared "chunk_state"), params, read)?;
    transitions::repeated(is_at.unwrap_or_default())
}
