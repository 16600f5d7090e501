//! A job as the CLI and the API show it.

use crate::{JobStatus, Phase, Request};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The id of a job: a UUID of version 7, so that ids sort by age, and jobs of a new store never match old
/// ledger rows.
///
/// ```
/// use windlass_core::JobId;
///
/// let id: JobId = "0198c0dd-5a2b-7c11-9d0e-3f2a91c4e5d6".parse()?;
/// assert_eq!(id.get_version_num(), 7);
/// # Ok::<(), uuid::Error>(())
/// ```
pub type JobId = uuid::Uuid;

/// The id of a chunk: its job and its number, counted from 0 without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChunkId {
    /// The job.
    pub job: JobId,
    /// The chunk's number.
    pub number: i64,
}

impl std::fmt::Display for ChunkId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "chunk {} of job {}", self.number, self.job)
    }
}

/// One run of a job type, as the CLI and the API show it.
///
/// ```
/// use windlass_core::{Job, JobStatus};
///
/// fn summary(job: &Job) -> String {
///     match job.status {
///         JobStatus::Failed => format!("failed: {}", job.error.as_deref().unwrap_or_default()),
///         status => format!("{status}: {} of {} items", job.items.done(), job.items.total),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub id: JobId,
    /// The job type.
    pub job_type: String,
    /// The status.
    pub status: JobStatus,
    /// The phase, while `PROCESSING`.
    pub phase: Option<Phase>,
    /// What it waits for while it is `QUEUED` or `PROCESSING`: `slots`, `rate`, `health`, `retry`, `jobs`,
    /// `stopped`, `step unavailable`, `database unavailable since …`, or `leases of worker … until …`.
    #[serde(default)]
    pub waits_for: Option<String>,
    /// 0 to 9; higher runs first.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9))]
    pub priority: u8,
    /// The request, without its items.
    pub request: Request,
    /// What a listing omits of the request: the number of `ids`, `items`, `after` and values of
    /// `filter.NAME`, and the bytes of `params.NAME`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub omitted: BTreeMap<String, u64>,
    /// The submitter.
    pub submitted_by: String,
    /// When it was submitted.
    pub created_at: DateTime<Utc>,
    /// When its first segment was leased.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// How long it was paused, or failed and not yet retried, since it started.
    #[serde(skip)]
    pub waited: TimeDelta,
    /// Its items by outcome.
    pub items: ItemCounts,
    /// Its chunks by status.
    pub chunks: ChunkCounts,
    /// What it wrote, once it is completed. Listings leave it out.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub outputs: Vec<JobOutput>,
    /// Why it failed, is paused, or waits.
    pub error: Option<String>,
}

/// Something that a job wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobOutput {
    /// What it is.
    pub kind: OutputKind,
    /// The file or object, or `CONNECTION.TABLE`.
    pub to: String,
    /// Its rows; unknown for a page.
    pub rows: Option<i64>,
}

/// The kind of a job's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum OutputKind {
    /// Rows that were changed in the source.
    Table,
    /// Rows that were loaded into a table.
    Load,
    /// The manifest of exported files.
    Export,
    /// The file of a report.
    Report,
    /// The page beside a report.
    Page,
}

impl OutputKind {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            OutputKind::Table => "table",
            OutputKind::Load => "load",
            OutputKind::Export => "export",
            OutputKind::Report => "report",
            OutputKind::Page => "page",
        }
    }
}

impl Job {
    /// Whether it has ended. A failed job can still be retried.
    pub fn has_ended(&self) -> bool {
        self.status.is_final() && self.finished_at.is_some()
    }

    /// What it waits for, as a sentence without a subject.
    pub fn waiting(&self) -> Option<String> {
        let waits_for = self.waits_for.as_deref()?;
        let is_noun = matches!(waits_for, "slots" | "rate" | "health" | "retry" | "jobs");
        match is_noun || waits_for.starts_with("leases ") {
            true => Some(format!("waits for {waits_for}")),
            false => Some(waits_for.to_owned()),
        }
    }

    /// The time from its start to its end or to now, without the time in which it was paused or failed.
    pub fn working_time(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let since_start = self.finished_at.unwrap_or(now) - self.started_at?;
        Some((since_start - self.waited).max(TimeDelta::zero()))
    }

    /// When it will end at its average rate; now at the earliest. Unknown before its first item is done, and
    /// while it is planned, since the number of its items is not known before.
    pub fn projected_end(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let done = Some(self.items.done()).filter(|done| *done > 0)?;
        let so_far = self.working_time(now).filter(|_| self.phase != Some(Phase::Planning))?;
        let left = (self.items.total - done).max(0) as f64 / done as f64;
        let left = so_far.as_seconds_f64() * left;
        Some(now + TimeDelta::milliseconds((left * 1000.0).min(1e15) as i64))
    }
}

/// The items of a job. Chunks in progress count as far as they are committed.
///
/// ```
/// use windlass_core::ItemCounts;
///
/// let items = ItemCounts { total: 5, processed: 2, skipped: 1, dead: 1, conflicts: 0 };
/// assert_eq!(items.done(), 4);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ItemCounts {
    /// Items planned so far.
    pub total: i64,
    /// Items processed.
    pub processed: i64,
    /// Items skipped.
    pub skipped: i64,
    /// Items that became dead letters.
    pub dead: i64,
    /// Concurrent writes that were detected and not overwritten.
    pub conflicts: i64,
}

impl ItemCounts {
    /// Items that are processed, skipped or dead letters.
    pub fn done(&self) -> i64 {
        self.processed + self.skipped + self.dead
    }
}

/// The chunks of a job by status.
///
/// ```
/// use windlass_core::ChunkCounts;
///
/// let chunks = ChunkCounts { total: 4, completed: 3, failed: 1, ..ChunkCounts::default() };
/// assert_eq!(chunks.pending, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChunkCounts {
    /// Chunks planned so far.
    pub total: i64,
    /// Waiting for a worker.
    pub pending: i64,
    /// In progress.
    pub processing: i64,
    /// Completed.
    pub completed: i64,
    /// Failed.
    pub failed: i64,
    /// Cancelled.
    pub cancelled: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    fn job(started: Option<i64>, done: i64) -> Job {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let mut job = json!({
            "id": JobId::nil(), "jobType": "J", "status": "PROCESSING", "priority": 5,
            "request": {"jobType": "J"}, "submittedBy": "me", "createdAt": at(0),
            "items": {"total": 100, "processed": done, "skipped": 0, "dead": 0, "conflicts": 0},
            "chunks": {"total": 1, "pending": 0, "processing": 1, "completed": 0, "failed": 0,
                "cancelled": 0},
        });
        job["startedAt"] = started.map_or(Json::Null, |started| json!(at(started)));
        serde_json::from_value(job).unwrap()
    }

    fn end(started: Option<i64>, done: i64, now: i64) -> Option<i64> {
        let now = DateTime::from_timestamp(now, 0).unwrap();
        job(started, done).projected_end(now).map(|end| end.timestamp())
    }

    #[test]
    fn a_job_is_expected_to_go_on_as_it_has() {
        assert_eq!(end(None, 0, 50), None);
        assert_eq!(end(Some(0), 50, 50), Some(100));
        assert_eq!(end(Some(0), 100, 50), Some(50), "now at the earliest");
        assert_eq!(end(Some(0), 0, 50), None, "nothing is done, so there is no rate");
        let planning = Job { phase: Some(Phase::Planning), ..job(Some(0), 50) };
        let now = DateTime::from_timestamp(50, 0).unwrap();
        assert_eq!(planning.projected_end(now), None, "more items may come");
    }

    #[test]
    fn time_in_which_a_job_was_paused_does_not_count() {
        let mut job = job(Some(0), 50);
        job.waited = TimeDelta::seconds(40);
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        assert_eq!(job.working_time(at(50)), Some(TimeDelta::seconds(10)));
        assert_eq!(
            job.projected_end(at(50)),
            Some(at(60)),
            "the second half takes ten seconds too"
        );
    }
}
