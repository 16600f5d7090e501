//! The loader: claims segments and cuts them into chunks, page by page.
//!
//! A page's chunks and the pagination state after it are one store transaction, guarded by the
//! segment's epoch and state: a loader that stalled and woke up commits nothing.

use crate::Result;
use crate::engine::Engine;
use crate::execute::heartbeat::Heartbeat;
use crate::execute::worker::{IdleBackoff, Shutdown};
use crate::job_context::JobContext;
use crate::merge::merge::{self, Merge};
use crate::operate::health_probe::LONGEST_REST;
use crate::plan::planner::plan;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use windlass_connectors::{ChunkPage, CutLimits, CutRange, FilterValues, ScanSegment};
use windlass_core::ErrorKind;
use windlass_core::pagination::{name_key, unname_key};
use windlass_core::{FilterValue, Key, KeyRange, PaginationState, Value};
use windlass_store::{Capabilities, ClaimedSegment, Kept, NewChunk, Page};

/// Chunks cut per page: large enough that the store's commit is small beside the cutting, small
/// enough that workers begin at once and a lost loader loses little.
const CHUNKS_PER_PAGE: u32 = 500;

/// A segment is handed back after this long, so that other jobs get their turn: more urgent ones, and
/// those of equal priority in rotation.
const TURN: Duration = Duration::from_secs(1);

/// Loads segments until shutdown, a few side by side.
pub(crate) async fn run(
    engine: Engine,
    by: Capabilities,
    heartbeat: Arc<Heartbeat>,
    shutdown: Shutdown,
) {
    let side_by_side = std::thread::available_parallelism().map_or(2, |cores| cores.get().min(4));
    let mut loads = JoinSet::new();
    let mut idle = IdleBackoff::default();
    // Whether the last claim took all there was. Then the store says when there is more.
    let mut drained = false;
    while !shutdown.requested() {
        let free = side_by_side - loads.len();
        if free == 0 {
            loads.join_next().await;
            continue;
        }
        if drained {
            tokio::select! {
                () = engine.store().changed(idle.next()) => drained = false,
                () = shutdown.wait() => {}
                // It may have handed its segment back.
                Some(_) = loads.join_next() => drained = false,
            }
            continue;
        }
        match engine.store().claim_segments(&engine.claimable(&by), free as u32).await {
            Ok(claimed) => {
                drained = claimed.len() < free;
                if !claimed.is_empty() {
                    idle.reset();
                }
                for segment in claimed {
                    loads.spawn(load(engine.clone(), segment, heartbeat.clone(), shutdown.clone()));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot claim segments; trying again");
                idle.pause().await;
            }
        }
    }
    while loads.join_next().await.is_some() {}
}

/// Loads one segment to its end, or hands it back.
async fn load(
    engine: Engine,
    segment: ClaimedSegment,
    heartbeat: Arc<Heartbeat>,
    shutdown: Shutdown,
) {
    let lease = segment.lease;
    let attempts = segment.attempts;
    let _beating = heartbeat.keep_segment(lease);
    let store = engine.store();
    let outcome = match pages(&engine, segment, &shutdown).await {
        Ok(Loaded::Done | Loaded::Lost) => return,
        Ok(Loaded::HandBack) => store.release_segment(lease, None, false, Duration::ZERO).await,
        Ok(Loaded::Later(why, wait)) => store.release_segment(lease, Some(&why), false, wait).await,
        Err(error) => {
            let definition =
                store.snapshot(lease.job).await.ok().flatten().map(|job| job.definition);
            // Logged once for the connection and not for each of its segments.
            let logged =
                definition.as_ref().is_some_and(|job| engine.connections_failed(job, &error));
            if !logged {
                tracing::warn!(job = %lease.job, segment = lease.segment, %error, "loading failed");
            }
            let retry = definition.map(|job| job.retry).unwrap_or_default();
            match error.kind() {
                // The database being away is not a failure of the load; it goes on when it is back.
                ErrorKind::Unavailable => {
                    let (why, wait) = (error.to_string(), retry.backoff_after(1));
                    store.release_segment(lease, Some(&why), false, wait).await
                }
                ErrorKind::Transient => match retry.wait_after(attempts + 1) {
                    Some(wait) => {
                        store.release_segment(lease, Some(&error.to_string()), true, wait).await
                    }
                    None => store.fail_segment(lease, &error.to_string()).await,
                },
                ErrorKind::Permanent => store.fail_segment(lease, &error.to_string()).await,
            }
        }
    };
    if let Err(error) = outcome {
        // The lease runs out by itself, and another loader goes on from the last page.
        tracing::warn!(job = %lease.job, segment = lease.segment, %error, "cannot hand back");
    }
}

enum Loaded {
    Done,
    Lost,
    HandBack,
    /// Handed back for so long, with what it waits for.
    Later(String, Duration),
}

async fn pages(engine: &Engine, segment: ClaimedSegment, shutdown: &Shutdown) -> Result<Loaded> {
    let job = engine.context(segment.lease.job).await?;
    if segment.state == PaginationState::Merge {
        // The claim knows only the connection of the source.
        if let Some(outage) = engine.outage(job.definition()) {
            let wait = outage.wait();
            return Ok(Loaded::Later(outage.reason, wait));
        }
        match merge::merge(engine, &job, segment.lease).await? {
            Merge::Done => {}
            Merge::Lost => return Ok(Loaded::Lost),
            Merge::Later => {
                let why = "waits for the job or the redrives before it to end";
                return Ok(Loaded::Later(why.to_owned(), TURN));
            }
        }
    }
    let mut state = segment.state.clone();
    let claimed = Instant::now();
    loop {
        let long = claimed.elapsed() >= TURN;
        if shutdown.requested() || job.is_stopped() || long {
            return Ok(Loaded::HandBack);
        }
        tokio::select! {
            () = job.throttle.rest(LONGEST_REST) => {}
            () = shutdown.wait() => continue,
        }
        let begun = Instant::now();
        let page = page(&job, &segment, state).await?;
        job.throttle.took(begun.elapsed());
        job.availability.succeeded();
        let (last, to) = (page.last, page.to.clone());
        if engine.store().load(page).await? == Kept::Lost {
            return Ok(Loaded::Lost);
        }
        if last {
            return Ok(Loaded::Done);
        }
        state = to;
    }
}

/// The next page of a segment: where the load stands moves on by as much as was cut.
async fn page(job: &JobContext, segment: &ClaimedSegment, from: PaginationState) -> Result<Page> {
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
        // What there was to do is done.
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
                scan(job, ScanSegment { number, of: total_segments }, after, items_enqueued).await?
            } else {
                let range = KeyRange {
                    after: after.or_else(|| segment.range.after.clone()),
                    upto: segment.range.upto.clone(),
                };
                cut(job, None, &range, items_enqueued, CHUNKS_PER_PAGE).await?
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
            // A page has the chunks of many values: the state, which lists all values that remain, is
            // written once per page and not once per value. Values are looked up in batches; only one
            // with several chunks is cut alone.
            let key = &job.scope.resume_columns(&filter);
            let mut after = last_evaluated_key.as_ref().map(|named| unname_key(key, named));
            let (mut items_enqueued, mut done, mut chunks) = (items_enqueued, 0, Vec::new());
            let mut full = false;
            let begun = Instant::now();
            let mut looked_up = VecDeque::new();
            while let Some(value) = remaining_values.get(done).cloned() {
                let room = CHUNKS_PER_PAGE - chunks.len() as u32;
                if after.is_none() && looked_up.is_empty() {
                    if room < CHUNKS_PER_PAGE / 2 {
                        break;
                    }
                    let upto = remaining_values.len().min(done + room as usize);
                    looked_up = look_up(job, &filter, &remaining_values[done..upto]).await?;
                }
                let fits =
                    |cut: &Cut| left(job, items_enqueued).is_none_or(|most| cut.items <= most);
                let cut = match looked_up.pop_front().flatten().filter(fits) {
                    Some(cut) => cut,
                    None => {
                        let within = FilterValue { filter: filter.clone(), value };
                        let range = KeyRange { after: after.take(), upto: None };
                        cut(job, Some(&within), &range, items_enqueued, room).await?
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
                    || begun.elapsed() >= TURN
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

struct Cut {
    chunks: Vec<NewChunk>,
    last: Option<Key>,
    items: u64,
    done: bool,
}

async fn cut(
    job: &JobContext,
    within: Option<&FilterValue>,
    range: &KeyRange,
    enqueued: u64,
    most_chunks: u32,
) -> Result<Cut> {
    let (items, left) = (job.definition().chunk_items(), left(job, enqueued));
    let cuts = job
        .source
        .cut(&job.scope, CutRange::new(within, range), CutLimits::new(items, most_chunks, left))
        .await?;
    Ok(Cut::of(cuts))
}

/// The chunks of many values of a filter; `None` for a value that must be cut alone.
async fn look_up(
    job: &JobContext,
    filter: &str,
    values: &[Value],
) -> Result<VecDeque<Option<Cut>>> {
    let items = job.definition().chunk_items();
    let cuts = job
        .source
        .cut_values(&job.scope, FilterValues { filter, values, chunk_items: items })
        .await?;
    Ok(cuts.into_iter().map(|cuts| cuts.map(Cut::of)).collect())
}

/// The same where the database numbers the parts of a table itself.
async fn scan(
    job: &JobContext,
    share: ScanSegment,
    after: Option<Key>,
    enqueued: u64,
) -> Result<Cut> {
    let (items, left) = (job.definition().chunk_items(), left(job, enqueued));
    let (scope, after) = (&job.scope, after.as_ref());
    Ok(Cut::of(
        job.source.scan(scope, share, after, CutLimits::new(items, CHUNKS_PER_PAGE, left)).await?,
    ))
}

/// How many items the segment may still have.
fn left(job: &JobContext, enqueued: u64) -> Option<u64> {
    job.snapshot.request.max_items_per_segment.map(|most| most.saturating_sub(enqueued))
}

impl Cut {
    fn of(cuts: ChunkPage) -> Cut {
        let counted = cuts.chunks.iter().map(|(_, items)| *items as u64).sum();
        let chunks =
            cuts.chunks.into_iter().map(|(key_set, items)| NewChunk { key_set, items }).collect();
        Cut { chunks, last: cuts.last, items: counted, done: cuts.done }
    }
}
