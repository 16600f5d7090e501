//! Windlass's own state: jobs, segments, chunks and dead letters, in SQLite or PostgreSQL.
//!
//! [`Store`] is the one door. `sqlite/` and `postgres/` mirror each other file by file, their
//! statements stand in `queries/`, and one conformance suite holds both to the same behaviour.

// The two backends use every shared function between them; a build with one of them leaves some unused.
#![cfg_attr(
    not(all(feature = "postgres", feature = "sqlite")),
    allow(dead_code, unreachable_code, unused_imports, unused_macros)
)]

mod alert;
mod change_notifier;
mod connect;
mod control;
mod dead_letter;
mod dependency;
mod dependency_rules;
mod door;
mod error;
mod fields;
mod history;
mod job;
mod lease;
mod migrations;
mod part;
#[cfg(feature = "postgres")]
mod postgres;
mod rows;
mod schedule;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stats;
mod summaries;
mod transitions;
mod values;

pub use alert::{Alert, AlertFilter, NewAlert, Occurrence, Unclaimable};
pub use connect::connect;
pub use control::{AS_DEFINED, Control, EVERYTHING, UNLIMITED, WorkerRow, of_connection};
pub use dead_letter::{DeadLetter, DeadLetterFilter, NewDeadLetter, RedriveRoot};
pub use dependency::{JoinPointRow, Linked, Trigger};
pub use error::{Result, StoreError};
pub use history::StoreHistory;
pub use job::{JobFilter, JobSnapshot, NewJob, Owner, Submitted};
pub use lease::{
    Capabilities, ChunkRow, ClaimedChunk, ClaimedSegment, Kept, Lease, LeaseRenewal, NewChunk,
    NewSegment, Page, Progress, SegmentLease, SegmentRow, Standing,
};
pub use part::{MERGED, NewPart, PartRow};
pub use schedule::ScheduleRow;
pub use stats::{Depth, Losses, Stats};
pub use summaries::{ChunkBucket, DeadLetterGroup, DurationBucket, HourlyJobs, ThroughputBucket};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use std::time::Duration;
use uuid::Uuid;
use windlass_core::{AlertKind, ChunkStatus, DeadLetterStatus, Delivery, Job, JobId, JobStatus};

/// The store. Every change of a chunk checks its expected state and epoch; time is the
/// database's; locks are taken in the order job, segment, chunk.
#[async_trait]
pub trait Store: StoreHistory {
    /// Brings the schema up to date. Safe when many processes start at once.
    async fn migrate(&self) -> Result<()>;

    // Submit and look.

    /// Queues a job: one row, and the `PLAN` segment that will split it.
    async fn submit(&self, job: NewJob) -> Result<Submitted>;
    /// A job as people see it.
    async fn job(&self, id: JobId) -> Result<Option<Job>>;
    /// The status of a job; costs next to nothing, however many chunks it has.
    async fn status(&self, id: JobId) -> Result<Option<JobStatus>>;
    /// Jobs, newest first, without what is large of their requests.
    async fn jobs(&self, filter: &JobFilter) -> Result<Vec<Job>>;
    /// Whose jobs these are; those that are not there are left out.
    async fn owners(&self, jobs: &[JobId]) -> Result<Vec<Owner>>;
    /// Jobs of a submitter that have not ended, the oldest first.
    async fn open_jobs(&self, submitted_by: &str, limit: u32) -> Result<Vec<JobId>>;
    /// How many jobs and chunks there are that have not ended, by job type, and how many leases
    /// were lost, by job. Costs little, however many there are.
    async fn stats(&self) -> Result<Stats>;
    /// What a job was submitted with.
    async fn snapshot(&self, id: JobId) -> Result<Option<JobSnapshot>>;
    /// A job's chunks in order of number, after the given one.
    async fn chunks(
        &self,
        job: JobId,
        status: Option<ChunkStatus>,
        after: Option<i64>,
        limit: u32,
    ) -> Result<Vec<ChunkRow>>;
    /// A job's segments in order.
    async fn segments(&self, job: JobId) -> Result<Vec<SegmentRow>>;

    // Draw.

    /// Jobs submitted no longer ago than this, by the hour.
    async fn hours(
        &self,
        age: Duration,
        submitted_by: Option<&str>,
        job_types: Option<&[String]>,
    ) -> Result<Vec<HourlyJobs>>;
    /// A job's chunks in stretches of so many.
    async fn cells(&self, job: JobId, width: i64) -> Result<Vec<ChunkBucket>>;
    /// What of a job was done when, in stretches of this length.
    async fn pace(&self, job: JobId, stretch: Duration) -> Result<Vec<ThroughputBucket>>;
    /// How long the completed chunks of a job took, the shortest first.
    async fn durations(&self, job: JobId) -> Result<Vec<DurationBucket>>;
    /// Those of them that took longest, the slowest first.
    async fn slowest_chunks(&self, job: JobId, limit: u32) -> Result<Vec<ChunkRow>>;
    /// Dead letters by what they died of, the most frequent first. The filter's limit is of groups.
    async fn letter_groups(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetterGroup>>;

    // Load.

    /// Claims segments that wait, by job priority, then age.
    async fn claim_segments(&self, by: &Capabilities, limit: u32) -> Result<Vec<ClaimedSegment>>;
    /// Commits one page of a load: its chunks, its new segments and the new pagination state,
    /// all or nothing, if the segment is still at this epoch and state.
    async fn load(&self, page: Page) -> Result<Kept>;
    /// Hands a segment back, to be loaded again after `wait`. `attempt` counts a failure of the load.
    async fn release_segment(
        &self,
        lease: SegmentLease,
        error: Option<&str>,
        attempt: bool,
        wait: Duration,
    ) -> Result<Kept>;
    /// Ends a segment `FAILED`, and with it the job.
    async fn fail_segment(&self, lease: SegmentLease, error: &str) -> Result<Kept>;

    // Work.

    /// Claims chunks that wait, by job priority, then age, each at a new epoch.
    async fn claim_chunks(&self, by: &Capabilities, limit: u32) -> Result<Vec<ClaimedChunk>>;
    /// Says of each lease whether it still stands. The confirmation after a fence.
    async fn confirm(&self, leases: &[Lease]) -> Result<Vec<Standing>>;
    /// Extends all leases of a process in one statement each for chunks and segments, never past
    /// a chunk's timeout; says how each chunk stands.
    async fn heartbeat(
        &self,
        chunks: &[LeaseRenewal],
        segments: &[SegmentLease],
    ) -> Result<Vec<Standing>>;
    /// Copies dead letters of a chunk over, before it completes. Repeatable.
    async fn add_letters(&self, lease: Lease, letters: &[NewDeadLetter]) -> Result<Kept>;
    /// Ends a chunk `COMPLETED`. Repeatable: a second call at the same epoch is kept too. In a
    /// redrive, `settled` names the keys whose letters, unless they died again, are reprocessed.
    async fn complete(&self, lease: Lease, progress: &Progress, settled: &[String])
    -> Result<Kept>;
    /// Ends several chunks of one job `COMPLETED` in one transaction, none of which has dead
    /// letters or settles any. False: not all of them are held at these epochs, nothing was
    /// changed, and each must be completed by itself.
    async fn complete_together(&self, chunks: &[(Lease, Progress)]) -> Result<bool>;
    /// Ends a chunk `COMPLETED` and keeps its part, in one transaction. Repeatable.
    async fn complete_part(
        &self,
        lease: Lease,
        progress: &Progress,
        part: &NewPart,
    ) -> Result<Kept>;
    /// The parts of a job in order, after this chunk.
    async fn parts(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<PartRow>>;
    /// Keeps what was made of all parts, if the segment that merges them is still at this epoch.
    async fn put_merged(&self, lease: SegmentLease, merged: &NewPart) -> Result<Kept>;
    /// A job and those that redrive its letters, oldest first.
    async fn redrive_chain(&self, root: JobId) -> Result<Vec<(JobId, JobStatus)>>;
    /// Removes the parts of a job.
    async fn remove_parts(&self, job: JobId) -> Result<()>;
    /// Hands a chunk back, to be claimed again after `wait`. `attempt` counts a failure of the work.
    async fn release(
        &self,
        lease: Lease,
        progress: &Progress,
        error: Option<&str>,
        attempt: bool,
        wait: Duration,
    ) -> Result<Kept>;
    /// Ends a fenced chunk `FAILED`; with `fail_job` the job fails at once, without waiting for
    /// its other chunks. In a redrive, `settled` names the keys whose items are done by the ledger:
    /// their letters are reprocessed in the same transaction. Repeatable.
    async fn fail(
        &self,
        lease: Lease,
        progress: &Progress,
        error: &str,
        fail_job: bool,
        settled: &[String],
    ) -> Result<Kept>;
    /// Turns leases that ran out back into waiting chunks and segments; says how many.
    async fn rescue(&self) -> Result<u64>;

    // Steer.

    /// Pauses a job: nothing new is claimed, chunks in flight are handed back.
    async fn pause(&self, job: JobId, reason: Option<&str>) -> Result<JobStatus>;
    /// Resumes a paused job, with another failure budget.
    async fn resume(&self, job: JobId) -> Result<JobStatus>;
    /// Cancels a job, or a redrive that failed. Chunks never claimed and segments end at once;
    /// chunks that were claimed are ended by [`Store::claim_cancelled`] and
    /// [`Store::end_cancelled`], a merge that was by [`Store::claim_cancelled_merges`] and
    /// [`Store::end_cancelled_merge`]. Until then the job is reported as `PROCESSING`, says that it
    /// is being cancelled, and its dependents wait. May be asked again meanwhile.
    async fn cancel(&self, job: JobId) -> Result<JobStatus>;
    /// Queues what failed in a failed job again; a chunk's attempts begin anew.
    async fn retry(&self, job: JobId) -> Result<JobStatus>;
    /// Claims, at a new epoch and whoever holds them, the chunks of cancelled jobs that were ever
    /// claimed, so that they can be fenced.
    async fn claim_cancelled(&self, by: &Capabilities, limit: u32) -> Result<Vec<ClaimedChunk>>;
    /// Ends a fenced chunk `CANCELLED`, and settles letters of a redrive as [`Store::fail`] does.
    /// With the last chunk of a redrive the letters that are left are released.
    async fn end_cancelled(
        &self,
        lease: Lease,
        progress: &Progress,
        settled: &[String],
    ) -> Result<Kept>;
    /// Claims, at a new epoch, the merges of cancelled jobs that were ever claimed, so that their
    /// loads can be fenced. One that is handed back is claimed again after its wait.
    async fn claim_cancelled_merges(
        &self,
        by: &Capabilities,
        limit: u32,
    ) -> Result<Vec<SegmentLease>>;
    /// Ends such a merge `CANCELLED`, whose load is fenced, with a note for the job where there is
    /// something to say.
    async fn end_cancelled_merge(&self, lease: SegmentLease, note: Option<&str>) -> Result<Kept>;
    /// Cancelled jobs all of whose chunks have ended and whose output is still there, with their
    /// connection. Only those on these connections.
    async fn discardable(&self, connections: &[String], limit: u32)
    -> Result<Vec<(JobId, String)>>;
    /// The output of such a job is gone.
    async fn discarded(&self, job: JobId) -> Result<()>;

    // Control.

    /// Holds a job type: for so long none of its chunks is claimed by anybody, and its jobs show the
    /// reason. Of a connection ([`of_connection`]) only the reason is shown. False where it is held
    /// for longer already.
    async fn hold(&self, subject: &str, reason: &str, wait: Duration) -> Result<bool>;
    /// Stops a subject, or lets it go on: while it is stopped nothing of it is loaded or claimed.
    async fn stop(&self, subject: &str, stopped: bool) -> Result<()>;
    /// Limits the chunks at work at once and the items a second of a job type or job, over all
    /// machines. None leaves a limit as it is.
    async fn set_throughput(
        &self,
        subject: &str,
        concurrency: Option<i64>,
        rate: Option<i64>,
    ) -> Result<()>;
    /// Everything that is said of subjects.
    async fn controls(&self) -> Result<Vec<Control>>;
    /// Chunks at work beyond a limit, which was lowered: whoever holds them is to hand them back.
    async fn over_limit(&self) -> Result<Vec<Lease>>;
    /// Reserves the time of so many items at the rate of their job, unless it begins later than
    /// `most` from now; says how long until it begins.
    async fn reserve(&self, job: JobId, items: i64, most: Duration) -> Result<Duration>;
    /// A process says that it works, on what it can, and how many chunks at once.
    async fn heartbeat_worker(&self, by: &Capabilities, slots: i64) -> Result<()>;
    /// A process has ended in order.
    async fn remove_worker(&self, name: &str) -> Result<()>;
    /// The processes that work.
    async fn workers(&self) -> Result<Vec<WorkerRow>>;

    // Schedules.

    /// What time it is.
    async fn now(&self) -> Result<DateTime<Utc>>;
    /// Keeps the schedule of a job type. One that is as it was keeps its next time.
    async fn put_schedule(
        &self,
        job_type: &str,
        spec: &str,
        next_at: Option<DateTime<Utc>>,
    ) -> Result<()>;
    /// All schedules.
    async fn schedules(&self) -> Result<Vec<ScheduleRow>>;
    /// Moves a schedule on from the time that was seen to, and says which job was submitted for
    /// which time, if one was. False where somebody has moved it on already.
    async fn fired(
        &self,
        job_type: &str,
        from: DateTime<Utc>,
        to: Option<DateTime<Utc>>,
        fired: Option<(DateTime<Utc>, JobId)>,
    ) -> Result<bool>;
    /// Says why a schedule could not be fired.
    async fn fail_schedule(&self, job_type: &str, error: &str) -> Result<()>;
    /// Pauses a schedule, or lets it go on from this time. False where there is none.
    async fn pause_schedule(
        &self,
        job_type: &str,
        paused: bool,
        next_at: Option<DateTime<Utc>>,
    ) -> Result<bool>;

    // Dependencies.

    /// A job with all it came after and all that comes after it, the oldest first.
    async fn graph(&self, job: JobId, limit: u32) -> Result<Vec<Linked>>;
    /// The rules of which some parents have ended and others are missing, the newest first.
    async fn join_points(&self, limit: u32) -> Result<Vec<JoinPointRow>>;
    /// The jobs that are still to be submitted, since their parents have ended.
    async fn triggers(&self, limit: u32) -> Result<Vec<Trigger>>;
    /// Takes some of them that are due, for so long.
    async fn claim_triggers(&self, limit: u32, lease: Duration) -> Result<Vec<Trigger>>;
    /// Such a job is submitted.
    async fn triggered(&self, id: JobId) -> Result<()>;
    /// Such a job was refused; it is tried again after `wait`.
    async fn fail_trigger(&self, id: JobId, error: &str, wait: Duration) -> Result<()>;

    // Dead letters.

    /// Dead letters, newest first.
    async fn letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>>;
    /// The original jobs that have letters which could be redriven now, among those that match.
    async fn redrivable(&self, filter: &DeadLetterFilter) -> Result<Vec<RedriveRoot>>;
    /// Submits a job on exactly the keys of the original job's matching letters that are `new`
    /// and not being redriven: they name it from then on. `None` when there are none left.
    async fn redrive(
        &self,
        original: JobId,
        filter: &DeadLetterFilter,
        job: NewJob,
    ) -> Result<Option<(JobId, u64)>>;
    /// Sets the status of matching `new` letters that are not being redriven; says how many.
    async fn mark_letters(&self, filter: &DeadLetterFilter, to: DeadLetterStatus) -> Result<u64>;

    // Alerts.

    /// Raises an alert, unless it is raised already; one that must have held for a while is only
    /// watched at first. True when it is raised by this call.
    async fn raise(&self, alert: &NewAlert) -> Result<bool>;
    /// The subjects of conditions of a kind that are raised or watched, with what they are above.
    async fn open_alerts(&self, kind: AlertKind) -> Result<Vec<(String, i64)>>;
    /// A condition is over: when it comes back, that is a new alert.
    async fn clear_alert(&self, kind: AlertKind, subject: &str) -> Result<()>;
    /// Jobs that failed or exceeded their budget within this time and have no alert of it yet, the
    /// oldest first.
    async fn occurrences(&self, within: Duration, limit: u32) -> Result<Vec<Occurrence>>;
    /// How many letters of each job type are `new`, counted up to so many.
    async fn letters_by_type(&self, most: i64) -> Result<Vec<(String, i64)>>;
    /// Work that waits and that no process can take, by job type.
    async fn unclaimable(&self) -> Result<Vec<Unclaimable>>;
    /// Takes an alert that is to be posted, for so long, and counts an attempt.
    async fn claim_alert(&self, lease: Duration) -> Result<Option<Alert>>;
    /// Says what came of an attempt to post an alert. After an error it is tried again in a while,
    /// unless it was raised longer ago than `patience`. Says how its delivery stands; nothing where
    /// a later attempt is another's.
    async fn settle_alert(
        &self,
        id: Uuid,
        attempts: u32,
        error: Option<&str>,
        wait: Duration,
        patience: Duration,
    ) -> Result<Option<Delivery>>;
    /// Alerts, newest first.
    async fn alerts(&self, filter: &AlertFilter) -> Result<Vec<Alert>>;
    /// Removes alerts that were raised longer ago than this, unless they hold still or are on their
    /// way; says how many.
    async fn remove_alerts(&self, age: Duration) -> Result<u64>;

    // Prune.

    /// The job types of jobs that have ended.
    async fn job_types(&self) -> Result<Vec<String>>;
    /// Jobs of a type that ended for good longer ago than this and whose chunks are still there.
    /// Only those on these connections.
    async fn prunable(
        &self,
        job_type: &str,
        age: Duration,
        connections: &[String],
        limit: u32,
    ) -> Result<Vec<JobId>>;
    /// Removes the chunks and segments of a job that ended for good and whose ledger is gone, and
    /// closes it; says how many chunks.
    async fn remove_chunks(&self, job: JobId) -> Result<u64>;
    /// Jobs of a type that ended longer ago than this and have no letter that is `new`. Only those
    /// on these connections.
    async fn expired(
        &self,
        job_type: &str,
        age: Duration,
        connections: &[String],
        limit: u32,
    ) -> Result<Vec<JobId>>;
    /// Closes a job of which that is still true: nobody can retry it any more, so that its ledger
    /// may be removed.
    async fn close(&self, job: JobId, age: Duration) -> Result<bool>;
    /// Removes a closed job with everything of it; says how many chunks. Where a letter has come in
    /// that is `new`, the job stays with it.
    async fn remove(&self, job: JobId) -> Result<u64>;
    /// Removes letters of a job type to which nothing has happened for so long, unless their job has
    /// not ended or a redrive holds them; says how many.
    async fn remove_letters(&self, job_type: &str, age: Duration) -> Result<u64>;

    // Wait.

    /// Waits until something may have changed since the calling task last waited here, at most so
    /// long. A change between two waits of a task is not missed; its first call does not wait.
    async fn changed(&self, at_most: Duration);
}
