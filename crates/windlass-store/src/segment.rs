//! Segments, which planning cuts into chunks.

use serde::Serialize;
use windlass_core::{ChunkStatus, KeyRange, PaginationState};

use crate::{NewChunk, NewReadSnapshot, SegmentLease};

/// A segment that a plan has found.
#[derive(Clone, Debug)]
pub struct NewSegment {
    /// The pagination state to begin with.
    pub state: PaginationState,
    /// The keys that bound it.
    pub range: KeyRange,
}

/// A leased segment.
#[derive(Clone, Debug)]
pub struct LeasedSegment {
    /// The lease.
    pub lease: SegmentLease,
    /// The pagination state.
    pub state: PaginationState,
    /// The keys that bound it; all keys for a plan or an index query.
    pub range: KeyRange,
    /// The number of failed attempts.
    pub attempts: u32,
}

/// One page of planning.
#[derive(Clone, Debug)]
pub struct Page {
    /// The lease of the segment.
    pub lease: SegmentLease,
    /// The state that the page began with. The segment must still be in it.
    pub from: PaginationState,
    /// The state after the page.
    pub to: PaginationState,
    /// Whether the segment ends with this page.
    pub last: bool,
    /// The segments that a plan found.
    pub segments: Vec<NewSegment>,
    /// The chunks that were cut.
    pub chunks: Vec<NewChunk>,
    /// The chunks are all those of the one segment that the plan found. That segment ends with this page too.
    pub planned: bool,
    /// The read snapshot that the planner holds, if the chunks of the job are read under one.
    pub read_snapshot: Option<NewReadSnapshot>,
}

impl Page {
    /// Has its chunks read under the job's snapshot of this number, or each at its own instant.
    pub fn read_under(&mut self, number: Option<i64>) {
        self.chunks.iter_mut().for_each(|chunk| chunk.key_set.snapshot = number);
    }

    /// The status of the segments that it adds.
    pub(crate) fn status_of_segments(&self) -> ChunkStatus {
        if self.planned { ChunkStatus::Completed } else { ChunkStatus::Pending }
    }

    /// How many more segments are open after it; negative if there are fewer.
    pub(crate) fn opened_segments(&self) -> i64 {
        let added = if self.planned { 0 } else { self.segments.len() as i64 };
        added - i64::from(self.last)
    }

    /// The segment of its chunks, if the segments that it adds begin with this number.
    pub(crate) fn segment_of_chunks(&self, first_added: i64) -> i64 {
        if self.planned { first_added } else { i64::from(self.lease.segment) }
    }
}

/// The whole plan of a small job, which is stored with the job.
#[derive(Clone, Debug)]
pub struct CompletePlan {
    /// The pagination state after the plan.
    pub state: PaginationState,
    /// The segments that it found. All of them are cut.
    pub segments: Vec<NewSegment>,
    /// The chunks of the last segment, or of the plan if that found no segments. There is at least one.
    pub chunks: Vec<NewChunk>,
}

/// A segment in a listing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Segment))]
#[serde(rename_all = "camelCase")]
pub struct SegmentRow {
    /// The number of the segment; zero is the plan.
    pub segment: i32,
    /// Its status.
    pub status: ChunkStatus,
    /// The pagination state.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub state: PaginationState,
    /// The keys that bound it.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub range: KeyRange,
    /// Its last error.
    pub error: Option<String>,
}
