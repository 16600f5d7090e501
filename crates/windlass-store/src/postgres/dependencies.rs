//! What the end of a job means to those that come after it, in the transaction that ended it.

use std::time::Duration;

use windlass_core::{JobId, JobStatus, Request};
use windlass_drivers::{Row, Transaction};

use super::{PostgresStore, advance, params, sql};
use crate::dependency_rules::{self, Admission, Arriving, Follower, Followers, Met, Next};
use crate::fields::Fields;
use crate::transitions::{JobState, Transition};
use crate::values::{self, clean, millis};
use crate::{JoinPointRow, Linked, Result, Trigger, rows};

/// Whether a new job has to wait. Locks its parents until the transaction ends.
pub(super) async fn admit(tx: &Transaction, request: &Request) -> Result<Admission> {
    let parents = request.parents();
    if parents.is_empty() {
        return Ok(Admission::default());
    }
    let found = tx.query(sql!("lock_parents"), params![parents]).await?;
    let read = |row: &Row| Ok((row.id("id")?, row.status::<JobStatus>("status")?));
    dependency_rules::admit(request, &found.iter().map(read).collect::<Result<Vec<_>>>()?)
}

/// Links a new job to its parents, and ends it where they let it down.
pub(super) async fn link(tx: &Transaction, job: JobId, admission: &Admission) -> Result<()> {
    if admission.links.is_empty() {
        return Ok(());
    }
    let (parents, waits): (Vec<_>, Vec<_>) = admission.links.iter().copied().unzip();
    tx.execute(sql!("insert_links"), params![job, parents, waits]).await?;
    if let Some(made) = &admission.never
        && let Some(mut head) = advance::lock(tx, job).await?
        && end(tx, &mut head, made).await?
    {
        follow(tx, job).await?;
    }
    Ok(())
}

/// A job has ended: those that wait for it go on or end too, and rules that wait for it fire.
pub(super) async fn follow(tx: &Transaction, job: JobId) -> Result<()> {
    let mut ended = vec![job];
    let mut waiting = followers(tx, job).await?;
    while let Some((_, follower)) = waiting.pop_first() {
        let Some(mut head) = advance::lock(tx, follower.child).await? else { continue };
        match follower.next(&head) {
            Next::Stay => {}
            Next::Pass => pass(tx, &follower).await?,
            Next::End(made) => {
                if end(tx, &mut head, &made).await? {
                    ended.push(head.id);
                    waiting.append(&mut followers(tx, head.id).await?);
                }
            }
        }
    }
    // Meetings are locked after all jobs, and in order.
    let mut arriving = Vec::new();
    for job in ended {
        let row = tx.query_one(sql!("ended"), params![job]).await?;
        arriving.extend(Arriving::read(&row)?);
    }
    arriving.sort_by(|a, b| a.key.cmp(&b.key));
    for arriving in arriving {
        meet(tx, &arriving).await?;
    }
    Ok(())
}

async fn followers(tx: &Transaction, job: JobId) -> Result<Followers> {
    let rows = tx.query(sql!("followers"), params![job]).await?;
    rows.iter().map(Follower::read).collect()
}

async fn pass(tx: &Transaction, follower: &Follower) -> Result<()> {
    let link = params![follower.child, follower.parent];
    if tx.execute(sql!("pass_link"), link).await? > 0 {
        tx.execute(sql!("pass_parent"), params![follower.child]).await?;
        advance::signal(tx).await?;
    }
    Ok(())
}

/// Ends a job that waits, of which nothing was ever claimed. Says whether others follow it.
async fn end(tx: &Transaction, head: &mut JobState, made: &Transition) -> Result<bool> {
    let (merge, _) = values::merge()?;
    let segments = tx.execute(sql!("cancel_segments"), params![head.id, merge]).await?;
    tx.execute(sql!("open_job"), params![head.id, -(segments as i64), 0_i64]).await?;
    advance::moved(tx, head, made).await
}

async fn meet(tx: &Transaction, arriving: &Arriving) -> Result<()> {
    let place = params![&arriving.key, arriving.rule()?, &arriving.agreed];
    let arrived = tx.query_one(sql!("meet"), place).await?.text("arrived")?;
    match arriving.meet(&arrived)? {
        Met::Waits { arrived } => {
            tx.execute(sql!("keep_join_point"), params![&arriving.key, arrived]).await?;
        }
        Met::Fires { id, request } => {
            tx.execute(sql!("end_join_point"), params![&arriving.key]).await?;
            let trigger = params![id, request, &arriving.identity, arriving.root];
            tx.execute(sql!("insert_trigger"), trigger).await?;
            advance::signal(tx).await?;
        }
    }
    Ok(())
}

pub(super) async fn graph(store: &PostgresStore, job: JobId, limit: u32) -> Result<Vec<Linked>> {
    store.read(sql!("graph"), params![job, limit], rows::linked).await
}

pub(super) async fn join_points(store: &PostgresStore, limit: u32) -> Result<Vec<JoinPointRow>> {
    store.read(sql!("join_points"), params![limit], rows::join_point).await
}

pub(super) async fn triggers(store: &PostgresStore, limit: u32) -> Result<Vec<Trigger>> {
    store.read(sql!("triggers"), params![limit], rows::trigger).await
}

pub(super) async fn claim_triggers(
    store: &PostgresStore,
    limit: u32,
    lease: Duration,
) -> Result<Vec<Trigger>> {
    store.read(sql!("claim_triggers"), params![limit, millis(lease)], rows::trigger).await
}

pub(super) async fn triggered(store: &PostgresStore, id: JobId) -> Result<()> {
    store.single(sql!("triggered"), params![id]).await.map(drop)
}

pub(super) async fn fail_trigger(
    store: &PostgresStore,
    id: JobId,
    error: &str,
    wait: Duration,
) -> Result<()> {
    store.single(sql!("fail_trigger"), params![id, clean(error), millis(wait)]).await.map(drop)
}
