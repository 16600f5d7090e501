//! The rules for jobs, segments and leases. Pure functions, shared by both backends.
//!
//! A backend locks the job, reads its [`JobState`], asks for a [`Transition`] and writes it.

use windlass_core::budget::{Failures, OnExceeded};
use windlass_core::problem::{Code, Problem};
use windlass_core::{ChunkStatus, JobId, JobStatus, PaginationState, Request};

use crate::fields::Fields;
use crate::{JobCommand, Lease, LeaseStatus, Page, Result, SegmentLease, StoreError};

/// The columns of a job that the rules need, read under the job's lock.
pub(crate) struct JobState {
    pub(crate) id: JobId,
    pub(crate) status: JobStatus,
    pub(crate) started: bool,
    pub(crate) redrive: bool,
    pub(crate) open_segments: i64,
    pub(crate) open_chunks: i64,
    pub(crate) chunks_total: i64,
    pub(crate) items_total: i64,
    /// How many failure budgets the job has: one, and one more for each resume or retry.
    pub(crate) budget_multiplier: i64,
    pub(crate) failures: Option<Failures>,
    /// Whether its chunks and its ledger may have been deleted.
    pub(crate) closed: bool,
    /// Whether its parts must still be merged.
    pub(crate) merge_due: bool,
    /// Whether all its chunks are completed and the merge segment exists.
    pub(crate) merge_begun: bool,
}

impl JobState {
    pub(crate) fn read(row: &impl Fields) -> Result<JobState> {
        let failures = row.opt_text("failures")?;
        let merge = row.opt_text("merge")?;
        Ok(JobState {
            id: row.id("id")?,
            status: row.status("status")?,
            started: row.flag("started")?,
            redrive: row.flag("redrive")?,
            open_segments: row.int("open_segments")?,
            open_chunks: row.int("open_chunks")?,
            chunks_total: row.int("chunks_total")?,
            items_total: row.int("items_total")?,
            budget_multiplier: row.int("budget_multiplier")?,
            failures: failures.map(|text| serde_json::from_str(&text)).transpose()?,
            closed: row.flag("closed")?,
            merge_due: merge.as_deref() == Some(MERGE_DUE),
            merge_begun: merge.as_deref() == Some(MERGE_BEGUN),
        })
    }

    fn open(&self) -> i64 {
        self.open_segments + self.open_chunks
    }

    fn is_live(&self) -> bool {
        matches!(self.status, JobStatus::Queued | JobStatus::Processing)
    }

    /// Whether the job has chunks to read or to plan.
    pub(crate) fn reads(&self) -> bool {
        self.is_live() && self.open() > 0 && !self.merge_begun
    }

    /// Whether the job is cancelled and some of its leased chunks or merges are not fenced yet.
    fn is_being_cancelled(&self) -> bool {
        self.status == JobStatus::Cancelled && self.open() > 0
    }

    /// The status that is reported. A job is not `CANCELLED` while one of its chunks may still
    /// commit.
    pub(crate) fn reported_status(&self) -> JobStatus {
        if self.is_being_cancelled() { JobStatus::Processing } else { self.status }
    }
}

/// The value of a job's `merge` column before its chunks are completed.
pub(crate) const MERGE_DUE: &str = "due";
/// The value of a job's `merge` column from then on.
pub(crate) const MERGE_BEGUN: &str = "begun";

/// A legal change of a job's status.
#[derive(Debug, PartialEq)]
pub(crate) struct Transition {
    pub(crate) status: JobStatus,
    pub(crate) error: Option<String>,
    /// How many more failure budgets the job gets.
    pub(crate) added_budgets: i64,
    pub(crate) finished_at: FinishedAt,
}

/// What a transition does to `finished_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinishedAt {
    Now,
    Clear,
    Keep,
}

impl FinishedAt {
    /// The parameter of `update_job_status.sql`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            FinishedAt::Now => "now",
            FinishedAt::Clear => "clear",
            FinishedAt::Keep => "keep",
        }
    }
}

impl Transition {
    pub(crate) fn end(status: JobStatus, error: Option<String>) -> Transition {
        Transition { status, error, added_budgets: 0, finished_at: FinishedAt::Now }
    }

    /// The job is cancelled. It ends when all its leased chunks and merges are fenced.
    fn cancel() -> Transition {
        Transition::continued(JobStatus::Cancelled, None, 0, FinishedAt::Clear)
    }

    fn continued(
        status: JobStatus,
        error: Option<String>,
        added_budgets: i64,
        finished_at: FinishedAt,
    ) -> Transition {
        Transition { status, error, added_budgets, finished_at }
    }

    /// Whether the job has ended with it.
    pub(crate) fn ends(&self) -> bool {
        self.finished_at == FinishedAt::Now
    }
}

/// The transition of a command, or why the command is refused.
pub(crate) fn command(
    job: &JobState,
    command: &JobCommand,
) -> std::result::Result<Transition, Problem> {
    let from = job.status;
    if job.is_being_cancelled() {
        return match command {
            // Cancelling again retries at once what could not be fenced.
            JobCommand::Cancel => Ok(Transition::cancel()),
            _ => Err(Problem::new(Code::Status, BEING_CANCELLED)),
        };
    }
    let (to, allowed, rule) = match command {
        JobCommand::Pause { .. } => {
            (JobStatus::Paused, job.is_live(), "only a QUEUED or PROCESSING job can be paused")
        }
        JobCommand::Resume if job.started => {
            (JobStatus::Processing, from == JobStatus::Paused, RESUME)
        }
        JobCommand::Resume => (JobStatus::Queued, from == JobStatus::Paused, RESUME),
        JobCommand::Cancel => (
            JobStatus::Cancelled,
            !from.is_final() || from == JobStatus::Failed && job.redrive,
            "only a job that has not ended, or a redrive that failed, can be cancelled",
        ),
        JobCommand::Retry => (JobStatus::Queued, from == JobStatus::Failed, RETRY),
    };
    let refuse = |text: String| Problem::new(Code::Status, format!("{text}; {rule}"));
    from.check_edge(to).map_err(|edge| refuse(edge.to_string()))?;
    if !allowed {
        return Err(refuse(format!("the job is {from}")));
    }
    if from == JobStatus::Failed && job.closed {
        let detail = "the job is being pruned because it ended long ago; submit it again";
        return Err(Problem::new(Code::Status, detail));
    }
    // When a redrive has ended, another job may redrive its letters. Retrying it as well would
    // process their items twice. After a failed merge no such letters are left.
    let released = job.redrive && job.open() == 0 && !job.merge_begun;
    if matches!(command, JobCommand::Retry) && released {
        let detail =
            "the redrive has ended; `windlass dead redrive` redrives its remaining dead letters";
        return Err(Problem::new(Code::Status, detail));
    }
    Ok(match command {
        JobCommand::Pause { reason } => {
            Transition::continued(to, reason.clone(), 0, FinishedAt::Keep)
        }
        JobCommand::Resume => Transition::continued(to, None, 1, FinishedAt::Keep),
        JobCommand::Cancel => Transition::cancel(),
        // With the old budget, a job that failed by its budget would fail again at once.
        JobCommand::Retry => Transition::continued(to, None, 1, FinishedAt::Clear),
    })
}

const BEING_CANCELLED: &str =
    "the job is being cancelled; it ends when its running chunks have stopped";

/// The error of a job that is being cancelled, with the reason why that takes time.
pub(crate) fn being_cancelled(reason: Option<String>) -> String {
    let reason = reason.map(|reason| format!("; {reason}")).unwrap_or_default();
    format!("{BEING_CANCELLED}{reason}")
}

const RESUME: &str =
    "only a PAUSED job can be resumed; `windlass retry` retries what failed in a FAILED job";
const RETRY: &str = "only a FAILED job can be retried; `windlass resume` resumes a PAUSED job";

/// The job does not exist.
pub(crate) fn no_job(id: JobId) -> Problem {
    Problem::new(Code::NotFound, format!("there is no job {id}; `windlass jobs` lists them"))
}

/// The job fails at once, unless it has already ended.
pub(crate) fn fail(job: &JobState, error: String) -> Option<Transition> {
    let open = job.is_live() || job.status == JobStatus::Paused;
    // The open chunks of a redrive keep their letters until they are worked or cancelled.
    let error = match job.redrive && job.open() > 0 {
        true => format!(
            "{error}; after `windlass cancel {}` its remaining dead letters can be redriven again",
            job.id
        ),
        false => error,
    };
    open.then(|| Transition::end(JobStatus::Failed, Some(error)))
}

/// Whether the dead items of a job must be counted after a chunk with this many of them.
pub(crate) fn has_budget(job: &JobState, dead: i64) -> bool {
    dead > 0 && job.failures.is_some()
}

/// The transition of a job whose failure budget is exceeded. A job without open chunks is not
/// paused, since no work is left to pause.
pub(crate) fn check_budget(job: &JobState, dead: i64) -> Option<Transition> {
    let failures = job.failures.as_ref()?;
    let budgets = u64::try_from(job.budget_multiplier).unwrap_or_default();
    let planned = u64::try_from(job.items_total).unwrap_or_default();
    let allowed = failures.budget.allowance(planned).saturating_mul(budgets);
    if u64::try_from(dead).unwrap_or_default() <= allowed {
        return None;
    }
    let id = job.id;
    let error = |command| {
        format!(
            "failure budget exceeded: {dead} dead letters, {allowed} allowed; \
             `windlass dead list` lists them, `windlass {command} {id}` continues and allows the same number again"
        )
    };
    match failures.on_exceeded {
        OnExceeded::Pause if job.is_live() && job.open() > 0 => Some(Transition::continued(
            JobStatus::Paused,
            Some(error("resume")),
            0,
            FinishedAt::Keep,
        )),
        OnExceeded::Pause => None,
        OnExceeded::Fail => fail(job, error("retry")),
    }
}

/// What to do with a job after a segment or chunk has ended or was queued.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Something is open, or the job is paused and ends when it is resumed.
    Wait,
    /// Everything has ended: the job completes, fails or is merged.
    Finish,
    /// The last chunk of a cancelled job has ended: the job ends.
    EndCancelled,
    /// The last chunk of a job that had failed already has ended: only its counters change.
    SumFailed,
}

/// What to do with a job.
pub(crate) fn next_step(job: &JobState) -> NextStep {
    match job.status {
        _ if job.open() > 0 => NextStep::Wait,
        JobStatus::Queued | JobStatus::Processing => NextStep::Finish,
        JobStatus::Cancelled => NextStep::EndCancelled,
        JobStatus::Failed => NextStep::SumFailed,
        JobStatus::Paused | JobStatus::Completed => NextStep::Wait,
    }
}

/// The failed chunks or segments of a job: their number, and the numbers and error of the first ones.
#[derive(Default)]
pub(crate) struct FailedUnits {
    pub(crate) total: i64,
    pub(crate) numbers: Vec<i64>,
    pub(crate) error: Option<String>,
}

impl FailedUnits {
    /// Adds a failed chunk or segment. They must be added in order.
    pub(crate) fn add(&mut self, total: i64, number: i64, error: Option<String>) {
        self.total = total;
        if self.numbers.is_empty() {
            self.error = error;
        }
        self.numbers.push(number);
    }

    fn describe(&self) -> String {
        let numbers: Vec<_> = self.numbers.iter().map(i64::to_string).collect();
        let more = self.total - self.numbers.len() as i64;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let error = self.error.as_deref().unwrap_or("none recorded");
        format!("failed: [{}{more}] (first error: {error})", numbers.join(", "))
    }
}

/// How a job ends when nothing is open; `None` when it must be merged first.
pub(crate) fn finish(
    job: &JobState,
    segments: &FailedUnits,
    chunks: &FailedUnits,
) -> Option<Transition> {
    let what = match (segments.total, chunks.total) {
        (0, 0) if job.merge_due => return None,
        (0, 0) => return Some(Transition::end(JobStatus::Completed, None)),
        (0, failed) => {
            let total = job.chunks_total;
            format!("{}/{total} chunks completed, {}", total - failed, chunks.describe())
        }
        (failed, _) => format!("{failed} segments {}", segments.describe()),
    };
    let error = match job.redrive {
        true => format!("{what}; `windlass dead redrive` redrives the remaining letters"),
        false => format!("{what}; `windlass retry {}` retries only those", job.id),
    };
    Some(Transition::end(JobStatus::Failed, Some(error)))
}

/// The end of a cancelled job.
pub(crate) fn end_cancelled() -> Transition {
    Transition::end(JobStatus::Cancelled, None)
}

/// Adds a note to a job that is being cancelled.
pub(crate) fn cancellation_note(note: Option<String>) -> Transition {
    Transition { error: note, ..Transition::cancel() }
}

/// How a page relates to its segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PageState {
    /// It is the next page.
    Next,
    /// It was committed by an earlier call whose answer was lost.
    Committed,
}

/// Compares a page with its segment, which is locked. States are compared as values, since the same
/// JSON can be written in several ways.
pub(crate) fn check_page(row: &impl Fields, page: &Page) -> Result<PageState> {
    if !is_same_lease(row, page.lease.epoch, page.lease.nonce)? {
        return Err(StoreError::LeaseLost);
    }
    let status: ChunkStatus = row.status("status")?;
    let state: PaginationState = row.json("state")?;
    let after = if page.last { ChunkStatus::Completed } else { ChunkStatus::Processing };
    match status {
        ChunkStatus::Processing if state == page.from => Ok(PageState::Next),
        status if status == after && state == page.to => Ok(PageState::Committed),
        _ => Err(StoreError::LeaseLost),
    }
}

/// The status of a valid lease, by the status of its job.
pub(crate) fn lease_status(job: JobStatus) -> LeaseStatus {
    match job {
        JobStatus::Queued | JobStatus::Processing => LeaseStatus::Held,
        _ => LeaseStatus::HandBack,
    }
}

/// Whether a chunk or segment is still at this lease.
fn is_same_lease(row: &impl Fields, epoch: i64, nonce: i64) -> Result<bool> {
    Ok(row.int("epoch")? == epoch && row.int("nonce")? == nonce)
}

/// Whether this lease brought the chunk into this status. A chunk that became `PENDING` because the
/// lease expired does not count.
pub(crate) fn is_chunk_at(row: &impl Fields, lease: Lease, status: ChunkStatus) -> Result<bool> {
    let current: ChunkStatus = row.status("status")?;
    let same = is_same_lease(row, lease.epoch, lease.nonce)?;
    Ok(same && current == status && !row.flag("lost")?)
}

/// Whether this lease brought the segment into this status.
pub(crate) fn is_segment_at(
    row: &impl Fields,
    lease: SegmentLease,
    status: ChunkStatus,
) -> Result<bool> {
    let current: ChunkStatus = row.status("status")?;
    Ok(current == status && is_same_lease(row, lease.epoch, lease.nonce)?)
}

/// The result of a call that found nothing to change: an earlier call made the change and its answer
/// was lost, or the lease is lost.
pub(crate) fn repeated(made_before: bool) -> Result<()> {
    if made_before { Ok(()) } else { Err(StoreError::LeaseLost) }
}

/// Refuses an idempotency key that was used for another request. The order of keys in JSON objects
/// does not matter.
pub(crate) fn check_same_request(stored: &str, request: &Request) -> Result<()> {
    let stored: serde_json::Value = serde_json::from_str(stored)?;
    if stored == serde_json::to_value(request)? {
        return Ok(());
    }
    Err(key_taken().into())
}

/// The idempotency key belongs to another job.
pub(crate) fn key_taken() -> Problem {
    let detail = "was used for another request; send the same request again, or another key";
    Problem::field(Code::IdempotencyKey, "idempotencyKey", detail)
}

#[cfg(test)]
mod tests;
