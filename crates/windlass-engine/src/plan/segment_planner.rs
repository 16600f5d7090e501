//! The segment planner: leases segments and cuts them into chunks, page by page.
//!
//! The chunks of a page and the pagination state after it are committed in one store transaction,
//! guarded by the segment's epoch and state. A planner that stalled and lost its lease commits
//! nothing. Merging is a segment too, and is run from here.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::execute::heartbeat::Heartbeat;
use crate::merge::merge::{self, MergeOutcome};
use crate::operate::health_probe::MAX_THROTTLE_DELAY;
use crate::operate::job_log;
use crate::plan::page::next_page;
use crate::plan::snapshot_holder::{HeldFor, hold};
use crate::plan::snapshot_plan::{self, SnapshotPlan};
use crate::shutdown::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;
use windlass_connectors::ConnectorError;
use windlass_core::{Backoff, ErrorKind, PaginationState};
use windlass_store::{
    Capabilities, HandBack, LeasedSegment, Page, SegmentLease, StoreError, Topics,
};

/// A segment is handed back after this time, so that segments of other jobs get a turn: those of
/// higher priority first, those of equal priority in rotation.
pub(super) const MAX_TURN: Duration = Duration::from_secs(1);

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
    let holders = TaskTracker::new();
    let planning = Planning { worker: by.worker.clone(), holders: holders.clone() };
    let mut backoff = Backoff::new(SHORTEST_POLL, LONGEST_POLL);
    let mut changes = engine.store().subscribe_to(Topics::SEGMENTS);
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
                    let planning = planning.clone();
                    running.spawn(plan_segment(
                        engine.clone(),
                        segment,
                        heartbeat,
                        planning,
                        shutdown,
                    ));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "failed to lease segments; retrying");
                tokio::time::sleep(backoff.next_wait()).await;
            }
        }
    }
    while running.join_next().await.is_some() {}
    holders.close();
    holders.wait().await;
}

/// What planning a segment needs of its planner.
#[derive(Clone)]
struct Planning {
    /// The name of the worker.
    worker: String,
    /// The tasks that hold read snapshots.
    holders: TaskTracker,
}

/// Plans one segment to its end, or hands it back.
async fn plan_segment(
    engine: Engine,
    segment: LeasedSegment,
    heartbeat: Arc<Heartbeat>,
    planning: Planning,
    shutdown: Shutdown,
) {
    let lease = segment.lease;
    let attempts = segment.attempts;
    let is_merge = segment.state == PaginationState::Merge;
    let _beating = heartbeat.keep_segment(lease);
    let store = engine.store();
    let outcome = match plan_pages(&engine, segment, &planning, &shutdown).await {
        Ok(SegmentOutcome::Done | SegmentOutcome::Lost) => return,
        Ok(SegmentOutcome::HandBack) => store.release_segment(lease, HandBack::default()).await,
        Ok(SegmentOutcome::Later(why, wait)) => {
            store.release_segment(lease, HandBack::new(Some(&why), false, wait)).await
        }
        // The job is planned again when its snapshot counts as lost.
        Err(EngineError::Data(
            error @ (ConnectorError::SnapshotLost(_) | ConnectorError::TableRewritten),
        )) => {
            let why = error.to_string();
            store.release_segment(lease, HandBack::new(Some(&why), false, MAX_TURN)).await
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
    planning: &Planning,
    shutdown: &Shutdown,
) -> Result<SegmentOutcome> {
    let is_cut = matches!(
        segment.state,
        PaginationState::TableScan { .. } | PaginationState::IndexQuery { .. }
    );
    let job = match is_cut {
        true => engine.context_of_segment(segment.lease.job).await?,
        false => Some(engine.context(segment.lease.job).await?),
    };
    let Some(job) = job else {
        return Ok(SegmentOutcome::Later("waits for a new read snapshot".to_owned(), MAX_TURN));
    };
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
        let (page, held) = match state {
            PaginationState::Plan if job.definition().wants_snapshot() => {
                match snapshot_plan::plan(engine, &job, &segment, &planning.worker).await? {
                    SnapshotPlan::Plain(page) => (page, None),
                    SnapshotPlan::Under(page, held) => (page, Some(held)),
                    SnapshotPlan::Busy => {
                        let why = "waits until this process can hold another read snapshot";
                        return Ok(SegmentOutcome::Later(why.to_owned(), MAX_TURN));
                    }
                }
            }
            state => match next_page(&job, &segment, state).await {
                Err(error @ EngineError::Data(ConnectorError::TableRewritten)) => {
                    job.report_rewritten(engine.store()).await;
                    return Err(error);
                }
                page => (page?, None),
            },
        };
        job.throttle.record_batch(begun.elapsed());
        job.availability.succeeded();
        let (last, to) = (page.last, page.to.clone());
        let summary = PageSummary::of(&page);
        let held_for = page.read_snapshot.as_ref().map(|new| HeldFor {
            job: segment.lease.job,
            number: new.number,
            lease: new.lease,
        });
        match engine.store().commit_page(page).await {
            Err(StoreError::LeaseLost) => return Ok(SegmentOutcome::Lost),
            committed => committed?,
        }
        if let (Some(held), Some(held_for)) = (held, held_for) {
            planning.holders.spawn(hold(engine.clone(), held, held_for, shutdown.clone()));
        }
        let may_end_job = summary.is_empty();
        summary.log();
        if last {
            if may_end_job {
                log_job_end(engine, &segment).await;
            }
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
            _ if page.planned => Some(page.chunks.iter().map(|chunk| chunk.items as u64).sum()),
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

    fn is_empty(&self) -> bool {
        self.segments == 0 && self.chunks == 0
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
