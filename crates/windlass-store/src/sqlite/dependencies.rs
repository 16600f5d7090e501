//! Links jobs to their parents, and releases or cancels them when the parents end.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::{JobId, JobStatus, Request};
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, advance, sql};
use crate::dependency_rules::{
    self, Admission, Arrival, Follower, FollowerStep, Followers, JoinStep,
};
use crate::fields::Fields;
use crate::transitions::{JobState, Transition};
use crate::values::{self, clean, millis};
use crate::{DependencyStore, JoinPointRow, LinkedJob, Result, Trigger, rows};

#[async_trait]
impl DependencyStore for SqliteStore {
    async fn dependency_graph(&self, job: JobId, limit: u32) -> Result<Vec<LinkedJob>> {
        let params = (job.to_string(), limit);
        self.query(sql!(shared "dependency_graph"), params, |row| rows::linked_job(row)).await
    }

    async fn join_points(&self, limit: u32) -> Result<Vec<JoinPointRow>> {
        self.query(sql!(shared "list_join_points"), [limit], |row| rows::join_point(row)).await
    }

    async fn triggers(&self, limit: u32) -> Result<Vec<Trigger>> {
        self.query(sql!(shared "list_triggers"), [limit], |row| rows::trigger(row)).await
    }

    async fn lease_triggers(&self, limit: u32, lease: Duration) -> Result<Vec<Trigger>> {
        // A read that finds nothing does not block other writers.
        let due = self.query_opt(sql!("has_triggers"), [], |row| row.flag("due")).await?;
        if due != Some(true) {
            return Ok(Vec::new());
        }
        let params = (limit, millis(lease));
        let lease = move |tx: &Transaction<'_>| {
            tx.query(sql!("lease_triggers"), params, |row| rows::trigger(row))
        };
        self.write(lease).await
    }

    async fn complete_trigger(&self, id: JobId) -> Result<()> {
        self.execute(sql!(shared "remove_trigger"), [id.to_string()]).await.map(drop)
    }

    async fn fail_trigger(&self, id: JobId, error: &str, wait: Duration) -> Result<()> {
        let params = (id.to_string(), clean(error), millis(wait));
        self.execute(sql!("fail_trigger"), params).await.map(drop)
    }
}

/// Decides whether a new job waits for its parents.
pub(super) fn admit(tx: &Transaction<'_>, request: &Request) -> Result<Admission> {
    let parents = request.parents();
    if parents.is_empty() {
        return Ok(Admission::default());
    }
    let parents = serde_json::to_string(&parents)?;
    let found = tx.query(sql!("lock_parents"), [parents], |row| {
        Ok((row.id("id")?, row.status::<JobStatus>("status")?))
    })?;
    dependency_rules::admit(request, &found)
}

/// Links a new job to its parents. Cancels it if one of them did not complete.
pub(super) fn link(tx: &Transaction<'_>, id: JobId, admission: &Admission) -> Result<()> {
    for (parent, waits) in &admission.links {
        tx.execute(sql!("insert_link"), params![id.to_string(), parent.to_string(), waits])?;
    }
    if let Some(transition) = &admission.cancelled
        && let Some(mut job) = advance::lock_job(tx, id)?
        && end(tx, &mut job, transition)?
    {
        release_followers(tx, id)?;
    }
    Ok(())
}

/// Releases or cancels the jobs that wait for an ended job, and fires the dependencies that it
/// completes. Cancelled jobs have followers of their own, which are handled in the same way.
pub(super) fn release_followers(tx: &Transaction<'_>, id: JobId) -> Result<()> {
    let mut ended = vec![id];
    let mut waiting = followers(tx, id)?;
    while let Some((_, follower)) = waiting.pop_first() {
        let Some(mut job) = advance::lock_job(tx, follower.child)? else { continue };
        match follower.next(&job) {
            FollowerStep::Unchanged => {}
            FollowerStep::Release => release(tx, &follower)?,
            FollowerStep::End(transition) => {
                if end(tx, &mut job, &transition)? {
                    ended.push(job.id);
                    waiting.append(&mut followers(tx, job.id)?);
                }
            }
        }
    }
    for id in ended {
        let arrivals =
            tx.query_one(sql!(shared "ended_job"), [id.to_string()], |row| Arrival::read(row))?;
        arrivals.iter().try_for_each(|arrival| arrive(tx, arrival))?;
    }
    Ok(())
}

fn followers(tx: &Transaction<'_>, job: JobId) -> Result<Followers> {
    let rows = tx.query(sql!(shared "followers"), [job.to_string()], |row| Follower::read(row))?;
    Ok(rows.into_iter().collect())
}

fn release(tx: &Transaction<'_>, follower: &Follower) -> Result<()> {
    let (child, parent) = (follower.child.to_string(), follower.parent.to_string());
    if tx.execute(sql!("release_link"), [&child, &parent])? > 0 {
        tx.execute(sql!(shared "decrement_waits"), [&child])?;
        tx.signal()?;
    }
    Ok(())
}

/// Ends a waiting job, of which nothing was ever leased. Returns whether other jobs follow it.
fn end(tx: &Transaction<'_>, job: &mut JobState, transition: &Transition) -> Result<bool> {
    let id = job.id.to_string();
    let (merge, _) = values::merge()?;
    let segments = tx.execute(sql!(shared "cancel_segments"), [&id, &merge])?;
    tx.execute(sql!(shared "adjust_open_counts"), params![id, -(segments as i64), 0])?;
    advance::write(tx, job, transition)
}

fn arrive(tx: &Transaction<'_>, arrival: &Arrival) -> Result<()> {
    let params = params![arrival.key, arrival.rule()?, arrival.agreed];
    let arrived = tx.query_one(sql!("lock_join_point"), params, |row| row.text("arrived"))?;
    match arrival.arrive(&arrived)? {
        JoinStep::Waits { arrived } => {
            tx.execute(sql!(shared "update_join_point"), params![arrival.key, arrived])?;
        }
        JoinStep::Fires { id, request } => {
            tx.execute(sql!(shared "remove_join_point"), [&arrival.key])?;
            let (id, root) = (id.to_string(), arrival.root.to_string());
            tx.execute(sql!("insert_trigger"), params![id, request, arrival.identity, root])?;
            tx.signal()?;
        }
    }
    Ok(())
}
