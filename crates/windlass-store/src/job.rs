//! Jobs, as they are submitted and read.

use std::time::Duration;

use windlass_core::{Dependency, Identity, JobId, JobStatus, JobType, Request};

use crate::CompletePlan;
use crate::values::clean;

/// A job to submit.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its id. The submitter generates it, so that it can repeat a submit.
    pub id: JobId,
    /// The definition, with its key columns resolved.
    pub definition: JobType,
    /// The request.
    pub request: Request,
    /// The identity of the submitter.
    pub identity: Identity,
    /// The job that the items belong to: the job itself, or the original of a redrive.
    pub root: JobId,
    /// The dependencies that wait for a job of this type to end.
    pub rules: Vec<Dependency>,
    /// Its plan, if it is known already. Otherwise a worker plans the job.
    pub plan: Option<CompletePlan>,
}

/// The result of a submit.
///
/// ```
/// use windlass_store::Submitted;
///
/// fn report(submitted: Submitted) {
///     match submitted {
///         Submitted::New(id) => println!("submitted {id}"),
///         Submitted::Existing(id) => println!("{id} was submitted before"),
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// A new job.
    New(JobId),
    /// The job that was submitted earlier with the same request and idempotency key.
    Existing(JobId),
}

impl Submitted {
    /// The job, new or existing.
    pub fn id(self) -> JobId {
        match self {
            Submitted::New(id) | Submitted::Existing(id) => id,
        }
    }
}

/// A command that changes the status of a job.
#[derive(Clone, Debug)]
pub enum JobCommand {
    /// Stop leasing its chunks.
    Pause {
        /// Shown as the job's error.
        reason: Option<String>,
    },
    /// Continue a paused job, with another failure budget.
    Resume,
    /// End the job without working its remaining chunks.
    Cancel,
    /// Queue what failed again.
    Retry,
}

impl JobCommand {
    /// A pause. NUL characters in the reason are replaced, since PostgreSQL cannot store them.
    pub fn pause(reason: Option<&str>) -> JobCommand {
        JobCommand::Pause { reason: reason.map(clean) }
    }
}

/// Jobs of a type that ended long ago.
#[derive(Clone, Debug)]
pub struct OldJobs {
    /// The job type.
    pub job_type: String,
    /// They ended longer ago than this.
    pub age: Duration,
    /// They read one of these connections.
    pub connections: Vec<String>,
    /// The maximum number of jobs.
    pub limit: u32,
}

/// What a job was submitted with: everything that a worker needs to know about it.
#[derive(Clone, Debug)]
pub struct JobSnapshot {
    /// The job.
    pub id: JobId,
    /// Its definition.
    pub definition: JobType,
    /// Its request.
    pub request: Request,
    /// The identity of the submitter.
    pub identity: Identity,
    /// The job that the items belong to.
    pub root: JobId,
}

/// The type and submitter of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The job.
    pub id: JobId,
    /// Its type.
    pub job_type: String,
    /// The name of the submitter.
    pub submitted_by: String,
}

/// Which jobs to list. All given conditions must hold.
///
/// ```
/// use windlass_core::JobStatus;
/// use windlass_store::JobFilter;
///
/// let failed = JobFilter { status: Some(JobStatus::Failed), limit: 20, ..JobFilter::default() };
/// ```
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Only this job.
    pub id: Option<JobId>,
    /// Of this type.
    pub job_type: Option<String>,
    /// Of one of these types.
    pub job_types: Option<Vec<String>>,
    /// With this status.
    pub status: Option<JobStatus>,
    /// Of this submitter.
    pub submitted_by: Option<String>,
    /// Older than this job, for the next page.
    pub before: Option<JobId>,
    /// At most this many; zero means 50.
    pub limit: u32,
}
