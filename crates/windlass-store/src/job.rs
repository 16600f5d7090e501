//! Jobs on their way into the store and out of it.

use windlass_core::{Dependency, Identity, JobId, JobStatus, JobType, Request};

/// A job to submit.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its id, made by the submitter so that a submit can be tried again.
    pub id: JobId,
    /// The definition it will run by, with its key columns resolved.
    pub definition: JobType,
    /// What was asked for.
    pub request: Request,
    /// Who asked.
    pub identity: Identity,
    /// The job whose items these are: itself, or the original of a redrive.
    pub root: JobId,
    /// The rules that wait for a job of this type to end.
    pub rules: Vec<Dependency>,
}

/// What became of a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// A new job.
    New(JobId),
    /// The same request under the same idempotency key was here before: that job.
    Existing(JobId),
}

impl Submitted {
    /// The job, new or not.
    pub fn id(self) -> JobId {
        match self {
            Submitted::New(id) | Submitted::Existing(id) => id,
        }
    }
}

/// What a job was submitted with: all that a worker needs to know of it.
#[derive(Clone, Debug)]
pub struct JobSnapshot {
    /// The job.
    pub id: JobId,
    /// Its definition.
    pub definition: JobType,
    /// Its request.
    pub request: Request,
    /// The submitter.
    pub identity: Identity,
    /// The job whose items these are.
    pub root: JobId,
}

/// Whose job it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The job.
    pub id: JobId,
    /// Its type.
    pub job_type: String,
    /// Who submitted it.
    pub submitted_by: String,
}

/// Which jobs to list.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Just this one.
    pub id: Option<JobId>,
    /// Of this type.
    pub job_type: Option<String>,
    /// Of one of these types.
    pub job_types: Option<Vec<String>>,
    /// In this status.
    pub status: Option<JobStatus>,
    /// Submitted by this one.
    pub submitted_by: Option<String>,
    /// Older than this job, for the next page.
    pub before: Option<JobId>,
    /// At most so many; zero means 50.
    pub limit: u32,
}
