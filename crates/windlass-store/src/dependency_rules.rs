//! The rules for jobs that run after other jobs. Pure functions, shared by both backends.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use windlass_core::problem::{Code, Problem};
use windlass_core::{
    Dependency, Identity, JobId, JobStatus, JoinArrival, JoinPoint, OnFailed, Request, Verdict,
};

use crate::Result;
use crate::fields::Fields;
use crate::transitions::{JobState, Transition, no_job};

/// Whether a new job can run, waits for its parents, or will never run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Admission {
    /// Each parent, and whether the job waits for it.
    pub(crate) links: Vec<(JobId, bool)>,
    /// The end of a job that will never run.
    pub(crate) cancelled: Option<Transition>,
}

impl Admission {
    /// The number of parents that it waits for.
    pub(crate) fn waits(&self) -> i64 {
        self.links.iter().filter(|(_, waits)| *waits).count() as i64
    }
}

/// Decides about a new job by the statuses of its parents, which are locked.
pub(crate) fn admit(request: &Request, found: &[(JobId, JobStatus)]) -> Result<Admission> {
    let on_failed = request.on_failed.unwrap_or_default();
    let refuse = |parent: JobId, detail: &str| {
        let place = request.after.iter().flatten().position(|id| *id == parent);
        Problem::field(Code::Request, format!("after[{}]", place.unwrap_or_default()), detail)
    };
    let mut admission = Admission::default();
    for parent in request.parents() {
        let status = found.iter().find(|(id, _)| *id == parent).map(|(_, status)| *status);
        let status = status.ok_or_else(|| refuse(parent, &no_job(parent).detail))?;
        let verdict = on_failed.judge(status);
        if verdict == Verdict::Wait && status == JobStatus::Cancelled {
            let detail = "was cancelled and will never complete; with `onFailed` set to `run` the \
                          job runs nevertheless";
            return Err(refuse(parent, detail).into());
        }
        if verdict == Verdict::Cancel {
            admission.cancelled.get_or_insert_with(|| cancelled_by(parent, status));
        }
        admission.links.push((parent, verdict == Verdict::Wait));
    }
    Ok(admission)
}

/// The end of a job whose parent did not complete.
fn cancelled_by(parent: JobId, status: JobStatus) -> Transition {
    let reason = format!("was to run after job {parent}, which is {status}");
    Transition::end(JobStatus::Cancelled, Some(reason))
}

/// Jobs that wait for an ended job, by age. Children are younger than their parents, so all
/// transactions lock parents before children.
pub(crate) type Followers = BTreeMap<FollowerKey, Follower>;

/// When the follower was created, its id, and the id of its parent.
pub(crate) type FollowerKey = (DateTime<Utc>, JobId, JobId);

/// A job that waits for a job that has ended.
pub(crate) struct Follower {
    pub(crate) child: JobId,
    pub(crate) parent: JobId,
    status: JobStatus,
    on_failed: OnFailed,
}

/// What happens to a job when one of its parents has ended.
#[derive(Debug, PartialEq)]
pub(crate) enum FollowerStep {
    /// It keeps waiting, or has ended already.
    Unchanged,
    /// It no longer waits for this parent.
    Release,
    /// It ends.
    End(Transition),
}

impl Follower {
    /// Reads a follower with its sort key.
    pub(crate) fn read(row: &impl Fields) -> Result<(FollowerKey, Follower)> {
        let (child, parent) = (row.id("child")?, row.id("parent")?);
        let on_failed = serde_json::from_value(row.text("on_failed")?.into())?;
        let follower = Follower { child, parent, status: row.status("status")?, on_failed };
        Ok(((row.time("created_at")?, child, parent), follower))
    }

    /// What happens to it. The job is locked.
    pub(crate) fn next(&self, job: &JobState) -> FollowerStep {
        match self.on_failed.judge(self.status) {
            _ if job.status.is_final() => FollowerStep::Unchanged,
            Verdict::Wait => FollowerStep::Unchanged,
            Verdict::Go => FollowerStep::Release,
            Verdict::Cancel => FollowerStep::End(cancelled_by(self.parent, self.status)),
        }
    }
}

/// An ended job, as a parent of one dependency.
pub(crate) struct Arrival {
    /// The key of the join point: a hash of the dependency and the common values. Join points are
    /// locked in order of their keys.
    pub(crate) key: String,
    pub(crate) agreed: String,
    pub(crate) identity: String,
    pub(crate) root: JobId,
    rule: Dependency,
    job_type: String,
    arrival: JoinArrival,
}

/// The result of an arrival at a join point.
pub(crate) enum JoinStep {
    /// Other parents have not ended. `arrived` is the new state of the join point.
    Waits { arrived: String },
    /// All parents have ended: the job to submit.
    Fires { id: JobId, request: String },
}

impl Arrival {
    /// The arrivals of an ended job, one for each dependency that waits for it.
    pub(crate) fn read(row: &impl Fields) -> Result<Vec<Arrival>> {
        let Some(rules) = row.opt_text("rules")? else { return Ok(Vec::new()) };
        let rules: Vec<Dependency> = serde_json::from_str(&rules)?;
        let (request, identity): (Request, Identity) =
            (row.json("request")?, row.json("identity")?);
        let arriving = |rule: Dependency| -> Result<Arrival> {
            let agreed = rule.values(&request.params, &identity.claims).to_string();
            let key = format!("{}\n{agreed}", serde_json::to_string(&rule)?);
            Ok(Arrival {
                key: hex::encode(Sha256::digest(key)),
                agreed,
                rule,
                job_type: row.text("job_type")?,
                arrival: JoinArrival {
                    job: row.id("id")?,
                    status: row.status("status")?,
                    params: request.params.clone(),
                    priority: request.priority(),
                },
                identity: row.text("identity")?,
                root: row.id("root")?,
            })
        };
        rules.into_iter().map(arriving).collect()
    }

    /// The dependency as JSON.
    pub(crate) fn rule(&self) -> Result<String> {
        Ok(serde_json::to_string(&self.rule)?)
    }

    /// Adds this job to the parents that have arrived.
    pub(crate) fn arrive(&self, arrived: &str) -> Result<JoinStep> {
        let mut join_point: JoinPoint = serde_json::from_str(arrived)?;
        join_point.arrive(&self.job_type, self.arrival.clone());
        Ok(match join_point.fire(&self.rule) {
            Some(request) => {
                JoinStep::Fires { id: JobId::now_v7(), request: serde_json::to_string(&request)? }
            }
            None => JoinStep::Waits { arrived: serde_json::to_string(&join_point)? },
        })
    }
}
