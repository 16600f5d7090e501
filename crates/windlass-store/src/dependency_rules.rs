//! What jobs mean to those that come after them: pure decisions, taken once for both backends.

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

/// How a new job stands to the jobs it is to come after.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Admission {
    /// Each parent, and whether it is waited for.
    pub(crate) links: Vec<(JobId, bool)>,
    /// Why it will never run.
    pub(crate) never: Option<Transition>,
}

impl Admission {
    /// How many parents it waits for.
    pub(crate) fn waits(&self) -> i64 {
        self.links.iter().filter(|(_, waits)| *waits).count() as i64
    }
}

/// Whether a new job has to wait for its parents, as they stand under their locks.
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
            let detail = "was cancelled and will never complete; with `onFailed` as `run` the job \
                          runs all the same";
            return Err(refuse(parent, detail).into());
        }
        if verdict == Verdict::Cancel {
            admission.never.get_or_insert_with(|| never(parent, status));
        }
        admission.links.push((parent, verdict == Verdict::Wait));
    }
    Ok(admission)
}

/// The end of a job whose parent let it down.
fn never(parent: JobId, status: JobStatus) -> Transition {
    let reason = format!("was to come after job {parent}, which is {status}");
    Transition::end(JobStatus::Cancelled, Some(reason))
}

/// Jobs that wait for one that has ended, by age: children are younger than their parents, so that
/// locks go from parents to children everywhere.
pub(crate) type Followers = BTreeMap<Place, Follower>;

/// When the follower was created, its id, and whom it waits for.
pub(crate) type Place = (DateTime<Utc>, JobId, JobId);

/// A job that waits for one that has ended.
pub(crate) struct Follower {
    pub(crate) child: JobId,
    pub(crate) parent: JobId,
    status: JobStatus,
    on_failed: OnFailed,
}

/// What becomes of a job when one that it waits for has ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Nothing.
    Stay,
    /// It waits for one less.
    Pass,
    /// It ends.
    End(Transition),
}

impl Follower {
    /// The follower with its place among the others.
    pub(crate) fn read(row: &impl Fields) -> Result<(Place, Follower)> {
        let (child, parent) = (row.id("child")?, row.id("parent")?);
        let on_failed = serde_json::from_value(row.text("on_failed")?.into())?;
        let follower = Follower { child, parent, status: row.status("status")?, on_failed };
        Ok(((row.time("created_at")?, child, parent), follower))
    }

    /// What becomes of it; the job is locked.
    pub(crate) fn next(&self, head: &JobState) -> Next {
        match self.on_failed.judge(self.status) {
            _ if head.status.is_final() => Next::Stay,
            Verdict::Wait => Next::Stay,
            Verdict::Go => Next::Pass,
            Verdict::Cancel => Next::End(never(self.parent, self.status)),
        }
    }
}

/// A job that has ended, on its way to the join_point of a rule.
pub(crate) struct Arriving {
    /// The join_point: of this rule, for these values. Meetings are locked in order of it.
    pub(crate) key: String,
    pub(crate) agreed: String,
    pub(crate) identity: String,
    pub(crate) root: JobId,
    rule: Dependency,
    job_type: String,
    arrival: JoinArrival,
}

/// What comes of an arrival.
pub(crate) enum Met {
    /// Others are missing: who is here now.
    Waits { arrived: String },
    /// All are here: the job to submit.
    Fires { id: JobId, request: String },
}

impl Arriving {
    /// All the join_points that an ended job comes to.
    pub(crate) fn read(row: &impl Fields) -> Result<Vec<Arriving>> {
        let Some(rules) = row.opt_text("rules")? else { return Ok(Vec::new()) };
        let rules: Vec<Dependency> = serde_json::from_str(&rules)?;
        let (request, identity): (Request, Identity) =
            (row.json("request")?, row.json("identity")?);
        let arriving = |rule: Dependency| -> Result<Arriving> {
            let agreed = rule.values(&request.params, &identity.claims).to_string();
            let key = format!("{}\n{agreed}", serde_json::to_string(&rule)?);
            Ok(Arriving {
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

    /// The rule, as it is shown.
    pub(crate) fn rule(&self) -> Result<String> {
        Ok(serde_json::to_string(&self.rule)?)
    }

    /// Comes to a join_point where these are.
    pub(crate) fn meet(&self, arrived: &str) -> Result<Met> {
        let mut join_point: JoinPoint = serde_json::from_str(arrived)?;
        join_point.arrive(&self.job_type, self.arrival.clone());
        Ok(match join_point.fire(&self.rule) {
            Some(request) => {
                Met::Fires { id: JobId::now_v7(), request: serde_json::to_string(&request)? }
            }
            None => Met::Waits { arrived: serde_json::to_string(&join_point)? },
        })
    }
}
