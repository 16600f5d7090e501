//! What of the store a caller sees: their own jobs and what belongs to them, or everything.

use crate::App;
use crate::auth::Caller;
use crate::problem::{Answer, Failure};
use std::collections::HashMap;
use uuid::Uuid;
use windlass_core::{Job, JobId};
use windlass_store::{DeadLetter, JobFilter, LetterFilter};

/// Rows looked through at once for those that are the caller's.
const PAGE: u32 = 500;

impl App {
    /// A job that the caller sees. Others' jobs are not there.
    pub(crate) async fn job(&self, caller: &Caller, id: JobId) -> Answer<Job> {
        let job = self.engine.store().job(id).await?;
        job.filter(|job| caller.sees(job)).ok_or_else(|| Failure::not_found("job", id))
    }

    /// A page of the jobs that the caller sees.
    pub(crate) async fn jobs(&self, caller: &Caller, mut filter: JobFilter) -> Answer<Vec<Job>> {
        let store = self.engine.store();
        if caller.sees_all() {
            return Ok(store.jobs(&filter).await?);
        }
        let wanted = std::mem::replace(&mut filter.limit, PAGE) as usize;
        let mut seen = Vec::new();
        loop {
            let page = store.jobs(&filter).await?;
            filter.before = page.last().map(|job| job.id);
            let last = page.len() < PAGE as usize;
            seen.extend(page.into_iter().filter(|job| caller.sees(job)));
            if last || seen.len() >= wanted {
                seen.truncate(wanted);
                return Ok(seen);
            }
        }
    }

    /// A dead letter that the caller sees.
    pub(crate) async fn letter(&self, caller: &Caller, id: Uuid) -> Answer<DeadLetter> {
        let filter = LetterFilter { ids: vec![id], limit: 1, ..LetterFilter::default() };
        let found = self.letters(caller, filter).await?.pop();
        found.ok_or_else(|| Failure::not_found("dead letter", id))
    }

    /// A page of the dead letters that the caller sees.
    pub(crate) async fn letters(
        &self,
        caller: &Caller,
        mut filter: LetterFilter,
    ) -> Answer<Vec<DeadLetter>> {
        let store = self.engine.store();
        if caller.sees_all() {
            return Ok(store.letters(&filter).await?);
        }
        let wanted = std::mem::replace(&mut filter.limit, PAGE) as usize;
        let mut whose = HashMap::new();
        let mut seen = Vec::new();
        loop {
            let page = store.letters(&filter).await?;
            filter.before = page.last().map(|letter| letter.id);
            let last = page.len() < PAGE as usize;
            for letter in page {
                if self.owns(caller, letter.job_id, &mut whose).await? {
                    seen.push(letter);
                }
            }
            if last || seen.len() >= wanted {
                seen.truncate(wanted);
                return Ok(seen);
            }
        }
    }

    /// The filter of an act on letters, once for each job whose letters the caller sees, or once
    /// for all.
    pub(crate) async fn acts(
        &self,
        caller: &Caller,
        filter: LetterFilter,
    ) -> Answer<Vec<LetterFilter>> {
        if caller.sees_all() {
            return Ok(vec![filter]);
        }
        let mut own = Vec::new();
        for root in self.engine.store().redrivable(&filter).await? {
            if self.owns(caller, root.job, &mut HashMap::new()).await? {
                own.push(LetterFilter { job: Some(root.job), ..filter.clone() });
            }
        }
        Ok(own)
    }

    async fn owns(
        &self,
        caller: &Caller,
        job: JobId,
        known: &mut HashMap<JobId, bool>,
    ) -> Answer<bool> {
        if let Some(owns) = known.get(&job) {
            return Ok(*owns);
        }
        let found = self.engine.store().job(job).await?;
        let owns = found.is_some_and(|job| caller.sees(&job));
        known.insert(job, owns);
        Ok(owns)
    }
}
