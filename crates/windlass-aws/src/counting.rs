//! Counts the items of jobs whose job type says so (`queue.progress`).

use crate::batch_tracker::Item;
use crate::completion::complete;
use crate::process::{Decided, Work};
use crate::{Delivery, Error, Events, Message, Process, Result};
use windlass_connectors::dynamodb::{Ending, ItemOutcome, KnownOutcomes, Written};
use windlass_core::{JobType, Key, OnConflict, Request};

impl Work<'_> {
    /// Writes records and counts them in the same transactions. Returns the items to work again.
    pub(crate) async fn write_counted<'i>(
        &self,
        decided: Vec<Decided<'i, '_>>,
        known: KnownOutcomes,
    ) -> Vec<&'i Item> {
        let ending = |one: &Decided<'i, '_>| one.change.is_some();
        let changes = decided.iter().filter(|one| ending(one)).count() as u64;
        self.tracker.count(|stats| stats.writes += changes);
        let endings: Vec<Ending<'_>> = decided
            .iter()
            .map(|one| match &one.change {
                Some(change) => Ending::Processed(one.read, change),
                None => Ending::Skipped(&one.item.key),
            })
            .collect();
        let job = self.group.job;
        let results = self.records.commit_counted(&self.scope, job, known.clone(), &endings).await;
        let mut again = Vec::new();
        let mut skipped = Vec::new();
        let skips = self.scope.job_type.step.on_conflict == OnConflict::Skip;
        for (one, result) in decided.into_iter().zip(results) {
            match result {
                Ok(Written::Conflict) if skips && one.change.is_some() => {
                    self.tracker.count(|stats| stats.conflicts += 1);
                    skipped.push(Decided { change: None, ..one });
                }
                result => {
                    if self.written(&one, result) == Written::Conflict {
                        again.push(one.item);
                    }
                }
            }
        }
        let endings: Vec<_> = skipped.iter().map(|one| Ending::Skipped(&one.item.key)).collect();
        let results = self.records.commit_counted(&self.scope, job, known, &endings).await;
        for (one, result) in skipped.iter().zip(results) {
            if self.written(one, result) == Written::Conflict {
                again.push(one.item);
            }
        }
        again
    }

    /// Ends the job if all its items have ended.
    pub(crate) async fn complete(&self, events: Option<&Events>) -> Result<()> {
        if !self.scope.job_type.queue.progress {
            return Ok(());
        }
        let job = self.group.job;
        let progress = self.records.progress(job).await;
        let progress = progress.map_err(Error::data(format!("the job {job}")))?;
        complete(&self.records, events, job, progress).await
    }
}

impl Process {
    /// The job type of a message.
    pub(crate) fn job_type(&self, delivery: &Delivery) -> Result<&JobType> {
        let message = Message::read(&delivery.body, &self.sources.config)?;
        Ok(self.sources.config.job_type(&message.job_type)?)
    }

    /// Counts items of a message as dead, if their job is counted. Returns for each whether it is dead: another
    /// delivery may have ended it otherwise.
    pub(crate) async fn count_dead(
        &self,
        delivery: &Delivery,
        job_type: &JobType,
        keys: &[Key],
    ) -> Result<Vec<bool>> {
        if !job_type.queue.progress {
            return Ok(vec![true; keys.len()]);
        }
        let job = delivery.job();
        let doing = || Error::data(format!("counting dead letters of the job {job}"));
        let request = Request { params: delivery.params()?, ..Request::new(&job_type.name) };
        let (records, scope) = self.sources.scope(&request).await?;
        let mut dead = vec![false; keys.len()];
        let mut left: Vec<usize> = (0..keys.len()).collect();
        while !left.is_empty() {
            let open: Vec<Key> = left.iter().map(|n| keys[*n].clone()).collect();
            let Some(known) = records.known_outcomes(job, &open).await.map_err(doing())? else {
                return Ok(vec![true; keys.len()]);
            };
            let is_done =
                |n: &usize| known.of(&keys[*n]).is_some_and(|outcome| outcome != ItemOutcome::Dead);
            left.retain(|n| !is_done(n));
            let written = records.read(&scope, open, job).await.map_err(doing())?;
            let written =
                |key: &Key| written.iter().any(|read| read.item.key == *key && read.has_job(job));
            left.retain(|n| !written(&keys[*n]));
            let endings: Vec<_> = left.iter().map(|n| Ending::Dead(&keys[*n])).collect();
            let results = records.commit_counted(&scope, job, known, &endings).await;
            let mut again = Vec::new();
            for (n, result) in left.into_iter().zip(results) {
                match result.map_err(doing())? {
                    Written::Done => dead[n] = true,
                    Written::Conflict => again.push(n),
                }
            }
            left = again;
        }
        let progress = records.progress(job).await.map_err(doing())?;
        complete(&records, self.events.as_ref(), job, progress).await?;
        Ok(dead)
    }
}
