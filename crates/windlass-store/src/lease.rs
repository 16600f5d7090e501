//! The units of claim and lease: segments while a job loads, chunks while it works.

use chrono::{DateTime, Utc};
use serde::Serialize;
use windlass_core::{
    ChunkId, ChunkStatus, Counts, Cursor, JobId, KeyRange, KeySet, PaginationState,
};

/// What a process can work on: it claims nothing that it could not do.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    /// The process, as listings show it.
    pub worker: String,
    /// The connections it has.
    pub connections: Vec<String>,
    /// The handlers registered in it.
    pub handlers: Vec<String>,
    /// Only this job, for `windlass run`.
    pub only: Option<JobId>,
    /// Only chunks of jobs with a higher priority than this.
    pub above: Option<u8>,
}

/// A chunk held at an epoch: the next claim has a higher one. The nonce tells the claim from
/// one at the same epoch of the same store before it was restored from a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The chunk.
    pub chunk: ChunkId,
    /// The claim's number.
    pub epoch: i64,
    /// The claim's random number.
    pub nonce: i64,
}

/// A segment held at an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentLease {
    /// The job.
    pub job: JobId,
    /// The segment's number; zero is the plan.
    pub segment: i32,
    /// The claim's number.
    pub epoch: i64,
    /// The claim's random number.
    pub nonce: i64,
}

/// A claimed chunk.
#[derive(Clone, Debug)]
pub struct ClaimedChunk {
    /// The chunk and the epoch it is held at.
    pub lease: Lease,
    /// Its records.
    pub key_set: KeySet,
    /// How many records it had when it was cut.
    pub items: i64,
    /// How often the work on it has failed.
    pub attempts: u32,
    /// Whether the claim before this one ended by a lost lease.
    pub lost: bool,
    /// Its last error, from an earlier claim.
    pub error: Option<String>,
}

/// A claimed segment.
#[derive(Clone, Debug)]
pub struct ClaimedSegment {
    /// The segment and the epoch it is held at.
    pub lease: SegmentLease,
    /// Where its load stands.
    pub state: PaginationState,
    /// The keys it is bounded by; everything for a plan or an index query.
    pub range: KeyRange,
    /// How often loading it has failed.
    pub attempts: u32,
}

/// One page of a load.
#[derive(Clone, Debug)]
pub struct Page {
    /// The segment.
    pub lease: SegmentLease,
    /// The state the page began with; the segment must still be in it.
    pub from: PaginationState,
    /// The state after the page.
    pub to: PaginationState,
    /// Whether the segment is loaded with this page.
    pub last: bool,
    /// Segments a plan found.
    pub segments: Vec<NewSegment>,
    /// Chunks the page cut.
    pub chunks: Vec<NewChunk>,
}

/// A segment found by a plan.
#[derive(Clone, Debug)]
pub struct NewSegment {
    /// Where its load begins.
    pub state: PaginationState,
    /// The keys it is bounded by.
    pub range: KeyRange,
}

/// A chunk that was cut.
#[derive(Clone, Debug)]
pub struct NewChunk {
    /// Its records.
    pub key_set: KeySet,
    /// How many there are.
    pub items: i64,
}

/// How far a chunk is, copied from its ledger row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Its cursor.
    pub cursor: Cursor,
    /// Its counts.
    pub counts: Counts,
}

/// A sign of life for one chunk.
#[derive(Clone, Debug)]
pub struct LeaseRenewal {
    /// The chunk.
    pub lease: Lease,
    /// How far it is; `None` before the ledger was read.
    pub progress: Option<Progress>,
}

/// How a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Go on.
    Held,
    /// Still held, but the job is paused, cancelled or failed: hand the chunk back.
    HandBack,
    /// Somebody else holds the chunk, or it has ended: stop at once.
    Lost,
}

/// Whether a change was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Kept {
    /// It was, now or by an earlier call that is being repeated.
    Yes,
    /// The lease is lost; nothing was changed.
    Lost,
}

/// A chunk as people see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Chunk))]
#[serde(rename_all = "camelCase")]
pub struct ChunkRow {
    /// The job.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub job_id: JobId,
    /// The chunk's number, from zero.
    pub chunk: i64,
    /// The segment it was cut from.
    pub segment: i32,
    /// Where it is in its life.
    pub status: ChunkStatus,
    /// How often it was claimed.
    pub epoch: i64,
    /// Its records: a range of keys or a list.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub key_set: KeySet,
    /// How many it had when it was cut.
    pub items: i64,
    /// How far it is committed: null, a key, a number of keys, or `"end"`.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub cursor: Cursor,
    /// What became of its items.
    pub counts: Counts,
    /// How often the work on it failed.
    pub attempts: u32,
    /// How often its lease was lost.
    pub losses: u32,
    /// Who holds it, or did last.
    pub worker: Option<String>,
    /// When it was first claimed.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// Its last error.
    pub error: Option<String>,
}

/// A segment as the audit sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Segment))]
#[serde(rename_all = "camelCase")]
pub struct SegmentRow {
    /// The segment's number; zero is the plan.
    pub segment: i32,
    /// Where it is in its life.
    pub status: ChunkStatus,
    /// Where its load stands.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub state: PaginationState,
    /// The keys it is bounded by.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub range: KeyRange,
    /// Its last error.
    pub error: Option<String>,
}
