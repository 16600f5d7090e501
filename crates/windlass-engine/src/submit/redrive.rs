//! Redrives dead letters: a new job on exactly their keys, under the identity of the original job.

use crate::Result;
use crate::engine::Engine;
use windlass_core::params::DATE;
use windlass_core::problem::Code;
use windlass_core::{Identity, JobId, Problem, Request};
use windlass_store::{DeadLetterFilter, NewJob};

/// A job that redrives dead letters of one original job.
///
/// ```no_run
/// use windlass_store::DeadLetterFilter;
///
/// # async fn example(engine: &windlass_engine::Engine) -> windlass_engine::Result<()> {
/// for redriven in engine.redrive(&DeadLetterFilter::default()).await? {
///     println!("job {} redrives {} dead letters", redriven.job_id, redriven.letters);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Redriven {
    /// The new job.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub job_id: JobId,
    /// The job whose dead letters it redrives.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub original_job: JobId,
    /// Number of dead letters.
    pub letters: u64,
}

/// The caller who asks to run a job again.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The identity of the caller's present token.
    pub identity: Identity,
    /// The job types for which a role of the caller covers the jobs of all submitters.
    pub operated_types: Vec<String>,
    /// The claim that names the caller's roles. It is not compared for an operator, even if the job
    /// type filters by it: an operator has another role than the submitter.
    pub roles_claim: Option<String>,
}

impl Engine {
    /// Rejects a caller whose present claims do not cover those the job was submitted with: running
    /// the job again would access records that the caller may no longer access.
    ///
    /// # Errors
    /// The first claim that the caller does not cover, or the store fails.
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

    /// Redrives every matching dead letter that is `new` and not being redriven, with one or more jobs
    /// per original job. The new jobs use the current definition, since that is what was fixed.
    ///
    /// # Errors
    /// A job type is no longer defined, or the store fails.
    pub async fn redrive(&self, filter: &DeadLetterFilter) -> Result<Vec<Redriven>> {
        self.redrive_for(filter, None).await
    }

    /// Like [`Engine::redrive`], for a caller whose present claims must cover those of every original
    /// job. Otherwise nothing is redriven.
    ///
    /// # Errors
    /// A claim that the caller does not cover, a job type that is no longer defined, or the store fails.
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
            self.forget_schema(&job_type.source);
            let checked = self.check_job_type(job_type).await.map_err(|problems| {
                let first = problems.into_iter().next();
                first.unwrap_or_else(|| Problem::new(Code::Source, "is not usable"))
            })?;
            let Some(original) = self.store().snapshot(root.job).await? else { continue };
            // Not more than were found: letters that fail again meanwhile must not loop.
            let mut taken = 0;
            while taken < root.letters {
                let id = JobId::now_v7();
                // The items still belong to the date of the original.
                let mut params = original.request.params.clone();
                if checked.definition.uses_date() {
                    let date = original.definition.date_of(&params, original.id);
                    params.entry(DATE.to_owned()).or_insert(date.to_string().into());
                }
                let request = Request {
                    params,
                    priority: original.request.priority,
                    ..Request::new(&root.job_type)
                };
                let job = NewJob {
                    id,
                    definition: checked.definition.clone(),
                    request,
                    identity: original.identity.clone(),
                    root: original.root,
                    // The dependents of the original were submitted when it ended.
                    rules: Vec::new(),
                    plan: None,
                };
                match self.store().redrive(root.job, filter, job).await? {
                    Some((job_id, letters)) => {
                        taken += letters;
                        tracing::info!(job = %job_id, original = %root.job, letters,
                            "redrive job submitted");
                        redriven.push(Redriven { job_id, original_job: root.job, letters });
                    }
                    None => break,
                }
            }
        }
        Ok(redriven)
    }
}
