//! Leases segments and commits pages of planning.

use async_trait::async_trait;
use windlass_core::{ChunkStatus, JobId};

use super::{PostgresStore, Transaction, advance, params, read_snapshots, sql};
use crate::fields::Fields;
use crate::transitions::{self, JobState, PageState};
use crate::values::{SEGMENT_LEASE, clean, millis, segment};
use crate::{
    Capabilities, HandBack, LeasedSegment, NewChunk, Page, Result, SegmentLease, SegmentRow,
    SegmentStore, StoreError, Topics, rows,
};

#[async_trait]
impl SegmentStore for PostgresStore {
    async fn segments(&self, job: JobId) -> Result<Vec<SegmentRow>> {
        self.read(sql!(shared "list_segments"), params![job], rows::segment).await
    }

    async fn lease_segments(&self, by: &Capabilities, limit: u32) -> Result<Vec<LeasedSegment>> {
        let (connections, handlers) = (by.connections.as_slice(), by.handlers.as_slice());
        let lease = millis(SEGMENT_LEASE);
        let params = params![connections, handlers, by.only_job, limit, &by.worker, lease];
        let leased = self.lease(sql!("lease_segments"), params).await?;
        leased.iter().map(rows::leased_segment).collect()
    }

    async fn commit_page(&self, page: Page) -> Result<()> {
        let run = || async {
            let tx = self.begin().await?;
            let done = write_page(&tx, &page).await;
            tx.finish(done).await
        };
        self.repeat(run).await
    }

    async fn release_segment(&self, lease: SegmentLease, back: HandBack) -> Result<()> {
        let run = || async {
            let tx = self.begin().await?;
            let done = release(&tx, lease, &back).await;
            tx.finish(done).await
        };
        self.repeat(run).await
    }

    async fn fail_segment(&self, lease: SegmentLease, error: &str) -> Result<()> {
        let run = || async {
            let tx = self.begin().await?;
            let done = fail(&tx, lease, &clean(error)).await;
            tx.finish(done).await
        };
        self.repeat(run).await
    }
}

async fn write_page(tx: &Transaction, page: &Page) -> Result<()> {
    let lease = page.lease;
    let Some(job) = advance::lock_job(tx, lease.job).await? else {
        return Err(StoreError::LeaseLost);
    };
    let params = params![lease.job, lease.segment];
    let Some(row) = tx.query_opt(sql!("lock_segment"), params).await? else {
        return Err(StoreError::LeaseLost);
    };
    if transitions::check_page(&row, page)? == PageState::Committed {
        return Ok(());
    }
    let next = row.int("next")?;
    // The statements are sent together and run in order, which saves round trips for small jobs.
    let (segments, chunks, updated, job) = tokio::join!(
        biased;
        insert_segments(tx, page, next),
        insert_chunks(tx, &job, page.segment_of_chunks(next), &page.chunks),
        update_segment(tx, page),
        add_to_job(tx, page)
    );
    segments.and(chunks).and(updated)?;
    if let Some(new) = &page.read_snapshot {
        read_snapshots::put(tx, lease.job, new).await?;
    }
    if !page.chunks.is_empty() {
        tx.signal_topics(Topics::CHUNKS);
    }
    if !page.segments.is_empty() && !page.planned {
        tx.signal_topics(Topics::SEGMENTS);
    }
    advance::advance(tx, &mut job?).await
}

async fn insert_segments(tx: &Transaction, page: &Page, next: i64) -> Result<()> {
    if page.segments.is_empty() {
        return Ok(());
    }
    let columns = page.segments.iter().map(|new| segment(&new.state, &new.range));
    let (states, ranges): (Vec<_>, Vec<_>) =
        columns.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let (states, ranges) = (states.as_slice(), ranges.as_slice());
    let status = page.status_of_segments().as_str();
    let params = params![page.lease.job, next, states, ranges, status];
    tx.execute(sql!("insert_segments"), params).await?;
    Ok(())
}

/// Adds chunks of a segment to a job, with the next numbers. The job is locked.
pub(super) async fn insert_chunks(
    tx: &Transaction,
    job: &JobState,
    segment: i64,
    chunks: &[NewChunk],
) -> Result<()> {
    if chunks.is_empty() {
        return Ok(());
    }
    let key_sets = chunks.iter().map(|chunk| Ok(serde_json::to_string(&chunk.key_set)?));
    let key_sets = key_sets.collect::<Result<Vec<_>>>()?;
    let items: Vec<_> = chunks.iter().map(|chunk| chunk.items).collect();
    let params = params![job.id, segment, job.chunks_total, key_sets.as_slice(), items];
    tx.execute(sql!("insert_chunks"), params).await?;
    Ok(())
}

async fn update_segment(tx: &Transaction, page: &Page) -> Result<()> {
    let status = if page.last { ChunkStatus::Completed } else { ChunkStatus::Processing };
    let SegmentLease { job, segment, epoch, nonce } = page.lease;
    let (state, lease) = (serde_json::to_string(&page.to)?, millis(SEGMENT_LEASE));
    let params = params![job, segment, epoch, state, status.as_str(), lease, nonce];
    tx.execute(sql!("update_segment"), params).await?;
    Ok(())
}

async fn add_to_job(tx: &Transaction, page: &Page) -> Result<JobState> {
    let chunks = page.chunks.len() as i64;
    let segments = page.opened_segments();
    let items: i64 = page.chunks.iter().map(|chunk| chunk.items).sum();
    let params = params![page.lease.job, segments, chunks, chunks, items];
    JobState::read(&tx.query_one(sql!("add_to_job"), params).await?)
}

/// Counts a segment of a job as ended.
pub(super) async fn count_ended(tx: &Transaction, job: JobId) -> Result<JobState> {
    let params = params![job, -1_i64, 0_i64, 0_i64, 0_i64];
    JobState::read(&tx.query_one(sql!("add_to_job"), params).await?)
}

async fn release(tx: &Transaction, lease: SegmentLease, back: &HandBack) -> Result<()> {
    let SegmentLease { job, segment, epoch, nonce } = lease;
    let (attempt, error) = (i64::from(back.attempt), back.error.as_deref().map(clean));
    let params = params![job, segment, epoch, attempt, error, millis(back.wait), nonce];
    if tx.execute(sql!("release_segment"), params).await? == 0 {
        check_repeated(tx, lease, ChunkStatus::Pending).await?;
    }
    if back.wait.is_zero() {
        tx.signal();
    }
    Ok(())
}

async fn fail(tx: &Transaction, lease: SegmentLease, error: &str) -> Result<()> {
    let SegmentLease { job: id, segment, epoch, nonce } = lease;
    if advance::lock_job(tx, id).await?.is_none() {
        return Err(StoreError::LeaseLost);
    }
    if tx.execute(sql!(shared "fail_segment"), params![id, segment, epoch, error, nonce]).await?
        == 0
    {
        return check_repeated(tx, lease, ChunkStatus::Failed).await;
    }
    let mut job = count_ended(tx, id).await?;
    if let Some(transition) = transitions::fail(&job, format!("planning failed: {error}")) {
        advance::apply(tx, &mut job, &transition).await?;
    }
    advance::advance(tx, &mut job).await
}

/// Succeeds if an earlier call with this lease brought the segment into this status.
pub(super) async fn check_repeated(
    tx: &Transaction,
    lease: SegmentLease,
    status: ChunkStatus,
) -> Result<()> {
    let row = tx.query_opt(sql!(shared "segment_state"), params![lease.job, lease.segment]).await?;
    let made_before = row.map(|row| transitions::is_segment_at(&row, lease, status)).transpose()?;
    transitions::repeated(made_before.unwrap_or_default())
}
