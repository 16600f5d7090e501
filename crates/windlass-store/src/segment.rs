//! Segments, which planning cuts into chunks.

use serde::Serialize;
use windlass_core::{ChunkStatus, KeyRange, PaginationState};

use crate::{NewChunk, SegmentLease};

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
