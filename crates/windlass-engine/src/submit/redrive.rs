//! Redrive: a new job on exactly the keys of dead letters, under the identity of the original.

use crate::Result;
use crate::engine::Engine;
use windlass_core::problem::Code;
use windlass_core::{Identity, JobId, Problem, Request};
use windlass_store::{DeadLetterFilter, NewJob};

/// One job that redrives letters of one original job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Redriven {
    /// The new job.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub job_id: JobId,
    /// The job whose letters it redrives.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub original_job: JobId,
    /// How many.
    pub letters: u64,
}

/// Who asks for a job to be run again, with the claims of their present token.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The present claims.
    pub identity: Identity,
    /// The job types of which a role of theirs is for the jobs of all submitters.
    pub operated_types: Vec<String>,
    /// The claim that names their roles. It does not restrict an operator, whose role is another than
    /// the submitter's, even if the job type filters by it.
    pub roles_claim: Option<String>,
}

impl Engine {
    /// Refuses a caller whose present claims do not cover those a job was submitted with: running
    /// it again would reach records that the caller may not reach any more.
    pub async fn check_caller(&self, job: JobId, caller: &Caller) -> Result<()> {
        let Some(snapshot) = self.store().snapshot(job).await? else { return Ok(()) };
        let filtered = &snapshot.definition.source.claims;
        let is_operator = caller.operated_types.contains(&snapshot.definition.name);
        let mut identity = caller.identity.clone();
        if let Some(claim) = caller.roles_claim.as_ref().filter(|_| is_operator) {
            identity.claims.remove(claim);
        }
        Ok(identity.check_covers(&snapshot.identity, filtered, is_operator)?)
    }

    /// Redrives every matching letter that is `new` and not being redriven, one job or more for
    /// each original job. They run by the definition as it is now, since that is what was mended.
    pub async fn redrive(&self, filter: &DeadLetterFilter) -> Result<Vec<Redriven>> {
        self.redrive_for(filter, None).await
    }

    /// The same for a caller, whose present claims must cover those of every original job. Nothing
    /// is redriven where they do not.
    pub async fn redrive_for(
        &self,
        filter: &DeadLetterFilter,
        caller: Option<&Caller>,
    ) -> Result<Vec<Redriven>> {
        let mut redriven = Vec::new();
        let roots = self.store().redrivable(filter).await?;
        if let Some(caller) = caller {
            for root in &roots {
                self.check_caller(root.job, caller).await?;
            }
        }
        for root in roots {
            let job_type = self.config().job_type(&root.job_type)?;
            let checked = self.check_job_type(job_type).await.map_err(|problems| {
                let first = problems.into_iter().next();
                first.unwrap_or_else(|| Problem::new(Code::Source, "is not usable"))
            })?;
            let Some(original) = self.store().snapshot(root.job).await? else { continue };
            // No more than there were: letters that fail again meanwhile are for another day.
            let mut taken = 0;
            while taken < root.letters {
                let id = JobId::now_v7();
                let request = Request {
                    params: original.request.params.clone(),
                    priority: original.request.priority,
                    ..Request::new(&root.job_type)
                };
                let job = NewJob {
                    id,
                    definition: checked.definition.clone(),
                    request,
                    identity: original.identity.clone(),
                    root: original.root,
                    // What came after the original has come.
                    rules: Vec::new(),
                };
                match self.store().redrive(root.job, filter, job).await? {
                    Some((job_id, letters)) => {
                        taken += letters;
                        redriven.push(Redriven { job_id, original_job: root.job, letters });
                    }
                    None => break,
                }
            }
        }
        Ok(redriven)
    }
}
