//! What the JSON of the API looks like, for its document. The values themselves are the engine's
//! and the store's own; the tests hold these descriptions to them.

#![allow(dead_code, reason = "they describe, and are never made outside tests")]

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use uuid::Uuid;

/// Writes descriptions that take nothing beyond their fields.
macro_rules! shapes {
    ($($(#[$meta:meta])* struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })+) => {$(
        $(#[$meta])*
        #[derive(Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(crate) struct $name { $($(#[$field_meta])* pub(crate) $field: $type,)* }
    )+};
}

shapes! {
    /// A request for one job. Only `jobType` is needed.
    struct Request {
        /// Which job type.
        job_type: String,
        /// Values by filter; none, null and empty lists mean all. At most 10,000 values a filter, each of
        /// at most 4096 bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filter: Option<BTreeMap<String, Option<Vec<Json>>>>,
        /// How many segments are loaded side by side; chosen by the table's size when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(minimum = 1, maximum = 1000)]
        parallel_segments: Option<u32>,
        /// A segment stops after so many items.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(minimum = 1)]
        max_items_per_segment: Option<u64>,
        /// Values for `:name` in statements, and for handlers. At most 100, each of at most 65,536 bytes
        /// as JSON; a name has at most 200 bytes.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        params: BTreeMap<String, Json>,
        /// 0 to 9, higher first; 5 when absent. The highest that a caller may give is
        /// `max_priority` of their roles: 7, or 9 for those who administer, unless it says otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(minimum = 0, maximum = 9)]
        priority: Option<u8>,
        /// The same request again under the same key is the same job.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(max_length = 255)]
        idempotency_key: Option<String>,
        /// Only after these jobs have ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(max_items = 1000)]
        after: Option<Vec<Uuid>>,
        /// What one of them that failed or was cancelled means; `block` when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on_failed: Option<OnFailed>,
        /// Just these keys, each of at most 4096 bytes; a key of several columns is a list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(min_items = 1, max_items = 500000)]
        ids: Option<Vec<Json>>,
        /// The records themselves, for job types with `source.items`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(min_items = 1)]
        items: Option<Vec<Json>>,
    }

    /// One run of a job type.
    struct Job {
        id: Uuid,
        job_type: String,
        status: JobStatus,
        /// What it is busy with, while `PROCESSING`.
        phase: Option<Phase>,
        #[schema(minimum = 0, maximum = 9)]
        priority: u8,
        /// What was asked for, without its items; in lists and events without whatever is large.
        request: Request,
        /// What is left out of it: how many `ids`, `items`, `after` and values of `filter.NAME`, and how
        /// many bytes of `params.NAME`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        omitted: BTreeMap<String, u64>,
        /// Who asked.
        submitted_by: String,
        created_at: DateTime<Utc>,
        started_at: Option<DateTime<Utc>>,
        finished_at: Option<DateTime<Utc>>,
        items: ItemCounts,
        chunks: ChunkCounts,
        /// Why it failed, is paused, or waits.
        error: Option<String>,
    }

    /// A job's items by what became of them.
    struct ItemCounts {
        total: i64,
        processed: i64,
        skipped: i64,
        dead: i64,
        /// Concurrent writes found in time.
        conflicts: i64,
    }

    /// A job's chunks by status.
    struct ChunkCounts {
        total: i64,
        pending: i64,
        processing: i64,
        completed: i64,
        failed: i64,
        cancelled: i64,
    }

    /// One of the events that a stream is made of.
    struct Event {
        /// `job` or `chunk`.
        #[schema(pattern = "^(job|chunk)$")]
        event: String,
        /// A new one for each, which browsers give back as `last-event-id`.
        id: String,
        /// The job or the chunk as it is by then, as JSON.
        #[schema(content_media_type = "application/json")]
        data: String,
    }

    /// A disjoint set of records: the unit of claim, lease, retry and commit.
    struct Chunk {
        job_id: Uuid,
        /// Its number, from zero.
        chunk: i64,
        /// The segment it was cut from.
        segment: i32,
        status: ChunkStatus,
        /// How often it was claimed.
        epoch: i64,
        /// Its records: a range of keys or a list.
        #[schema(value_type = Object)]
        key_set: Map<String, Json>,
        /// How many records it had when it was cut.
        items: i64,
        /// How far it is: null, a key, a number of keys, or `"end"`.
        #[schema(value_type = Value)]
        cursor: Json,
        counts: Counts,
        /// How often the work on it failed.
        attempts: u32,
        /// How often its lease was lost.
        losses: u32,
        /// Who holds it, or did last.
        worker: Option<String>,
        started_at: Option<DateTime<Utc>>,
        finished_at: Option<DateTime<Utc>>,
        error: Option<String>,
    }

    /// What became of a chunk's items.
    struct Counts {
        /// The others but `conflicts` add up to it.
        read: i64,
        processed: i64,
        skipped: i64,
        dead: i64,
        conflicts: i64,
    }

    /// A part of the source that is cut into chunks independently.
    struct Segment {
        /// Its number; zero is the plan.
        segment: i32,
        status: ChunkStatus,
        /// Where its load stands.
        #[schema(value_type = Object)]
        state: Map<String, Json>,
        /// The keys it is bounded by.
        #[schema(value_type = Object)]
        range: Map<String, Json>,
        error: Option<String>,
    }

    /// An item that failed for good.
    struct DeadLetter {
        id: Uuid,
        /// The job whose item it is.
        job_id: Uuid,
        job_type: String,
        /// The chunk it fell out of.
        chunk: i64,
        /// The item's key, as a request's `ids` writes it.
        #[schema(value_type = Value)]
        key: Json,
        /// The whole record as it was read.
        #[schema(value_type = Value)]
        record: Json,
        error: String,
        /// The error without the values in it: what errors of one kind have in common.
        fingerprint: String,
        /// What helps to understand it.
        #[schema(value_type = Value)]
        context: Json,
        /// How often it was tried, over all redrives.
        attempts: u32,
        status: DeadLetterStatus,
        /// The job that redrives it, or did last.
        redrive_job: Option<Uuid>,
        created_at: DateTime<Utc>,
        updated_at: DateTime<Utc>,
    }

    /// A job that redrives letters of an original job.
    struct Redriven {
        job_id: Uuid,
        original_job: Uuid,
        letters: u64,
    }

    /// What holds for a subject: a job type, a job's id, `connection:NAME`, or `*` for everything.
    struct Control {
        subject: String,
        /// Whether nothing of it is loaded or claimed.
        stopped: bool,
        /// Why none of its chunks is claimed for a while.
        suspended: Option<String>,
        /// Chunks at work at once, over all machines; 9223372036854775807 is no limit.
        concurrency: Option<i64>,
        /// Items a second, over all machines; 9223372036854775807 is no limit.
        rate: Option<i64>,
    }

    /// The rules, and what they wait for.
    struct Dependencies {
        rules: Vec<Dependency>,
        /// Where some parents have ended and others are missing; for those who see every job.
        waiting: Vec<JoinPoint>,
        /// Jobs whose parents have ended and that are not submitted yet; likewise.
        due: Vec<Due>,
    }

    /// Which job type is submitted when jobs of others have ended.
    struct Dependency {
        job: String,
        after: Vec<String>,
        /// Params that the parents must have in common.
        r#match: Vec<String>,
        #[serde(rename = "on_failed")]
        on_failed: OnFailed,
    }

    /// The parents of a rule that have ended for some values, while others are missing.
    struct JoinPoint {
        rule: Dependency,
        /// What they have in common: `match` and `claims`.
        #[schema(value_type = Object)]
        agreed: Map<String, Json>,
        /// Who is here, by job type.
        arrived: BTreeMap<String, JoinArrival>,
        updated_at: DateTime<Utc>,
    }

    /// A parent that has ended.
    struct JoinArrival {
        job: Uuid,
        status: JobStatus,
        params: BTreeMap<String, Json>,
        #[schema(minimum = 0, maximum = 9)]
        priority: u8,
    }

    /// A job that is not submitted yet.
    struct Due {
        /// The id it will have.
        id: Uuid,
        request: Request,
        /// Why it was refused; it is tried again.
        error: Option<String>,
    }

    /// A job in the graph of another.
    struct Linked {
        id: Uuid,
        job_type: String,
        status: JobStatus,
        submitted_by: String,
        /// The jobs it comes after.
        after: Vec<Uuid>,
    }

    /// A process that works.
    struct Worker {
        name: String,
        /// How many chunks it works at once.
        slots: i64,
        /// How many it holds.
        chunks: i64,
        /// The job types they are of.
        job_types: Option<String>,
        started_at: DateTime<Utc>,
        seen_at: DateTime<Utc>,
        /// Whether it has been silent for so long that its chunks have gone to others.
        vanished: bool,
    }

    /// When a job type is submitted by itself, and what became of that.
    struct Schedule {
        job_type: String,
        /// The first time that has not been seen to.
        next_at: Option<DateTime<Utc>>,
        /// Whether it rests.
        paused: bool,
        /// When it was last fired.
        last_at: Option<DateTime<Utc>>,
        /// The job of that time, for those who see it.
        last_job: Option<Uuid>,
        /// Why it could not be fired.
        error: Option<String>,
        schedule: ScheduleDefinition,
        /// The next times, unless it is paused.
        next_times: Vec<DateTime<Utc>>,
    }

    /// What windlass.toml says of a schedule.
    struct ScheduleDefinition {
        /// Five fields, or `@daily` and its like.
        cron: String,
        /// A zone of the IANA database.
        timezone: String,
        /// How long after its time a job should have ended: `3h`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<String>,
        missed: Missed,
        overlap: Overlap,
        /// The claims its jobs have, for those who see these jobs.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        claims: BTreeMap<String, Json>,
        /// The params of its jobs, before `{date}` and `{time}` are filled in; likewise.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        params: BTreeMap<String, Json>,
    }

    /// Something that went wrong.
    struct Alert {
        /// The same however often it is posted.
        id: Uuid,
        kind: AlertKind,
        job_type: String,
        /// The job, where it is about one.
        job_id: Option<Uuid>,
        message: String,
        /// Numbers and times that help, by kind.
        details: Map<String, Json>,
        /// When it was raised.
        at: DateTime<Utc>,
        /// When the condition it is about did not hold any more.
        cleared_at: Option<DateTime<Utc>>,
        delivery: Delivery,
        /// How often it was posted.
        attempts: u32,
        /// When it is posted next.
        next_at: Option<DateTime<Utc>>,
        delivered_at: Option<DateTime<Utc>>,
        /// Why it could not be posted last time.
        error: Option<String>,
    }
}

/// Writes descriptions of statuses.
macro_rules! statuses {
    ($($(#[$meta:meta])* $name:ident { $($variant:ident = $text:tt,)* })+) => {$(
        $(#[$meta])*
        #[derive(Serialize, Deserialize, ToSchema)]
        pub(crate) enum $name { $(#[serde(rename = $text)] $variant,)* }
    )+};
}

statuses! {
    /// Where a job is in its life.
    JobStatus {
        Queued = "QUEUED", Processing = "PROCESSING", Paused = "PAUSED", Completed = "COMPLETED",
        Failed = "FAILED", Cancelled = "CANCELLED",
    }
    /// What a `PROCESSING` job is busy with.
    Phase { Planning = "planning", Working = "working", Merging = "merging", }
    /// Where a chunk or a segment is in its life.
    ChunkStatus {
        Pending = "PENDING", Processing = "PROCESSING", Completed = "COMPLETED", Failed = "FAILED",
        Cancelled = "CANCELLED",
    }
    /// What a parent that failed or was cancelled means to the job that waits for it.
    OnFailed { Block = "block", Run = "run", Cancel = "cancel", }
    /// What an alert is about.
    AlertKind {
        JobFailed = "job-failed", BudgetExceeded = "budget-exceeded",
        DeadlineAtRisk = "deadline-at-risk", DeadLetters = "dead-letters", NoWorker = "no-worker",
    }
    /// How the delivery of an alert stands.
    Delivery {
        Logged = "logged", Pending = "pending", Delivered = "delivered", GivenUp = "given-up",
    }
    /// What became of a dead letter.
    DeadLetterStatus { New = "new", Reprocessed = "reprocessed", Ignored = "ignored", }
    /// What becomes of times at which nobody was there.
    Missed { Skip = "skip", RunOnce = "run-once", RunAll = "run-all", }
    /// What happens when the job before has not ended.
    Overlap { Skip = "skip", Queue = "queue", CancelRunning = "cancel-running", }
}

#[cfg(test)]
mod tests;
