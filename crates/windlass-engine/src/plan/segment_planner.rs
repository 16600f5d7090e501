//! The segment planner: leases segments and cuts them into chunks, page by page.
//!
//! The chunks of a page and the pagination state after it are committed in one store transaction,
//! guarded by the segment's epoch and state. A planner that stalled and lost its lease commits
//! nothing. Merging is a segment too, and is run from here.

use crate::Result;
use crate::engine::Engine;
use crate::execute::heartbeat::Heartbeat;
use crate::job_context::JobContext;
use crate::merge::merge::{self, MergeOutcome};
use crate::operate::health_probe::MAX_THROTTLE_DELAY;
use crate::operate::job_log;
use crate::plan::planner::plan;
use crate::shutdown::Shutdown;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use windlass_connectors::{ChunkPage, CutLimits, CutRange, FilterValues, ScanSegment};
use windlass_core::pagination::{name_key, unname_key};
use windlass_core::{Backoff, ErrorKind};
use windlass_core::{FilterValue, Key, KeyRange, PaginationState, Value};
use windlass_store::{
    Capabilities, HandBack, LeasedSegment, NewChunk, Page, SegmentLease, StoreError,
};

/// Chunks per page: enough that the commit costs little compared with the cutting, few enough that
/// workers can start at once and a crash loses little work.
const CHUNKS_PER_PAGE: u32 = 500;

/// A segment is handed back after this time, so that segments of other jobs get a turn: those of
/// higher priority first, those of equal priority in rotation.
const MAX_TURN: Duration = Duration::from_secs(1);

/// The waits between looks for segments. Notifications usually end them earlier.
const SHORTEST_POLL: Duration = Duration::from_millis(40);
const LONGEST_POLL: Duration = Duration::from_secs(1);

/// Plans segments until shutdown, a few at a time.
pub(crate) async fn run(
    engine: Engine,
    by: Capabilities,
    heartbeat: Arc<Heartbeat>,
    shutdown: Shutdown,
) {
    let concurrency = std::thread::available_parallelism().map_or(2, |cores| cores.get().min(4));
    let mut running = JoinSet::new();
    let mut backoff = Backoff::new(SHORTEST_POLL, LONGEST_POLL);
    let mut changes = engine.store().subscribe();
    // Whether the last call leased all there was. If so, wait for a change notification.
    let mut drained = false;
    while !shutdown.requested() {
        let free = concurrency - running.len();
        if free == 0 {
            running.join_next().await;
            continue;
        }
        if drained {
            tokio::select! {
                () = changes.changed(engine.poll_interval(backoff.next_wait())) => drained = false,
                () = shutdown.wait() => {}
                // The task may have handed its segment back.
                Some(_) = running.join_next() => drained = false,
            }
            continue;
        }
        match engine.store().lease_segments(&engine.leasable(&by), free as u32).await {
            Ok(leased) => {
                drained = leased.len() < free;
                if !leased.is_empty() {
                    backoff.reset();
                }
                for segment in leased {
                    let (heartbeat, shutdown) = (heartbeat.clone(), shutdown.clone());
                    running.spawn(plan_segment(engine.clone(), segment, heartbeat, shutdown));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "failed to lease segments; retrying");
                tokio::time::sleep(backoff.next_wait()).await;
            }
        }
    }
    while running.join_next().await.is_some() {}
}

/// Plans one segment to its end, or hands it back.
async fn plan_segment(
    engine: Engine,
    segment: LeasedSegment,
    heartbeat: Arc<Heartbeat>,
    shutdown: Shutdown,
) {
    let lease = segment.lease;
    let attempts = segment.attempts;
    let is_merge = segment.state == PaginationState::Merge;
    let _beating = heartbeat.keep_segment(lease);
    let store = engine.store();
    let outcome = match plan_pages(&engine, segment, &shutdown).await {
        Ok(SegmentOutcome::Done | SegmentOutcome::Lost) => return,
        Ok(SegmentOutcome::HandBack) => store.release_segment(lease, HandBack::default()).await,
        Ok(SegmentOutcome::Later(why, wait)) => {
            store.release_segment(lease, HandBack::new(Some(&why), false, wait)).await
        }
        Err(error) => {
            let definition =
                store.snapshot(lease.job).await.ok().flatten().map(|job| job.definition);
            // A lost connection is logged once by its probe, not for each segment.
            let logged =
                definition.as_ref().is_some_and(|job| engine.connections_failed(job, &error));
            if !logged {
                let what = if is_merge { "merging failed" } else { "planning failed" };
                tracing::warn!(job = %lease.job, segment = lease.segment, %error, "{what}");
            }
            let retry = definition.map(|job| job.retry).unwrap_or_default();
            match error.kind() {
                // An unavailable database does not count as an attempt.
                ErrorKind::Unavailable => {
                    let (why, wait) = (error.to_string(), retry.backoff_after(1));
                    store.release_segment(lease, HandBack::new(Some(&why), false, wait)).await
                }
                ErrorKind::Transient => match retry.wait_after(attempts + 1) {
                    Some(wait) => {
                        let back = HandBack::new(Some(&error.to_string()), true, wait);
                        store.release_segment(lease, back).await
                    }
                    None => store.fail_segment(lease, &error.to_string()).await,
                },
                ErrorKind::Permanent => store.fail_segment(lease, &error.to_string()).await,
            }
        }
    };
    if let Err(error) = outcome
        && !matches!(error, StoreError::LeaseLost)
    {
        tracing::warn!(job = %lease.job, segment = lease.segment, %error,
            "failed to hand back segment; planning continues after its lease expires");
    }
}

/// What became of a leased segment.
enum SegmentOutcome {
    /// It is planned, or merged.
    Done,
    /// The lease is lost: another process has the segment.
    Lost,
    /// Hand it back; it can be leased again at once.
    HandBack,
    /// Hand it back for this time, with the reason.
    Later(String, Duration),
}

async fn plan_pages(
    engine: &Engine,
    segment: LeasedSegment,
    shutdown: &Shutdown,
) -> Result<SegmentOutcome> {
    let job = engine.context(segment.lease.job).await?;
    if segment.state == PaginationState::Merge {
        // Leasing considers only the connection of the source.
        if let Some(outage) = engine.outage(job.definition()) {
            let wait = outage.wait();
            return Ok(SegmentOutcome::Later(outage.reason, wait));
        }
        match merge::merge(engine, &job, segment.lease).await? {
            MergeOutcome::Done => tracing::info!(job = %segment.lease.job, "parts merged"),
            MergeOutcome::Lost => return Ok(SegmentOutcome::Lost),
            MergeOutcome::NotYet => {
                let why = "waits until the original job and its earlier redrives have ended";
                return Ok(SegmentOutcome::Later(why.to_owned(), MAX_TURN));
            }
        }
    }
    let mut state = segment.state.clone();
    let leased = Instant::now();
    loop {
        let turn_is_over = leased.elapsed() >= MAX_TURN;
        if shutdown.requested() || job.is_stopped() || turn_is_over {
            return Ok(SegmentOutcome::HandBack);
        }
        tokio::select! {
            () = job.throttle.delay(MAX_THROTTLE_DELAY) => {}
            () = shutdown.wait() => continue,
        }
        let begun = Instant::now();
        let page = next_page(&job, &segment, state).await?;
        job.throttle.record_batch(begun.elapsed());
        job.availability.succeeded();
        let (last, to) = (page.last, page.to.clone());
        let summary = PageSummary::of(&page);
        match engine.store().commit_page(page).await {
            Err(StoreError::LeaseLost) => return Ok(SegmentOutcome::Lost),
            committed => committed?,
        }
        summary.log();
        if last {
            log_job_end(engine, &segment).await;
            return Ok(SegmentOutcome::Done);
        }
        state = to;
    }
}

/// What a page adds to its job, for the log.
struct PageSummary {
    lease: SegmentLease,
    is_plan: bool,
    last: bool,
    segments: usize,
    chunks: usize,
    /// Items of the segment so far; `None` for a merge.
    items: Option<u64>,
}

impl PageSummary {
    fn of(page: &Page) -> PageSummary {
        let items = match &page.to {
            PaginationState::TableScan { items_enqueued, .. }
            | PaginationState::IndexQuery { items_enqueued, .. } => Some(*items_enqueued),
            PaginationState::Plan | PaginationState::Merge => None,
        };
        PageSummary {
            lease: page.lease,
            is_plan: page.from == PaginationState::Plan,
            last: page.last,
            segments: page.segments.len(),
            chunks: page.chunks.len(),
            items,
        }
    }

    fn log(self) {
        let PageSummary { lease, segments, chunks, .. } = self;
        let (job, segment) = (lease.job, lease.segment);
        match self.items {
            None => {}
            Some(items) if self.is_plan => {
                tracing::info!(%job, segments, chunks, items, "job planned");
            }
            Some(items) if self.last => {
                tracing::info!(%job, segment, items, "segment planned");
            }
            Some(items) => tracing::debug!(%job, segment, chunks, items, "chunks planned"),
        }
    }
}

/// Logs the end of a job whose last segment ended it: after a merge, or without any chunk. Jobs that
/// end with a chunk are logged where that chunk is completed.
async fn log_job_end(engine: &Engine, segment: &LeasedSegment) {
    let id = segment.lease.job;
    let is_merge = segment.state == PaginationState::Merge;
    if let Ok(Some(status)) = engine.store().status(id).await
        && status.is_final()
        && let Ok(Some(job)) = engine.store().job(id).await
        && (is_merge || job.chunks.total == 0)
    {
        job_log::log_job_end(&job);
    }
}

/// The next page of a segment: its chunks, and the pagination state after them.
async fn next_page(
    job: &JobContext,
    segment: &LeasedSegment,
    from: PaginationState,
) -> Result<Page> {
    let lease = segment.lease;
    let empty = Page {
        lease,
        from: from.clone(),
        to: from.clone(),
        last: true,
        segments: Vec::new(),
        chunks: Vec::new(),
    };
    let key = job.scope.key();
    match from {
        // The merge is done; only the end of the segment is left to commit.
        PaginationState::Merge => Ok(empty),
        PaginationState::Plan => {
            let planned = plan(job).await?;
            let to = PaginationState::TableScan {
                segment: 0,
                total_segments: planned.segments.len() as u32,
                last_evaluated_key: None,
                items_enqueued: planned.chunks.iter().map(|chunk| chunk.items as u64).sum(),
            };
            Ok(Page { to, segments: planned.segments, chunks: planned.chunks, ..empty })
        }
        PaginationState::TableScan {
            segment: number,
            total_segments,
            last_evaluated_key,
            items_enqueued,
        } => {
            let after = last_evaluated_key.as_ref().map(|named| unname_key(key, named));
            let cut = if segment.range == KeyRange::ALL {
                cut_scan(job, ScanSegment { number, of: total_segments }, after, items_enqueued)
                    .await?
            } else {
                let range = KeyRange {
                    after: after.or_else(|| segment.range.after.clone()),
                    upto: segment.range.upto.clone(),
                };
                cut_range(job, None, &range, items_enqueued, CHUNKS_PER_PAGE).await?
            };
            let to = PaginationState::TableScan {
                segment: number,
                total_segments,
                last_evaluated_key: cut
                    .last
                    .as_ref()
                    .map(|last| name_key(key, last))
                    .or(last_evaluated_key),
                items_enqueued: items_enqueued + cut.items,
            };
            Ok(Page { to, last: cut.done, chunks: cut.chunks, ..empty })
        }
        PaginationState::IndexQuery {
            filter,
            mut remaining_values,
            last_evaluated_key,
            items_enqueued,
        } => {
            // A page holds the chunks of many values, so that the state, which lists all remaining
            // values, is written once per page and not once per value. Values are cut in batches; only
            // a value with several chunks is cut alone.
            let key = &job.scope.resume_columns(&filter);
            let mut after = last_evaluated_key.as_ref().map(|named| unname_key(key, named));
            let (mut items_enqueued, mut done, mut chunks) = (items_enqueued, 0, Vec::new());
            let mut full = false;
            let begun = Instant::now();
            let mut batch = VecDeque::new();
            while let Some(value) = remaining_values.get(done).cloned() {
                let room = CHUNKS_PER_PAGE - chunks.len() as u32;
                if after.is_none() && batch.is_empty() {
                    if room < CHUNKS_PER_PAGE / 2 {
                        break;
                    }
                    let upto = remaining_values.len().min(done + room as usize);
                    batch = cut_values(job, &filter, &remaining_values[done..upto]).await?;
                }
                let fits = |cut: &CutChunks| {
                    remaining_items(job, items_enqueued).is_none_or(|most| cut.items <= most)
                };
                let cut = match batch.pop_front().flatten().filter(fits) {
                    Some(cut) => cut,
                    None => {
                        let within = FilterValue { filter: filter.clone(), value };
                        let range = KeyRange { after: after.take(), upto: None };
                        cut_range(job, Some(&within), &range, items_enqueued, room).await?
                    }
                };
                items_enqueued += cut.items;
                chunks.extend(cut.chunks);
                match cut.done {
                    true => done += 1,
                    false => after = cut.last,
                }
                let most = job.snapshot.request.max_items_per_segment;
                full = most.is_some_and(|most| items_enqueued >= most);
                if full
                    || !cut.done
                    || chunks.len() as u32 >= CHUNKS_PER_PAGE
                    || begun.elapsed() >= MAX_TURN
                {
                    break;
                }
            }
            remaining_values.drain(..done);
            let last_evaluated_key = after.as_ref().map(|last| name_key(key, last));
            let last = full || remaining_values.is_empty();
            let to = PaginationState::IndexQuery {
                filter,
                remaining_values,
                last_evaluated_key,
                items_enqueued,
            };
            Ok(Page { to, last, chunks, ..empty })
        }
    }
}

/// Chunks cut by one statement, and where the next one starts.
struct CutChunks {
    chunks: Vec<NewChunk>,
    last: Option<Key>,
    items: u64,
    done: bool,
}

/// Cuts a key range, optionally within one value of a filter.
async fn cut_range(
    job: &JobContext,
    within: Option<&FilterValue>,
    range: &KeyRange,
    enqueued: u64,
    most_chunks: u32,
) -> Result<CutChunks> {
    let (items, left) = (job.definition().chunk_items(), remaining_items(job, enqueued));
    let limits = CutLimits::new(items, most_chunks, left);
    let cuts = job.source.cut(&job.scope, CutRange::new(within, range), limits).await?;
    Ok(CutChunks::from_page(cuts))
}

/// Cuts many values of a filter; `None` for a value that must be cut alone.
async fn cut_values(
    job: &JobContext,
    filter: &str,
    values: &[Value],
) -> Result<VecDeque<Option<CutChunks>>> {
    let items = job.definition().chunk_items();
    let values = FilterValues { filter, values, chunk_items: items };
    let cuts = job.source.cut_values(&job.scope, values).await?;
    Ok(cuts.into_iter().map(|cuts| cuts.map(CutChunks::from_page)).collect())
}

/// Cuts a scan segment, for databases that number the segments of a table themselves.
async fn cut_scan(
    job: &JobContext,
    segment: ScanSegment,
    after: Option<Key>,
    enqueued: u64,
) -> Result<CutChunks> {
    let (items, left) = (job.definition().chunk_items(), remaining_items(job, enqueued));
    let (scope, after) = (&job.scope, after.as_ref());
    Ok(CutChunks::from_page(
        job.source
            .scan(scope, segment, after, CutLimits::new(items, CHUNKS_PER_PAGE, left))
            .await?,
    ))
}

/// How many more items the segment may have; `None` without a limit.
fn remaining_items(job: &JobContext, enqueued: u64) -> Option<u64> {
    job.snapshot.request.max_items_per_segment.map(|most| most.saturating_sub(enqueued))
}

impl CutChunks {
    fn from_page(page: ChunkPage) -> CutChunks {
        let items = page.chunks.iter().map(|(_, items)| *items as u64).sum();
        let chunks =
            page.chunks.into_iter().map(|(key_set, items)| NewChunk { key_set, items }).collect();
        CutChunks { chunks, last: page.last, items, done: page.done }
    }
}
