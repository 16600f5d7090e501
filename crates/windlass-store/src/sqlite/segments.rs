//! Leases segments and commits pages of planning.

use async_trait::async_trait;
use windlass_core::{ChunkStatus, JobId};
use windlass_drivers::rusqlite::{Row, params};

use super::transaction::Transaction;
use super::{SqliteStore, advance, chunks, read_snapshots, sql};
use crate::fields::Fields;
use crate::transitions::{self, JobState, PageState};
use crate::values::{SEGMENT_LEASE, clean, millis, segment};
use crate::{
    Capabilities, HandBack, LeasedSegment, NewChunk, Page, Result, SegmentLease, SegmentRow,
    SegmentStore, StoreError, rows,
};

#[async_trait]
impl SegmentStore for SqliteStore {
    async fn segments(&self, job: JobId) -> Result<Vec<SegmentRow>> {
        self.query(sql!(shared "list_segments"), [job.to_string()], |row| rows::segment(row)).await
    }

    async fn lease_segments(&self, by: &Capabilities, limit: u32) -> Result<Vec<LeasedSegment>> {
        let by = by.clone();
        let lease = move |tx: &Transaction<'_>| {
            let mut leased = Vec::new();
            for job in chunks::leasable_jobs(tx, &by, "segments")?.into_iter().map(|job| job.id) {
                let wanted = i64::from(limit) - leased.len() as i64;
                if wanted == 0 {
                    break;
                }
                let params = params![job, wanted];
                let numbers =
                    tx.query(sql!("leasable_segments"), params, |row| row.int("number"))?;
                for number in &numbers {
                    let params = params![job, number, by.worker, millis(SEGMENT_LEASE)];
                    let read = |row: &Row<'_>| rows::leased_segment(row);
                    leased.push(tx.query_one(sql!("lease_segment"), params, read)?);
                }
                if !numbers.is_empty() {
                    tx.execute(sql!("start_job"), [&job])?;
                }
            }
            Ok(leased)
        };
        self.write(lease).await
    }

    async fn commit_page(&self, page: Page) -> Result<()> {
        self.write(move |tx| write_page(tx, &page)).await
    }

    async fn release_segment(&self, lease: SegmentLease, back: HandBack) -> Result<()> {
        let release = move |tx: &Transaction<'_>| {
            let SegmentLease { job, segment, epoch, nonce } = lease;
            let (attempt, error) = (i64::from(back.attempt), back.error.as_deref().map(clean));
            let (job, wait) = (job.to_string(), millis(back.wait));
            let params = params![job, segment, epoch, attempt, error, wait, nonce];
            if tx.execute(sql!("release_segment"), params)? == 0 {
                check_repeated(tx, lease, ChunkStatus::Pending)?;
            }
            if back.wait.is_zero() { tx.signal() } else { Ok(()) }
        };
        self.write(release).await
    }

    async fn fail_segment(&self, lease: SegmentLease, error: &str) -> Result<()> {
        let error = clean(error);
        self.write(move |tx| fail(tx, lease, &error)).await
    }
}

fn write_page(tx: &Transaction<'_>, page: &Page) -> Result<()> {
    let id = page.lease.job.to_string();
    let Some(job) = advance::lock_job(tx, page.lease.job)? else {
        return Err(StoreError::LeaseLost);
    };
    let found = tx.query_opt(sql!("lock_segment"), params![id, page.lease.segment], |row| {
        Ok((transitions::check_page(row, page)?, row.int("next")?))
    })?;
    let (state, next) = found.ok_or(StoreError::LeaseLost)?;
    if state == PageState::Committed {
        return Ok(());
    }
    for (number, new) in (next..).zip(&page.segments) {
        let (state, range) = segment(&new.state, &new.range)?;
        let status = page.status_of_segments().as_str();
        tx.execute(sql!("insert_segment"), params![id, number, state, range, status])?;
    }
    insert_chunks(tx, &job, page.segment_of_chunks(next), &page.chunks)?;
    update_segment(tx, page)?;
    if let Some(new) = &page.read_snapshot {
        read_snapshots::put(tx, page.lease.job, new)?;
    }
    let mut job = add_to_job(tx, page)?;
    if !page.segments.is_empty() || !page.chunks.is_empty() {
        tx.signal()?;
    }
    advance::advance(tx, &mut job)
}

/// Adds chunks of a segment to a job, with the next numbers.
pub(super) fn insert_chunks(
    tx: &Transaction<'_>,
    job: &JobState,
    segment: i64,
    chunks: &[NewChunk],
) -> Result<()> {
    for (number, chunk) in (job.chunks_total..).zip(chunks) {
        let key_set = serde_json::to_string(&chunk.key_set)?;
        let params = params![job.id.to_string(), segment, number, key_set, chunk.items];
        tx.execute(sql!("insert_chunk"), params)?;
    }
    Ok(())
}

fn update_segment(tx: &Transaction<'_>, page: &Page) -> Result<()> {
    let status = if page.last { ChunkStatus::Completed } else { ChunkStatus::Processing };
    let SegmentLease { job, segment, epoch, nonce } = page.lease;
    let (job, state) = (job.to_string(), serde_json::to_string(&page.to)?);
    let lease = millis(SEGMENT_LEASE);
    let params = params![job, segment, epoch, state, status.as_str(), lease, nonce];
    tx.execute(sql!("update_segment"), params)?;
    Ok(())
}

fn add_to_job(tx: &Transaction<'_>, page: &Page) -> Result<JobState> {
    let chunks = page.chunks.len() as i64;
    let segments = page.opened_segments();
    let items: i64 = page.chunks.iter().map(|chunk| chunk.items).sum();
    let params = params![page.lease.job.to_string(), segments, chunks, chunks, items];
    tx.query_one(sql!("add_to_job"), params, |row| JobState::read(row))
}

/// Counts a segment of a job as ended.
pub(super) fn count_ended(tx: &Transaction<'_>, job: &str) -> Result<JobState> {
    tx.query_one(sql!("add_to_job"), params![job, -1, 0, 0, 0], |row| JobState::read(row))
}

fn fail(tx: &Transaction<'_>, lease: SegmentLease, error: &str) -> Result<()> {
    let SegmentLease { job, segment, epoch, nonce } = lease;
    let id = job.to_string();
    if tx.execute(sql!(shared "fail_segment"), params![id, segment, epoch, error, nonce])? == 0 {
        return check_repeated(tx, lease, ChunkStatus::Failed);
    }
    let mut job = count_ended(tx, &id)?;
    if let Some(transition) = transitions::fail(&job, format!("planning failed: {error}")) {
        advance::apply(tx, &mut job, &transition)?;
    }
    advance::advance(tx, &mut job)
}

/// Succeeds if an earlier call with this lease brought the segment into this status.
pub(super) fn check_repeated(
    tx: &Transaction<'_>,
    lease: SegmentLease,
    status: ChunkStatus,
) -> Result<()> {
    let params = params![lease.job.to_string(), lease.segment];
    let read = |row: &Row<'_>| transitions::is_segment_at(row, lease, status);
    let made_before = tx.query_opt(sql!(shared "segment_state"), params, read)?;
    transitions::repeated(made_before.unwrap_or_default())
}
