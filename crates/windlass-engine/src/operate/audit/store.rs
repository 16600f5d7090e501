//! The store against itself: segments tile the source, chunks tile their segments, and all totals
//! agree.

use super::verdict::Notes;
use std::collections::{BTreeMap, HashSet};
use windlass_core::{
    ChunkStatus, Counts, Cursor, Job, JobStatus, Key, KeyRange, Keys, PaginationState,
};
use windlass_store::{ChunkRow, JobSnapshot, SegmentRow};

/// What is known while the chunks go by.
pub(super) struct StoreCheck<'a> {
    job: &'a Job,
    snapshot: &'a JobSnapshot,
    segments: usize,
    chunks: i64,
    /// The number of the next chunk.
    next: i64,
    planned: i64,
    counts: Counts,
    /// Items planned, by segment.
    planned_in: BTreeMap<i32, i64>,
    /// Up to where each segment (and filter value) is tiled so far.
    reached: BTreeMap<(i32, String), Option<Key>>,
    starts: BTreeMap<i32, Option<Key>>,
    /// The keys of lists, to find one that is listed twice.
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
            reached: BTreeMap::new(),
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

    /// The segments are those that the plan made, and tile everything up to the greatest key.
    pub(super) fn segments(&mut self, segments: &[SegmentRow], notes: &mut Notes) {
        let status = self.job.status;
        notes.expect(status == JobStatus::Completed, || {
            format!("the job is {status}, not COMPLETED")
        });
        self.segments = segments.len();
        for (expected, row) in (0..).zip(segments) {
            let number = row.segment;
            notes.expect(number == expected, || {
                format!("a segment before segment {number} is missing")
            });
            notes.expect(row.status == ChunkStatus::Completed, || {
                format!("segment {number} is {}, not COMPLETED", row.status)
            });
            self.starts.insert(number, row.range.after.clone());
        }
        if let Some(PaginationState::TableScan { total_segments, .. }) =
            segments.first().filter(|row| row.segment == 0).map(|row| &row.state)
        {
            let merges = segments.iter().filter(|row| row.state == PaginationState::Merge).count();
            let planned = segments.len() - 1 - merges;
            notes.expect(planned == *total_segments as usize, || {
                format!("the plan made {total_segments} segments, but there are {planned}")
            });
            let expected = usize::from(self.snapshot.definition.merges());
            notes.expect(merges == expected || status != JobStatus::Completed, || {
                format!("there are {merges} merges where {expected} is right")
            });
        }
        let is_scan = |row: &&SegmentRow| {
            row.segment > 0 && matches!(row.state, PaginationState::TableScan { .. })
        };
        let scans: Vec<&KeyRange> = segments.iter().filter(is_scan).map(|row| &row.range).collect();
        if let Some(last) = scans.last() {
            let whole = KeyRange { after: None, upto: last.upto.clone() };
            // Parts that their database numbers itself have no ranges.
            let tiles = scans.iter().all(|range| **range == KeyRange::ALL)
                || whole.check_tiling(scans.iter().copied()).is_ok();
            notes.expect(tiles, || "the segments leave a gap or overlap".to_owned());
        }
    }

    pub(super) fn chunk(&mut self, chunk: &ChunkRow, notes: &mut Notes) {
        let number = chunk.chunk;
        let expected = self.next;
        notes.expect(number == expected, || format!("chunk {expected} is missing"));
        self.next = number + 1;
        self.chunks += 1;
        self.planned += chunk.items;
        *self.planned_in.entry(chunk.segment).or_default() += chunk.items;
        self.counts += chunk.counts;
        notes.expect(chunk.status == ChunkStatus::Completed, || {
            format!("chunk {number} is {}, not COMPLETED", chunk.status)
        });
        notes.expect(chunk.cursor == Cursor::End, || {
            let cursor = chunk.cursor.to_text();
            format!("chunk {number} did not reach its end: its cursor is {cursor}")
        });
        let Counts { read, processed, skipped, dead, .. } = chunk.counts;
        notes.expect(chunk.counts.add_up(), || {
            format!(
                "chunk {number} read {read} rows, but processed {processed}, skipped {skipped} \
                 and set aside {dead}"
            )
        });
        notes.expect(self.starts.contains_key(&chunk.segment), || {
            format!("chunk {number} is of segment {}, which is missing", chunk.segment)
        });
        let within = chunk.key_set.within.as_ref();
        let within = within.map_or(String::new(), |within| within.value.to_string());
        match &chunk.key_set.keys {
            Keys::List(keys) => {
                notes.expect(keys.len() as i64 == chunk.items, || {
                    let listed = keys.len();
                    format!("chunk {number} lists {listed} keys, but was cut with {}", chunk.items)
                });
                for key in keys {
                    let first = self.listed.insert(format!("{within}\0{}", key.to_text()));
                    notes.expect(first, || {
                        format!("chunk {number} lists {key}, which another chunk has")
                    });
                }
            }
            Keys::Range(range) => {
                let start = self.starts.get(&chunk.segment).cloned().flatten();
                let reached = self.reached.entry((chunk.segment, within)).or_insert(start);
                let begins_there = *reached == range.after;
                *reached = range.upto.clone();
                notes.expect(begins_there, || {
                    format!("chunk {number} does not begin where the one before it ends")
                });
            }
        }
    }

    /// After the last chunk: each segment's chunks are all that its pagination state says, and the
    /// job's own totals are those of its chunks.
    pub(super) fn end(&mut self, segments: &[SegmentRow], notes: &mut Notes) {
        let limit = self.snapshot.request.max_items_per_segment;
        for row in segments {
            let number = row.segment;
            let enqueued = match &row.state {
                PaginationState::TableScan { items_enqueued, .. } => *items_enqueued,
                PaginationState::IndexQuery { remaining_values, items_enqueued, .. } => {
                    let stopped = limit.is_some_and(|limit| *items_enqueued >= limit);
                    notes.expect(stopped || remaining_values.is_empty(), || {
                        let left = remaining_values.len();
                        format!(
                            "segment {number} was not planned to its end: {left} values are left"
                        )
                    });
                    *items_enqueued
                }
                PaginationState::Plan | PaginationState::Merge => 0,
            };
            let planned = self.planned_in.get(&number).copied().unwrap_or_default();
            notes.expect(planned == enqueued as i64, || {
                format!("segment {number} enqueued {enqueued} items, but its chunks have {planned}")
            });
            let is_scan = matches!(row.state, PaginationState::TableScan { .. });
            if number > 0 && is_scan && row.range != KeyRange::ALL {
                let stopped = limit.is_some_and(|limit| enqueued >= limit);
                let reached = self.reached.get(&(number, String::new()));
                notes.expect(stopped || reached == Some(&row.range.upto), || {
                    format!("the chunks of segment {number} do not reach its end")
                });
            }
        }
        if let Some(ids) = &self.snapshot.request.ids {
            let (asked, listed) = (ids.len(), self.listed.len());
            notes.expect(listed <= asked, || {
                format!("{asked} ids were asked for, but the chunks list {listed} keys")
            });
        }
        if self.job.status.is_final() {
            self.totals(notes);
        }
    }

    /// The totals that the job's row keeps.
    fn totals(&self, notes: &mut Notes) {
        let Job { items, chunks, .. } = self.job;
        for (name, said, found) in [
            ("chunks", chunks.total, self.chunks),
            ("items", items.total, self.planned),
            ("processed items", items.processed, self.counts.processed),
            ("skipped items", items.skipped, self.counts.skipped),
            ("dead items", items.dead, self.counts.dead),
            ("conflicts", items.conflicts, self.counts.conflicts),
        ] {
            notes.expect(said == found, || {
                format!("the job's row has {said} {name}, its chunks add up to {found}")
            });
        }
        let ended = chunks.completed + chunks.failed + chunks.cancelled;
        notes.expect(ended == self.chunks, || {
            format!("the job's row has {ended} chunks that ended, but there are {}", self.chunks)
        });
    }
}
