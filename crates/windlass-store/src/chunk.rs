//! Chunks, from planning to their end.

use chrono::{DateTime, Utc};
use serde::Serialize;
use windlass_core::{ChunkStatus, Counts, Cursor, JobId, KeySet};

use crate::values::clean;
use crate::{Lease, NewPart};

/// A chunk that planning has cut.
#[derive(Clone, Debug)]
pub struct NewChunk {
    /// Its records.
    pub key_set: KeySet,
    /// The number of its records.
    pub items: i64,
}

/// A chunk that ends at its cursor, and the chunks that its remaining records become.
#[derive(Clone, Debug)]
pub struct Split {
    /// The chunk: its records up to the cursor, and how many of the planned records they are.
    pub kept: NewChunk,
    /// The remaining records. The numbers of records of `kept` and `rest` add up to that of the chunk before.
    pub rest: Vec<NewChunk>,
}

/// A leased chunk.
#[derive(Clone, Debug)]
pub struct LeasedChunk {
    /// The lease.
    pub lease: Lease,
    /// Its records.
    pub key_set: KeySet,
    /// The number of its records when it was planned.
    pub items: i64,
    /// The number of failed attempts.
    pub attempts: u32,
    /// Whether the previous lease was lost.
    pub lost: bool,
    /// The error of an earlier lease.
    pub error: Option<String>,
}

/// The progress of a chunk, as its ledger row records it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The cursor.
    pub cursor: Cursor,
    /// The counts.
    pub counts: Counts,
    /// The rows that have got the mark of `step.mark`. `None` keeps the stored number.
    pub marked: Option<i64>,
}

/// How a chunk ends. In a redrive, `settled` names the keys whose items are done.
#[derive(Clone, Debug)]
pub enum ChunkOutcome {
    /// All items are processed, skipped or dead letters.
    Completed {
        /// Keys whose dead letters become `reprocessed`, unless the item failed again.
        settled: Vec<String>,
        /// The output of the chunk.
        part: Option<NewPart>,
        /// How many more records it had than were planned, if planning estimated their number.
        more_items: i64,
    },
    /// The chunk failed for good.
    Failed {
        /// The last error.
        error: String,
        /// Whether the job fails at once.
        fail_job: bool,
        /// Keys whose dead letters become `reprocessed`.
        settled: Vec<String>,
    },
    /// The job was cancelled.
    Cancelled {
        /// Keys whose dead letters become `reprocessed`.
        settled: Vec<String>,
    },
}

impl ChunkOutcome {
    /// A failure. NUL characters in the error are replaced, since PostgreSQL cannot store them.
    pub fn failed(error: &str, fail_job: bool, settled: &[String]) -> ChunkOutcome {
        ChunkOutcome::Failed { error: clean(error), fail_job, settled: settled.to_vec() }
    }

    pub(crate) fn settled(&self) -> &[String] {
        match self {
            ChunkOutcome::Completed { settled, .. }
            | ChunkOutcome::Failed { settled, .. }
            | ChunkOutcome::Cancelled { settled } => settled,
        }
    }

    /// How many more records the chunk had than were planned, if planning estimated their number.
    pub(crate) fn more_items(&self) -> Option<i64> {
        match self {
            ChunkOutcome::Completed { more_items, .. } if *more_items != 0 => Some(*more_items),
            _ => None,
        }
    }

    pub(crate) fn error(&self) -> Option<&str> {
        match self {
            ChunkOutcome::Failed { error, .. } => Some(error),
            _ => None,
        }
    }

    pub(crate) fn status(&self) -> ChunkStatus {
        match self {
            ChunkOutcome::Completed { .. } => ChunkStatus::Completed,
            ChunkOutcome::Failed { .. } => ChunkStatus::Failed,
            ChunkOutcome::Cancelled { .. } => ChunkStatus::Cancelled,
        }
    }
}

/// A chunk in a listing.
///
/// ```
/// use windlass_store::ChunkRow;
///
/// fn line(chunk: &ChunkRow) -> String {
///     format!("{} {}: {} items", chunk.chunk, chunk.status, chunk.items)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Chunk))]
#[serde(rename_all = "camelCase")]
pub struct ChunkRow {
    /// The job.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub job_id: JobId,
    /// The number of the chunk.
    pub chunk: i64,
    /// The segment it was cut from.
    pub segment: i32,
    /// Its status.
    pub status: ChunkStatus,
    /// The number of its leases.
    pub epoch: i64,
    /// Its records.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub key_set: KeySet,
    /// The number of its records when it was planned.
    pub items: i64,
    /// The key up to which everything is committed.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub cursor: Cursor,
    /// The counts of its items by outcome.
    pub counts: Counts,
    /// The rows that were marked, for job types with `step.mark`.
    pub rows_marked: Option<i64>,
    /// The rows that were updated, for job types with `step.mark`.
    pub rows_updated: Option<i64>,
    /// `already processed` if the chunk is completed and none of its rows was left to mark or update.
    pub message: Option<String>,
    /// The number of failed attempts.
    pub attempts: u32,
    /// The number of lost leases.
    pub losses: u32,
    /// The worker that has the lease, or had it last.
    pub worker: Option<String>,
    /// When it was first leased.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// Its last error.
    pub error: Option<String>,
}
