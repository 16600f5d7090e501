//! Checks the store against itself: segments tile the source, chunks tile their segments, and all
//! totals agree.

use super::coverage::Coverage;
use super::verdict::Findings;
use std::collections::{BTreeMap, HashSet};
use windlass_core::{ChunkStatus, Counts, Job, JobStatus, Key, KeyRange, Keys, PaginationState};
use windlass_store::{ChunkRow, JobSnapshot, SegmentRow};

/// State of the check, updated chunk by chunk.
pub(super) struct StoreCheck<'a> {
    job: &'a Job,
    snapshot: &'a JobSnapshot,
    segments: usize,
    chunks: i64,
    /// Expected number of the next chunk.
    next: i64,
    planned: i64,
    counts: Counts,
    /// Items planned per segment.
    planned_in: BTreeMap<i32, i64>,
    /// The ranges covered so far, per segment and filter value.
    covered: BTreeMap<(i32, String), Coverage>,
    /// The block at which the next chunk must start. `None` after the chunk that has all further blocks.
    next_block: Option<u64>,
    /// Whether chunks are blocks of the table.
    by_blocks: bool,
    /// The start of each segment's range.
    starts: BTreeMap<i32, Option<Key>>,
    /// All listed keys, to detect one that is listed twice.
    listed: HashSet<String>,
}

impl<'a> StoreCheck<'a> {
    pub(super) fn new(job: &'a Job, snapshot: &'a JobSnapshot) -> StoreCheck<'a> {
        StoreCheck {
            job,
            snapshot,
            segments: 0,
            chunks: 0,
            next: 0,
            planned: 0,
            counts: Counts::default(),
            planned_in: BTreeMap::new(),
            covered: BTreeMap::new(),
            next_block: Some(0),
            by_blocks: false,
            starts: BTreeMap::new(),
            listed: HashSet::new(),
        }
    }

    pub(super) fn segment_count(&self) -> usize {
        self.segments
    }

    pub(super) fn chunk_count(&self) -> i64 {
        self.chunks
    }

    pub(super) fn planned(&self) -> i64 {
        self.planned
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Checks that the segments are those of the plan, and tile all keys up to the greatest one.
    pub(super) fn segments(&mut self, segments: &[SegmentRow], findings: &mut Findings) {
        let status = self.job.status;
        findings.require(status == JobStatus::Completed, || {
            format!("the job is {status}, not COMPLETED")
        });
        self.segments = segments.len();
        for (expected, row) in (0..).zip(segments) {
            let number = row.segment;
            findings.require(number == expected, || {
                format!("a segment before segment {number} is missing")
            });
            findings.require(row.status == ChunkStatus::Completed, || {
                format!("segment {number} is {}, not COMPLETED", row.status)
            });
            self.starts.insert(number, row.range.after.clone());
        }
        if let Some(PaginationState::TableScan { total_segments, .. }) =
            segments.first().filter(|row| row.segment == 0).map(|row| &row.state)
        {
            let merges = segments.iter().filter(|row| row.state == PaginationState::Merge).count();
            let planned = segments.len() - 1 - merges;
            findings.require(planned == *total_segments as usize, || {
                format!("the plan made {total_segments} segments, but there are {planned}")
            });
            let expected = usize::from(self.snapshot.definition.merges());
            findings.require(merges == expected || status != JobStatus::Completed, || {
                format!("there are {merges} merges, expected {expected}")
            });
        }
        let is_scan = |row: &&SegmentRow| {
            row.segment > 0 && matches!(row.state, PaginationState::TableScan { .. })
        };
        let scans: Vec<&KeyRange> = segments.iter().filter(is_scan).map(|row| &row.range).collect();
        if let Some(last) = scans.last() {
            let whole = KeyRange { after: None, upto: last.upto.clone() };
            // Segments that the database numbers itself have no ranges.
            let tiles = scans.iter().all(|range| **range == KeyRange::ALL)
                || whole.check_tiling(scans.iter().copied()).is_ok();
            findings.require(tiles, || "the segments leave a gap or overlap".to_owned());
        }
    }

    pub(super) fn chunk(&mut self, chunk: &ChunkRow, findings: &mut Findings) {
        let number = chunk.chunk;
        let expected = self.next;
        findings.require(number == expected, || format!("chunk {expected} is missing"));
        self.next = number + 1;
        self.chunks += 1;
        self.planned += chunk.items;
        *self.planned_in.entry(chunk.segment).or_default() += chunk.items;
        self.counts += chunk.counts;
        findings.require(chunk.status == ChunkStatus::Completed, || {
            format!("chunk {number} is {}, not COMPLETED", chunk.status)
        });
        findings.require(chunk.cursor.is_at_end_of(&chunk.key_set), || {
            let cursor = chunk.cursor.to_text();
            format!("chunk {number} did not reach its end: its cursor is {cursor}")
        });
        let Counts { read, processed, skipped, dead, .. } = chunk.counts;
        findings.require(chunk.counts.add_up(), || {
            format!(
                "chunk {number} read {read} rows, but {processed} processed, {skipped} skipped and \
                 {dead} dead do not add up to that"
            )
        });
        findings.require(self.starts.contains_key(&chunk.segment), || {
            format!("chunk {number} belongs to segment {}, which is missing", chunk.segment)
        });
        let within = chunk.key_set.within.as_ref();
        let within = within.map_or(String::new(), |within| within.value.to_string());
        if let Some(blocks) = chunk.key_set.blocks {
            let starts_there = self.next_block == Some(blocks.from);
            self.by_blocks = true;
            self.next_block = blocks.before;
            findings.require(starts_there, || {
                format!("chunk {number} does not start at the block where the previous chunk ends")
            });
        }
        match &chunk.key_set.keys {
            Keys::Range(_) if chunk.key_set.blocks.is_some() => {}
            Keys::List(keys) => {
                findings.require(keys.len() as i64 == chunk.items, || {
                    let listed = keys.len();
                    format!(
                        "chunk {number} lists {listed} keys, but was planned with {}",
                        chunk.items
                    )
                });
                for key in keys {
                    let first = self.listed.insert(format!("{within}\0{}", key.to_text()));
                    findings.require(first, || {
                        format!("chunk {number} lists key {key}, which another chunk lists too")
                    });
                }
            }
            Keys::Range(range) => {
                self.covered.entry((chunk.segment, within)).or_default().add(number, range);
            }
        }
    }

    /// After the last chunk: checks that the chunks of each segment match its pagination state, and that
    /// the job's own totals match its chunks.
    pub(super) fn end(&mut self, segments: &[SegmentRow], findings: &mut Findings) {
        let limit = self.snapshot.request.max_items_per_segment;
        let mut reached = BTreeMap::new();
        for ((segment, within), covered) in std::mem::take(&mut self.covered) {
            let start = self.starts.get(&segment).cloned().flatten();
            match covered.end(start) {
                Ok(end) => drop(reached.insert((segment, within), end)),
                Err(number) => findings.contradiction(format!(
                    "chunk {number} does not start where another chunk of its segment ends"
                )),
            }
        }
        for row in segments {
            let number = row.segment;
            let enqueued = match &row.state {
                PaginationState::TableScan { items_enqueued, .. } => *items_enqueued,
                PaginationState::IndexQuery { remaining_values, items_enqueued, .. } => {
                    let stopped = limit.is_some_and(|limit| *items_enqueued >= limit);
                    findings.require(stopped || remaining_values.is_empty(), || {
                        let left = remaining_values.len();
                        format!(
                            "segment {number} was not planned to its end: {left} filter values remain"
                        )
                    });
                    *items_enqueued
                }
                PaginationState::Plan | PaginationState::Merge => 0,
            };
            let planned = self.planned_in.get(&number).copied().unwrap_or_default();
            // Planning by blocks estimates the number of items.
            findings.require(planned == enqueued as i64 || self.by_blocks, || {
                format!("segment {number} enqueued {enqueued} items, but its chunks have {planned}")
            });
            let is_scan = matches!(row.state, PaginationState::TableScan { .. });
            if number > 0 && is_scan && row.range != KeyRange::ALL {
                let stopped = limit.is_some_and(|limit| enqueued >= limit);
                let reached = reached.get(&(number, String::new()));
                findings.require(stopped || reached == Some(&row.range.upto), || {
                    format!("the chunks of segment {number} do not reach its end")
                });
            }
        }
        findings.require(!self.by_blocks || self.next_block.is_none(), || {
            "the chunks do not reach the last block of the table".to_owned()
        });
        if let Some(ids) = &self.snapshot.request.ids {
            let (asked, listed) = (ids.len(), self.listed.len());
            findings.require(listed <= asked, || {
                format!("the request has {asked} ids, but the chunks list {listed} keys")
            });
        }
        if self.job.status.is_final() {
            self.totals(findings);
        }
    }

    /// Checks the totals in the job's row.
    fn totals(&self, findings: &mut Findings) {
        let Job { items, chunks, .. } = self.job;
        for (name, stored, found) in [
            ("chunks", chunks.total, self.chunks),
            ("items", items.total, self.planned),
            ("processed items", items.processed, self.counts.processed),
            ("skipped items", items.skipped, self.counts.skipped),
            ("dead items", items.dead, self.counts.dead),
            ("conflicts", items.conflicts, self.counts.conflicts),
        ] {
            findings.require(stored == found, || {
                format!("the job's row has {stored} {name}, but its chunks add up to {found}")
            });
        }
        let ended = chunks.completed + chunks.failed + chunks.cancelled;
        findings.require(ended == self.chunks, || {
            format!("the job's row has {ended} ended chunks, but there are {} chunks", self.chunks)
        });
    }
}
