//! Redrive: a new job on exactly the keys of dead letters, under the identity of the original.

use crate::Result;
use crate::engine::Engine;
use windlass_core::problem::Code;
use windlass_core::{JobId, Problem, Request};
use windlass_store::{LetterFilter, NewJob};

/// One job that redrives letters of one original job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Redriven {
    /// The new job.
    pub job_id: JobId,
    /// The job whose letters it redrives.
    pub original_job: JobId,
    /// How many.
    pub letters: u64,
}

impl Engine {
    /// Redrives every matching letter that is `new` and not being redriven, one job or more for
    /// each original job. They run by the definition as it is now, since that is what was mended.
    pub async fn redrive(&self, filter: &LetterFilter) -> Result<Vec<Redriven>> {
        let mut redriven = Vec::new();
        for root in self.store().redrivable(filter).await? {
            let job_type = self.config().job_type(&root.job_type)?;
            let checked = self.check_job_type(job_type).await.map_err(|problems| {
                let first = problems.into_iter().next();
                first.unwrap_or_else(|| Problem::new(Code::Source, "is not usable"))
            })?;
            let Some(original) = self.store().pinned(root.job).await? else { continue };
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
