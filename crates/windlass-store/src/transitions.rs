//! What may happen to a job and when: pure decisions, taken once for both backends.
//!
//! A backend locks the job, reads its [`JobState`], asks here, and writes the [`Transition`] it is given.

use windlass_core::budget::{Failures, OnExceeded};
use windlass_core::problem::{Code, Problem};
use windlass_core::{ChunkStatus, JobId, JobStatus, PaginationState, Request};

use crate::fields::Fields;
use crate::values::clean;
use crate::{Kept, NewPart, Page, Result, Standing};

/// What of a job's row the rules need, read under its lock.
pub(crate) struct JobState {
    pub(crate) id: JobId,
    pub(crate) status: JobStatus,
    pub(crate) started: bool,
    pub(crate) redrive: bool,
    pub(crate) open_segments: i64,
    pub(crate) open_chunks: i64,
    pub(crate) chunks_total: i64,
    pub(crate) items_total: i64,
    pub(crate) grants: i64,
    pub(crate) failures: Option<Failures>,
    /// Whether its chunks and its ledger may be gone.
    pub(crate) closed: bool,
    /// Whether something is still to be made of its parts.
    pub(crate) merge_due: bool,
    /// Whether all its chunks are completed and it was to be merged.
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
            grants: row.int("grants")?,
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

    /// Whether the job is cancelled and something that was claimed of it is not fenced yet.
    fn is_being_cancelled(&self) -> bool {
        self.status == JobStatus::Cancelled && self.open() > 0
    }

    /// The status as it is reported: while something may still commit, a job is not `CANCELLED`.
    pub(crate) fn reported_status(&self) -> JobStatus {
        if self.is_being_cancelled() { JobStatus::Processing } else { self.status }
    }
}

/// What a job's `merge` says before and while it is merged.
pub(crate) const MERGE_DUE: &str = "due";
pub(crate) const MERGE_BEGUN: &str = "begun";

/// A move of a job that is legal.
#[derive(Debug, PartialEq)]
pub(crate) struct Transition {
    pub(crate) status: JobStatus,
    pub(crate) error: Option<String>,
    /// How many more failure budgets it grants.
    pub(crate) grants: i64,
    /// What becomes of `finished_at`: `now`, `clear` or `keep`.
    pub(crate) finish: &'static str,
}

impl Transition {
    pub(crate) fn end(status: JobStatus, error: Option<String>) -> Transition {
        Transition { status, error, grants: 0, finish: "now" }
    }

    /// The job is cancelled, and ends when everything that was claimed of it is fenced.
    fn cancel() -> Transition {
        Transition { status: JobStatus::Cancelled, error: None, grants: 0, finish: "clear" }
    }

    /// Whether the job has ended with it.
    pub(crate) fn ends(&self) -> bool {
        self.finish == "now"
    }
}

/// How a chunk ends. `settled` names the keys of a redrive whose items are done.
pub(crate) enum Ending {
    Completed { settled: Vec<String>, part: Option<NewPart> },
    Failed { error: String, fail_job: bool, settled: Vec<String> },
    Cancelled { settled: Vec<String> },
}

impl Ending {
    pub(crate) fn failed(error: &str, fail_job: bool, settled: &[String]) -> Ending {
        Ending::Failed { error: clean(error), fail_job, settled: settled.to_vec() }
    }

    pub(crate) fn settled(&self) -> &[String] {
        match self {
            Ending::Completed { settled, .. }
            | Ending::Failed { settled, .. }
            | Ending::Cancelled { settled } => settled,
        }
    }

    pub(crate) fn error(&self) -> Option<&str> {
        match self {
            Ending::Failed { error, .. } => Some(error),
            _ => None,
        }
    }

    pub(crate) fn status(&self) -> ChunkStatus {
        match self {
            Ending::Completed { .. } => ChunkStatus::Completed,
            Ending::Failed { .. } => ChunkStatus::Failed,
            Ending::Cancelled { .. } => ChunkStatus::Cancelled,
        }
    }
}

/// What somebody asks of a job.
#[derive(Clone)]
pub(crate) enum Steering {
    Pause { reason: Option<String> },
    Resume,
    Cancel,
    Retry,
}

/// The move that is asked for, or why it cannot be.
pub(crate) fn steer(
    head: &JobState,
    steering: &Steering,
) -> std::result::Result<Transition, Problem> {
    let from = head.status;
    if head.is_being_cancelled() {
        return match steering {
            // Asked again: what could not be fenced is tried again at once.
            Steering::Cancel => Ok(Transition::cancel()),
            _ => Err(Problem::new(Code::Status, BEING_CANCELLED)),
        };
    }
    let (to, allowed, right) = match steering {
        Steering::Pause { .. } => {
            (JobStatus::Paused, head.is_live(), "only a QUEUED or PROCESSING job can be paused")
        }
        Steering::Resume if head.started => {
            (JobStatus::Processing, from == JobStatus::Paused, RESUME)
        }
        Steering::Resume => (JobStatus::Queued, from == JobStatus::Paused, RESUME),
        Steering::Cancel => (
            JobStatus::Cancelled,
            !from.is_final() || from == JobStatus::Failed && head.redrive,
            "only a job that has not ended, or a redrive that failed, can be cancelled",
        ),
        Steering::Retry => (JobStatus::Queued, from == JobStatus::Failed, RETRY),
    };
    let refuse = |text: String| Problem::new(Code::Status, format!("{text}; {right}"));
    from.check_edge(to).map_err(|edge| refuse(edge.to_string()))?;
    if !allowed {
        return Err(refuse(format!("the job is {from}")));
    }
    if from == JobStatus::Failed && head.closed {
        let detail = "the job ended so long ago that it is being pruned; submit it again";
        return Err(Problem::new(Code::Status, detail));
    }
    // Once all of a redrive has ended, its letters may be redriven by another job; to run it
    // again as well would do their items twice. A merge that failed has no such letters.
    let released = head.redrive && head.open() == 0 && !head.merge_begun;
    if matches!(steering, Steering::Retry) && released {
        let detail = "the redrive has ended and its letters are free; `windlass dead redrive` \
                      works them again";
        return Err(Problem::new(Code::Status, detail));
    }
    Ok(match steering {
        Steering::Pause { reason } => {
            Transition { status: to, error: reason.clone(), grants: 0, finish: "keep" }
        }
        Steering::Resume => Transition { status: to, error: None, grants: 1, finish: "keep" },
        Steering::Cancel => Transition::cancel(),
        // Whoever retries a job that failed by its budget wants it to get further than it did.
        Steering::Retry => Transition { status: to, error: None, grants: 1, finish: "clear" },
    })
}

const BEING_CANCELLED: &str =
    "the job is being cancelled: it ends when everything that was claimed of it is fenced";

/// What a job that is being cancelled says of itself, with the reason why that takes a while.
pub(crate) fn being_cancelled(reason: Option<String>) -> String {
    let reason = reason.map(|reason| format!("; {reason}")).unwrap_or_default();
    format!("{BEING_CANCELLED}{reason}")
}

const RESUME: &str =
    "only a PAUSED job can be resumed; `windlass retry` runs what failed in a FAILED one again";
const RETRY: &str = "only a FAILED job can be retried; `windlass resume` lets a PAUSED one go on";

/// There is no such job.
pub(crate) fn no_job(id: JobId) -> Problem {
    Problem::new(Code::NotFound, format!("there is no job {id}; `windlass jobs` lists them"))
}

/// The job fails at once, unless it has ended another way.
pub(crate) fn fail(head: &JobState, error: String) -> Option<Transition> {
    let open = head.is_live() || head.status == JobStatus::Paused;
    // Its other chunks keep their letters until they are worked or cancelled.
    let error = match head.redrive && head.open() > 0 {
        true => format!(
            "{error}; `windlass cancel {}` releases the letters that it has not reprocessed, \
             for another `windlass dead redrive`",
            head.id
        ),
        false => error,
    };
    open.then(|| Transition::end(JobStatus::Failed, Some(error)))
}

/// Whether the dead items of a job must be counted after a chunk with so many of them.
pub(crate) fn has_budget(head: &JobState, dead: i64) -> bool {
    dead > 0 && head.failures.is_some()
}

/// What an exceeded failure budget comes to. With nothing left to do there is nothing to pause.
pub(crate) fn budget(head: &JobState, dead: i64) -> Option<Transition> {
    let failures = head.failures.as_ref()?;
    let granted = u64::try_from(head.grants).unwrap_or_default();
    let planned = u64::try_from(head.items_total).unwrap_or_default();
    let allowed = failures.budget.allowance(planned).saturating_mul(granted);
    if u64::try_from(dead).unwrap_or_default() <= allowed {
        return None;
    }
    let id = head.id;
    let error = |command| {
        format!(
            "the failure budget is exceeded: {dead} dead letters, {allowed} allowed; \
             `windlass dead list` shows them, `windlass {command} {id}` goes on with another budget"
        )
    };
    match failures.on_exceeded {
        OnExceeded::Pause if head.is_live() && head.open() > 0 => Some(Transition {
            status: JobStatus::Paused,
            error: Some(error("resume")),
            grants: 0,
            finish: "keep",
        }),
        OnExceeded::Pause => None,
        OnExceeded::Fail => fail(head, error("retry")),
    }
}

/// What is to be done with a job now that a segment or chunk has ended or been queued.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Something is still open, or the job is paused and ends when it is resumed.
    No,
    /// All has ended: it completes or fails.
    Judge,
    /// The last chunk of a cancelled job has ended.
    Close,
    /// It failed before, and its last chunk has ended now.
    Sum,
}

/// Whether a job has come to rest.
pub(crate) fn rest(head: &JobState) -> Rest {
    match head.status {
        _ if head.open() > 0 => Rest::No,
        JobStatus::Queued | JobStatus::Processing => Rest::Judge,
        JobStatus::Cancelled => Rest::Close,
        JobStatus::Failed => Rest::Sum,
        JobStatus::Paused | JobStatus::Completed => Rest::No,
    }
}

/// The failed chunks or segments of a job: how many, the numbers and the error of the first ones.
#[derive(Default)]
pub(crate) struct FailedUnits {
    pub(crate) total: i64,
    pub(crate) numbers: Vec<i64>,
    pub(crate) error: Option<String>,
}

impl FailedUnits {
    /// Adds one of them, in order.
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
        let error = self.error.as_deref().unwrap_or("none was kept");
        format!("failed: {}{more} (the first error: {error})", numbers.join(", "))
    }
}

/// How a job ends of which nothing is open any more; or none, since it is to be merged first.
pub(crate) fn judge(
    head: &JobState,
    segments: &FailedUnits,
    chunks: &FailedUnits,
) -> Option<Transition> {
    let what = match (segments.total, chunks.total) {
        (0, 0) if head.merge_due => return None,
        (0, 0) => return Some(Transition::end(JobStatus::Completed, None)),
        (0, failed) => format!("{failed} of {} chunks {}", head.chunks_total, chunks.describe()),
        (failed, _) => format!("{failed} segments {}", segments.describe()),
    };
    let error = match head.redrive {
        true => format!("{what}; `windlass dead redrive` works the letters that are left"),
        false => format!("{what}; `windlass retry {}` runs only those again", head.id),
    };
    Some(Transition::end(JobStatus::Failed, Some(error)))
}

/// The end of a cancelled job.
pub(crate) fn close() -> Transition {
    Transition::end(JobStatus::Cancelled, None)
}

/// What is to be known of a job that is being cancelled.
pub(crate) fn note(note: Option<String>) -> Transition {
    Transition { error: note, ..Transition::cancel() }
}

/// How a page fits the segment it was loaded for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It is the next page.
    Next,
    /// It was committed before, by a call whose answer was lost.
    Before,
    /// The segment is not this loader's any more.
    Lost,
}

/// Compares states as values, since JSON can be written in more ways than one.
pub(crate) fn fit(row: &impl Fields, page: &Page) -> Result<Fit> {
    let status: ChunkStatus = row.status("status")?;
    if row.int("epoch")? != page.lease.epoch || row.int("nonce")? != page.lease.nonce {
        return Ok(Fit::Lost);
    }
    let state: PaginationState = row.json("state")?;
    let after = if page.last { ChunkStatus::Completed } else { ChunkStatus::Processing };
    Ok(match status {
        ChunkStatus::Processing if state == page.from => Fit::Next,
        status if status == after && state == page.to => Fit::Before,
        _ => Fit::Lost,
    })
}

/// How a lease stands that is held, by the status of its job.
pub(crate) fn standing(job: JobStatus) -> Standing {
    match job {
        JobStatus::Queued | JobStatus::Processing => Standing::Held,
        _ => Standing::HandBack,
    }
}

/// What to answer to a change that found nothing to change: it was made by an earlier call whose
/// answer was lost, or the lease is.
pub(crate) fn repeated(before: bool) -> Kept {
    if before { Kept::Yes } else { Kept::Lost }
}

/// Refuses an idempotency key that was used for another request. Objects are equal whatever the
/// order of their keys.
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
