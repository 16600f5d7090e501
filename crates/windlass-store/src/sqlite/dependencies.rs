//! What the end of a job means to those that come after it, in the transaction that ended it.

use std::time::Duration;

use windlass_core::{JobId, JobStatus, Request};
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, advance, sql};
use crate::dependency_rules::{self, Admission, Arriving, Follower, Followers, Met, Next};
use crate::fields::Fields;
use crate::transitions::{JobState, Transition};
use crate::values::{self, millis};
use crate::{JoinPointRow, Linked, Result, Trigger, rows};

/// Whether a new job has to wait.
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

/// Links a new job to its parents, and ends it where they let it down.
pub(super) fn link(tx: &Transaction<'_>, job: JobId, admission: &Admission) -> Result<()> {
    for (parent, waits) in &admission.links {
        let link = params![job.to_string(), parent.to_string(), waits];
        tx.execute(sql!("insert_link"), link)?;
    }
    if let Some(made) = &admission.never
        && let Some(mut head) = advance::lock(tx, job)?
        && end(tx, &mut head, made)?
    {
        follow(tx, job)?;
    }
    Ok(())
}

/// A job has ended: those that wait for it go on or end too, and rules that wait for it fire.
pub(super) fn follow(tx: &Transaction<'_>, job: JobId) -> Result<()> {
    let mut ended = vec![job];
    let mut waiting = followers(tx, job)?;
    while let Some((_, follower)) = waiting.pop_first() {
        let Some(mut head) = advance::lock(tx, follower.child)? else { continue };
        match follower.next(&head) {
            Next::Stay => {}
            Next::Pass => pass(tx, &follower)?,
            Next::End(made) => {
                if end(tx, &mut head, &made)? {
                    ended.push(head.id);
                    waiting.append(&mut followers(tx, head.id)?);
                }
            }
        }
    }
    for job in ended {
        let arriving = tx.query_one(sql!("ended"), [job.to_string()], |row| Arriving::read(row))?;
        for arriving in arriving {
            meet(tx, &arriving)?;
        }
    }
    Ok(())
}

fn followers(tx: &Transaction<'_>, job: JobId) -> Result<Followers> {
    let rows = tx.query(sql!("followers"), [job.to_string()], |row| Follower::read(row))?;
    Ok(rows.into_iter().collect())
}

fn pass(tx: &Transaction<'_>, follower: &Follower) -> Result<()> {
    let (child, parent) = (follower.child.to_string(), follower.parent.to_string());
    if tx.execute(sql!("pass_link"), [&child, &parent])? > 0 {
        tx.execute(sql!("pass_parent"), [&child])?;
        tx.signal()?;
    }
    Ok(())
}

/// Ends a job that waits, of which nothing was ever claimed. Says whether others follow it.
fn end(tx: &Transaction<'_>, head: &mut JobState, made: &Transition) -> Result<bool> {
    let id = head.id.to_string();
    let (merge, _) = values::merge()?;
    let segments = tx.execute(sql!("cancel_segments"), [&id, &merge])?;
    tx.execute(sql!("open_job"), params![id, -(segments as i64), 0])?;
    advance::moved(tx, head, made)
}

fn meet(tx: &Transaction<'_>, arriving: &Arriving) -> Result<()> {
    let place = params![arriving.key, arriving.rule()?, arriving.agreed];
    let arrived = tx.query_one(sql!("meet"), place, |row| row.text("arrived"))?;
    match arriving.meet(&arrived)? {
        Met::Waits { arrived } => {
            tx.execute(sql!("keep_join_point"), params![arriving.key, arrived])?;
        }
        Met::Fires { id, request } => {
            tx.execute(sql!("end_join_point"), [&arriving.key])?;
            let (id, root) = (id.to_string(), arriving.root.to_string());
            tx.execute(sql!("insert_trigger"), params![id, request, arriving.identity, root])?;
            tx.signal()?;
        }
    }
    Ok(())
}

pub(super) async fn graph(store: &SqliteStore, job: JobId, limit: u32) -> Result<Vec<Linked>> {
    let params = (job.to_string(), limit);
    store.read(move |tx| tx.query(sql!("graph"), params, |row| rows::linked(row))).await
}

pub(super) async fn join_points(store: &SqliteStore, limit: u32) -> Result<Vec<JoinPointRow>> {
    store.read(move |tx| tx.query(sql!("join_points"), [limit], |row| rows::join_point(row))).await
}

pub(super) async fn triggers(store: &SqliteStore, limit: u32) -> Result<Vec<Trigger>> {
    store.read(move |tx| tx.query(sql!("triggers"), [limit], |row| rows::trigger(row))).await
}

pub(super) async fn claim_triggers(
    store: &SqliteStore,
    limit: u32,
    lease: Duration,
) -> Result<Vec<Trigger>> {
    // A look that finds nothing does not take the writer from anybody.
    if !store.read(|tx| tx.query_one(sql!("has_triggers"), [], |row| row.flag("due"))).await? {
        return Ok(Vec::new());
    }
    let params = (limit, millis(lease));
    store.write(move |tx| tx.query(sql!("claim_triggers"), params, |row| rows::trigger(row))).await
}

pub(super) async fn triggered(store: &SqliteStore, id: JobId) -> Result<()> {
    store.write(move |tx| tx.execute(sql!("triggered"), [id.to_string()])).await.map(drop)
}

pub(super) async fn fail_trigger(
    store: &SqliteStore,
    id: JobId,
    error: &str,
    wait: Duration,
) -> Result<()> {
    let params = (id.to_string(), error.to_owned(), millis(wait));
    store.write(move |tx| tx.execute(sql!("fail_trigger"), params)).await.map(drop)
}
