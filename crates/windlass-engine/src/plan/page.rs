//! Cuts the next page of a segment: its chunks, and the pagination state after them.

use crate::Result;
use crate::engine::Engine;
use crate::job_context::JobContext;
use crate::plan::planner::{Plan, plan};
use crate::plan::segment_planner::MAX_TURN;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use windlass_connectors::{ChunkPage, CutLimits, CutRange, FilterValues, ScanSegment};
use windlass_core::pagination::{name_key, unname_key};
use windlass_core::{FilterValue, Key, KeyRange, PaginationState, Table, Value};
use windlass_store::{
    CompletePlan, JobSnapshot, LeasedSegment, NewChunk, NewJob, NewSegment, Page,
};

/// Chunks per page: enough that the commit costs little compared with the cutting, few enough that
/// workers can start at once and a crash loses little work.
const CHUNKS_PER_PAGE: u32 = 500;

/// A job of one segment with at most this many chunks gets them when it is planned. That saves another lease and
/// another commit.
const CHUNKS_OF_SMALL_JOB: u32 = 8;

/// A submit does not plan its job if that takes longer.
const MAX_TIME_AT_SUBMIT: Duration = Duration::from_millis(250);

/// The next page of a segment.
pub(super) async fn next_page(
    job: &JobContext,
    segment: &LeasedSegment,
    from: PaginationState,
) -> Result<Page> {
    let cut = match from {
        PaginationState::Plan => plan_page(job).await?,
        _ => cut_page(job, &segment.range, from.clone(), CHUNKS_PER_PAGE).await?,
    };
    let Cut { to, last, segments, chunks, planned } = cut;
    let (lease, read_snapshot) = (segment.lease, None);
    let mut page = Page { lease, from, to, last, segments, chunks, planned, read_snapshot };
    page.read_under(job.reading.map(|reading| reading.number));
    Ok(page)
}

/// The page of a new job whose chunks are all known.
pub(super) fn chunks_page(segment: &LeasedSegment, chunks: Vec<NewChunk>) -> Page {
    Page {
        lease: segment.lease,
        from: PaginationState::Plan,
        to: PaginationState::TableScan {
            segment: 0,
            total_segments: 0,
            last_evaluated_key: None,
            items_enqueued: chunks.iter().map(|chunk| chunk.items as u64).sum(),
        },
        last: true,
        segments: Vec::new(),
        chunks,
        planned: false,
        read_snapshot: None,
    }
}

/// The complete plan of a new job that is small: its request has the items or the ids of at most one chunk, or its table
/// has no more rows by the database's statistics. Its submit stores the plan, which saves the lease of a planner, its reads
/// and its commit. `None` if a worker has to plan the job. A job that waits for others is planned later: it may end without
/// being worked, and must then have no chunks. A job that is read under a snapshot is planned by the process that holds it.
pub(crate) async fn plan_small_job(
    engine: &Engine,
    job: &NewJob,
    table: &Table,
) -> Option<CompletePlan> {
    let (request, source) = (&job.request, &job.definition.source);
    let listed = request.items.as_ref().map(Vec::len).or(request.ids.as_ref().map(Vec::len));
    let is_small = match listed {
        Some(items) => items <= job.definition.chunk_items() as usize,
        // A query would be run to be planned, and each value of a filter is looked up.
        None if source.table.is_none() || table.open || request.filters().next().is_some() => false,
        None => table.estimated_rows <= u64::from(job.definition.chunk_items()),
    };
    if !is_small || request.after.is_some() || job.definition.wants_snapshot() {
        return None;
    }
    // Of many submits at once the workers plan most, so that a submit does not wait for the reads of others.
    let _permit = match listed {
        Some(_) if source.items => None,
        _ => Some(engine.shared.submit_plans.try_acquire().ok()?),
    };
    let snapshot = JobSnapshot {
        id: job.id,
        definition: job.definition.clone(),
        request: job.request.clone(),
        identity: job.identity.clone(),
        root: job.root,
    };
    // If this fails, the planner fails too, and says why.
    let context = engine.resolve_read_only(snapshot).await.ok()?;
    // A condition of the job type may be slow.
    let planned = tokio::time::timeout(MAX_TIME_AT_SUBMIT, plan_page(&context)).await;
    let Cut { to: state, segments, chunks, planned, .. } = planned.ok()?.ok()?;
    let is_complete = planned || segments.is_empty();
    (is_complete && !chunks.is_empty()).then_some(CompletePlan { state, segments, chunks })
}

/// What a page adds to its job, and the pagination state after it.
struct Cut {
    to: PaginationState,
    last: bool,
    segments: Vec<NewSegment>,
    chunks: Vec<NewChunk>,
    /// The chunks are all those of the one segment.
    planned: bool,
}

/// The page of a new job: its segments, and its chunks if they are few or the request names its keys.
async fn plan_page(job: &JobContext) -> Result<Cut> {
    let Plan { mut segments, mut chunks } = plan(job).await?;
    let mut planned = false;
    let wants_segments = job.snapshot.request.parallel_segments.is_some();
    let is_scan = |segment: &NewSegment| {
        segment.range == KeyRange::ALL && matches!(segment.state, PaginationState::TableScan { .. })
    };
    // A scan costs money, and would begin again if this were not all of it.
    if let [only] = segments.as_mut_slice()
        && !wants_segments
        && !is_scan(only)
    {
        let cut = cut_page(job, &only.range, only.state.clone(), CHUNKS_OF_SMALL_JOB).await?;
        if cut.last {
            only.state = cut.to;
            (chunks, planned) = (cut.chunks, true);
        }
    }
    let to = PaginationState::TableScan {
        segment: 0,
        total_segments: segments.len() as u32,
        last_evaluated_key: None,
        items_enqueued: match planned {
            true => 0,
            false => chunks.iter().map(|chunk| chunk.items as u64).sum(),
        },
    };
    Ok(Cut { to, last: true, segments, chunks, planned })
}

/// Cuts at most this many chunks of a segment, from its pagination state on.
async fn cut_page(
    job: &JobContext,
    range: &KeyRange,
    from: PaginationState,
    most: u32,
) -> Result<Cut> {
    let key = job.scope.key();
    match from {
        // The merge is done; only the end of the segment is left to commit.
        PaginationState::Plan | PaginationState::Merge => Ok(Cut {
            to: from,
            last: true,
            segments: Vec::new(),
            chunks: Vec::new(),
            planned: false,
        }),
        PaginationState::TableScan {
            segment: number,
            total_segments,
            last_evaluated_key,
            items_enqueued,
        } => {
            let after = last_evaluated_key.as_ref().map(|named| unname_key(key, named));
            let cut = if *range == KeyRange::ALL {
                cut_scan(
                    job,
                    ScanSegment { number, of: total_segments },
                    after,
                    items_enqueued,
                    most,
                )
                .await?
            } else {
                let rest = KeyRange {
                    after: after.or_else(|| range.after.clone()),
                    upto: range.upto.clone(),
                };
                cut_range(job, None, &rest, items_enqueued, most).await?
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
            Ok(Cut { to, last: cut.done, chunks: cut.chunks, segments: Vec::new(), planned: false })
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
                let room = most - chunks.len() as u32;
                if after.is_none() && batch.is_empty() {
                    if room < most / 2 {
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
                let limit = job.snapshot.request.max_items_per_segment;
                full = limit.is_some_and(|limit| items_enqueued >= limit);
                if full || !cut.done || chunks.len() as u32 >= most || begun.elapsed() >= MAX_TURN {
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
            Ok(Cut { to, last, chunks, segments: Vec::new(), planned: false })
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
    most_chunks: u32,
) -> Result<CutChunks> {
    let (items, left) = (job.definition().listed_items(), remaining_items(job, enqueued));
    let (scope, after) = (&job.scope, after.as_ref());
    Ok(CutChunks::from_page(
        job.source.scan(scope, segment, after, CutLimits::new(items, most_chunks, left)).await?,
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
