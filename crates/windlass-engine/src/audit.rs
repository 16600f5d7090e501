//! The audit: proves of a job that nothing was missed and nothing was done twice.
//!
//! It reads only what the job left behind: the segments tile the source as planned, the chunks
//! tile their segments, every chunk's cursor reached its end, and the outcomes add up to the rows
//! that the committing transactions read. What the table has become since is drift.

use crate::Result;
use crate::engine::Engine;
use std::collections::{BTreeMap, HashSet};
use windlass_core::problem::Code;
use windlass_core::{
    ChunkStatus, Counts, Cursor, Extent, Job, JobId, Key, KeyRange, PaginationState, Part, Problem,
};
use windlass_store::{ChunkRow, LetterFilter, SegmentRow};

/// What the audit of a job found.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// The job.
    pub job_id: JobId,
    /// Whether everything holds.
    pub proven: bool,
    /// Segments looked at.
    pub segments: usize,
    /// Chunks looked at.
    pub chunks: i64,
    /// Items planned.
    pub planned: i64,
    /// What became of them.
    pub counts: Counts,
    /// Rows the source has more (or fewer) now than were planned; absent when it cannot be told.
    pub drift: Option<i64>,
    /// Everything that does not hold, at most twenty lines.
    pub findings: Vec<String>,
}

/// Chunks read at once.
const PAGE: u32 = 1000;
/// Findings worth printing; a broken job need not print a million lines.
const MOST_FINDINGS: usize = 20;

impl Engine {
    /// Audits a job.
    pub async fn audit(&self, id: JobId) -> Result<Audit> {
        let job = self.job(id).await?;
        let segments = self.store().segments(id).await?;
        if segments.is_empty() {
            let detail = "the chunks of this job are pruned, so that it cannot be proven any more; \
                          `retention.chunks` says how long they are kept";
            return Err(Problem::new(Code::Status, detail).into());
        }
        let mut check = Check::new(&job, &segments);
        check.segments_tile(&segments);
        let mut after = None;
        loop {
            let page = self.store().chunks(id, None, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.chunk);
            for chunk in page {
                check.chunk(chunk);
            }
        }
        check.chunks_reach_their_segments_ends(&segments, job.request.max_items_per_segment);
        let is_redrive = self.store().pinned(id).await?.is_some_and(|pinned| pinned.root != id);
        if !is_redrive {
            let letters = self.count_letters(id).await?;
            let dead = check.counts.dead;
            let may_be_pruned = self.config().jobs.get(&job.job_type);
            let may_be_pruned =
                may_be_pruned.is_some_and(|defined| defined.retention.dead_letters.is_some());
            check.expect(letters == dead || letters < dead && may_be_pruned, || {
                format!("{dead} items died, but there are {letters} dead letters")
            });
        }
        let drift = self.drift(id, check.planned).await;
        Ok(check.into_audit(id, segments.len(), drift))
    }

    async fn count_letters(&self, job: JobId) -> Result<i64> {
        let mut filter = LetterFilter { job: Some(job), limit: PAGE, ..LetterFilter::default() };
        let mut count = 0;
        loop {
            let page = self.store().letters(&filter).await?;
            count += page.len() as i64;
            match page.last() {
                Some(last) => filter.before = Some(last.id),
                None => return Ok(count),
            }
        }
    }

    /// How the source has changed since; unknown when it cannot be asked.
    async fn drift(&self, id: JobId, planned: i64) -> Option<i64> {
        // Counting needs no handler, so any process can say it.
        let job = self.resolve_to_end(self.store().pinned(id).await.ok()??).await.ok()?;
        let request = &job.pinned.request;
        if request.ids.is_some() || request.max_items_per_segment.is_some() {
            return None;
        }
        let everything = Extent { within: None, part: Part::Range(KeyRange::ALL) };
        let now = job.connection.count(&job.scope, &everything).await.ok()?;
        Some(now - planned)
    }
}

/// What is known while the chunks go by, one page in memory at a time.
struct Check {
    proven: bool,
    findings: Vec<String>,
    chunks: i64,
    planned: i64,
    counts: Counts,
    /// Up to where each segment (and filter value) is tiled so far.
    reached: BTreeMap<(i32, String), Option<Key>>,
    listed: HashSet<String>,
    /// Items planned, by segment.
    planned_in: BTreeMap<i32, i64>,
    starts: BTreeMap<i32, Option<Key>>,
}

impl Check {
    fn new(job: &Job, segments: &[SegmentRow]) -> Check {
        let starts = segments.iter().map(|row| (row.segment, row.range.after.clone())).collect();
        let mut check = Check {
            proven: true,
            findings: Vec::new(),
            chunks: 0,
            planned: 0,
            counts: Counts::default(),
            reached: BTreeMap::new(),
            listed: HashSet::new(),
            planned_in: BTreeMap::new(),
            starts,
        };
        let status = job.status;
        check.expect(status == windlass_core::JobStatus::Completed, || {
            format!("the job is {status}, not COMPLETED")
        });
        check
    }

    fn expect(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.proven = false;
            if self.findings.len() < MOST_FINDINGS {
                self.findings.push(otherwise());
            }
        }
    }

    /// The table scan's segments, in order, tile everything up to the greatest key.
    fn segments_tile(&mut self, segments: &[SegmentRow]) {
        for row in segments {
            self.expect(row.status == ChunkStatus::Completed, || {
                format!("segment {} is {}, not COMPLETED", row.segment, row.status)
            });
        }
        let is_scan = |row: &&SegmentRow| {
            row.segment > 0 && matches!(row.state, PaginationState::TableScan { .. })
        };
        let scans: Vec<&KeyRange> = segments.iter().filter(is_scan).map(|row| &row.range).collect();
        if let Some(last) = scans.last() {
            let whole = KeyRange { after: None, upto: last.upto.clone() };
            let tiling = whole.check_tiling(scans.iter().copied());
            self.expect(tiling.is_ok(), || "the segments leave a gap or overlap".to_owned());
        }
    }

    fn chunk(&mut self, chunk: ChunkRow) {
        let number = chunk.chunk;
        let expected = self.chunks;
        self.expect(number == expected, || format!("chunk {expected} is missing"));
        self.chunks = number + 1;
        self.planned += chunk.items;
        *self.planned_in.entry(chunk.segment).or_default() += chunk.items;
        self.counts += chunk.counts;
        self.expect(chunk.status == ChunkStatus::Completed, || {
            format!("chunk {number} is {}, not COMPLETED", chunk.status)
        });
        self.expect(chunk.cursor == Cursor::End, || {
            format!(
                "chunk {number} did not reach its end: its cursor is {}",
                chunk.cursor.to_text()
            )
        });
        let Counts { read, processed, skipped, dead, .. } = chunk.counts;
        self.expect(chunk.counts.add_up(), || {
            format!("chunk {number} read {read} rows, but processed {processed}, skipped {skipped} and set aside {dead}")
        });
        let within = chunk.extent.within.map_or(String::new(), |within| within.value.to_string());
        match chunk.extent.part {
            Part::Keys(keys) => {
                for key in keys {
                    let text = format!("{within}\0{}", key.to_text());
                    let first = self.listed.insert(text);
                    self.expect(first, || {
                        format!("chunk {number} lists {key}, which another chunk has")
                    });
                }
            }
            Part::Range(range) => {
                let start = self.starts.get(&chunk.segment).cloned().flatten();
                let reached = self.reached.entry((chunk.segment, within)).or_insert(start);
                let begins_there = *reached == range.after;
                *reached = range.upto;
                self.expect(begins_there, || {
                    format!("chunk {number} does not begin where the one before it ends")
                });
            }
        }
    }

    /// A table scan's last chunk ends where its segment does, unless a limit stopped it before.
    fn chunks_reach_their_segments_ends(&mut self, segments: &[SegmentRow], limit: Option<u64>) {
        for row in segments.iter().filter(|row| row.segment > 0) {
            let PaginationState::TableScan { items_enqueued, .. } = row.state else { continue };
            if row.range == KeyRange::ALL {
                // A part that its database numbers has no end to reach; its keys were counted.
                let planned = self.planned_in.get(&row.segment).copied().unwrap_or_default();
                self.expect(planned == items_enqueued as i64, || {
                    format!(
                        "segment {} enqueued {items_enqueued} items, but its chunks list {planned}",
                        row.segment
                    )
                });
                continue;
            }
            let stopped = limit.is_some_and(|limit| items_enqueued >= limit);
            let reached = self.reached.get(&(row.segment, String::new())).cloned();
            let complete = reached.as_ref() == Some(&row.range.upto);
            self.expect(stopped || complete, || {
                format!("the chunks of segment {} do not reach its end", row.segment)
            });
        }
    }

    fn into_audit(self, job_id: JobId, segments: usize, drift: Option<i64>) -> Audit {
        let Check { proven, findings, chunks, planned, counts, .. } = self;
        Audit { job_id, proven, segments, chunks, planned, counts, drift, findings }
    }
}
