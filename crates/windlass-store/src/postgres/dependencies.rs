//! Links jobs to their parents, and releases or cancels them when the parents end.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::{JobId, JobStatus, Request};
use windlass_drivers::Row;

use super::{PostgresStore, Transaction, advance, params, sql};
use crate::dependency_rules::{
    self, Admission, Arrival, Follower, FollowerStep, Followers, JoinStep,
};
use crate::fields::Fields;
use crate::transitions::{JobState, Transition};
use crate::values::{self, clean, millis};
use crate::{DependencyStore, JoinPointRow, LinkedJob, Result, Trigger, rows};

#[async_trait]
impl DependencyStore for PostgresStore {
    async fn dependency_graph(&self, job: JobId, limit: u32) -> Result<Vec<LinkedJob>> {
        self.read(sql!(shared "dependency_graph"), params![job, limit], rows::linked_job).await
    }

    async fn join_points(&self, limit: u32) -> Result<Vec<JoinPointRow>> {
        self.read(sql!(shared "list_join_points"), params![limit], rows::join_point).await
    }

    async fn triggers(&self, limit: u32) -> Result<Vec<Trigger>> {
        self.read(sql!(shared "list_triggers"), params![limit], rows::trigger).await
    }

    async fn lease_triggers(&self, limit: u32, lease: Duration) -> Result<Vec<Trigger>> {
        self.read(sql!("lease_triggers"), params![limit, millis(lease)], rows::trigger).await
    }

    async fn complete_trigger(&self, id: JobId) -> Result<()> {
        self.single(sql!(shared "remove_trigger"), params![id]).await.map(drop)
    }

    async fn fail_trigger(&self, id: JobId, error: &str, wait: Duration) -> Result<()> {
        let params = params![id, clean(error), millis(wait)];
        self.single(sql!("fail_trigger"), params).await.map(drop)
    }
}

/// Decides whether a new job waits for its parents. They stay locked until the transaction ends.
pub(super) async fn admit(tx: &Transaction, request: &Request) -> Result<Admission> {
    let parents = request.parents();
    if parents.is_empty() {
        return Ok(Admission::default());
    }
    let found = tx.query(sql!("lock_parents"), params![parents]).await?;
    let read = |row: &Row| Ok((row.id("id")?, row.status::<JobStatus>("status")?));
    dependency_rules::admit(request, &found.iter().map(read).collect::<Result<Vec<_>>>()?)
}

/// Links a new job to its parents. Cancels it if one of them did not complete.
pub(super) async fn link(tx: &Transaction, id: JobId, admission: &Admission) -> Result<()> {
    if admission.links.is_empty() {
        return Ok(());
    }
    let (parents, waits): (Vec<_>, Vec<_>) = admission.links.iter().copied().unzip();
    tx.execute(sql!("insert_links"), params![id, parents, waits]).await?;
    if let Some(transition) = &admission.cancelled
        && let Some(mut job) = advance::lock_job(tx, id).await?
        && end(tx, &mut job, transition).await?
    {
        release_followers(tx, id).await?;
    }
    Ok(())
}

/// Releases or cancels the jobs that wait for an ended job, and fires the dependencies that it
/// completes. Cancelled jobs have followers of their own, which are handled in the same way.
pub(super) async fn release_followers(tx: &Transaction, id: JobId) -> Result<()> {
    let mut ended = vec![id];
    let mut waiting = followers(tx, id).await?;
    while let Some((_, follower)) = waiting.pop_first() {
        let Some(mut job) = advance::lock_job(tx, follower.child).await? else { continue };
        match follower.next(&job) {
            FollowerStep::Unchanged => {}
            FollowerStep::Release => release(tx, &follower).await?,
            FollowerStep::End(transition) => {
                if end(tx, &mut job, &transition).await? {
                    ended.push(job.id);
                    waiting.append(&mut followers(tx, job.id).await?);
                }
            }
        }
    }
    // To avoid deadlocks, join points are locked after all jobs and in order of their keys.
    let mut arrivals = Vec::new();
    for id in ended {
        let row = tx.query_one(sql!(shared "ended_job"), params![id]).await?;
        arrivals.extend(Arrival::read(&row)?);
    }
    arrivals.sort_by(|a, b| a.key.cmp(&b.key));
    for arrival in arrivals {
        arrive(tx, &arrival).await?;
    }
    Ok(())
}

async fn followers(tx: &Transaction, job: JobId) -> Result<Followers> {
    let rows = tx.query(sql!(shared "followers"), params![job]).await?;
    rows.iter().map(Follower::read).collect()
}

async fn release(tx: &Transaction, follower: &Follower) -> Result<()> {
    let link = params![follower.child, follower.parent];
    if tx.execute(sql!("release_link"), link).await? > 0 {
        tx.execute(sql!(shared "decrement_waits"), params![follower.child]).await?;
        tx.signal();
    }
    Ok(())
}

/// Ends a waiting job, of which nothing was ever leased. Returns whether other jobs follow it.
async fn end(tx: &Transaction, job: &mut JobState, transition: &Transition) -> Result<bool> {
    let (merge, _) = values::merge()?;
    let segments = tx.execute(sql!(shared "cancel_segments"), params![job.id, merge]).await?;
    tx.execute(sql!(shared "adjust_open_counts"), params![job.id, -(segments as i64), 0_i64])
        .await?;
    advance::write(tx, job, transition).await
}

async fn arrive(tx: &Transaction, arrival: &Arrival) -> Result<()> {
    let params = params![&arrival.key, arrival.rule()?, &arrival.agreed];
    let arrived = tx.query_one(sql!("lock_join_point"), params).await?.text("arrived")?;
    match arrival.arrive(&arrived)? {
        JoinStep::Waits { arrived } => {
            tx.execute(sql!(shared "update_join_point"), params![&arrival.key, arrived]).await?;
        }
        JoinStep::Fires { id, request } => {
            tx.execute(sql!(shared "remove_join_point"), params![&arrival.key]).await?;
            let trigger = params![id, request, &arrival.identity, arrival.root];
            tx.execute(sql!("insert_trigger"), trigger).await?;
            tx.signal();
        }
    }
    Ok(())
}
