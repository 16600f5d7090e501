//! What happens to a job when something of it has ended, in the transaction that ended it.

use windlass_core::JobId;
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{dependencies, sql};
use crate::fields::Fields;
use crate::transitions::{self, FailedUnits, JobState, Rest, Transition};
use crate::{Result, values};

/// What the rules need to know of a job.
pub(super) fn lock(tx: &Transaction<'_>, id: JobId) -> Result<Option<JobState>> {
    tx.query_opt(sql!("lock_job"), [id.to_string()], |row| JobState::read(row))
}

/// Makes a move and tells those who wait; an end moves on what comes after the job.
pub(super) fn apply(tx: &Transaction<'_>, head: &mut JobState, made: &Transition) -> Result<()> {
    let followed = moved(tx, head, made)?;
    if followed && made.ends() { dependencies::follow(tx, head.id) } else { Ok(()) }
}

/// Makes a move and no more; says whether other jobs come after this one.
pub(super) fn moved(tx: &Transaction<'_>, head: &mut JobState, made: &Transition) -> Result<bool> {
    let (id, status) = (head.id.to_string(), made.status.as_str());
    let params = params![id, status, made.error, made.grants, made.finish];
    let followed = tx.query_one(sql!("move_job"), params, |row| row.flag("followed"))?;
    head.status = made.status;
    tx.signal()?;
    Ok(followed)
}

/// Ends a job of which nothing is open any more.
pub(super) fn advance(tx: &Transaction<'_>, head: &mut JobState) -> Result<()> {
    let id = head.id.to_string();
    match transitions::rest(head) {
        Rest::No => return Ok(()),
        Rest::Judge => {
            let segments = failed(tx, sql!("failed_segments"), &id)?;
            let chunks = failed(tx, sql!("failed_chunks"), &id)?;
            match transitions::judge(head, &segments, &chunks) {
                Some(made) => apply(tx, head, &made)?,
                None => return merge(tx, head),
            }
        }
        Rest::Close => {
            apply(tx, head, &transitions::close())?;
            if head.redrive {
                tx.execute(sql!("free_letters"), [&id])?;
            }
        }
        Rest::Sum => tx.signal()?,
    }
    tx.execute(sql!("write_sums"), [&id])?;
    Ok(())
}

/// All chunks are completed: what is made of their parts is one more segment.
fn merge(tx: &Transaction<'_>, head: &mut JobState) -> Result<()> {
    let (state, range) = values::merge()?;
    let id = head.id.to_string();
    tx.execute(sql!("insert_merge"), params![id, state, range])?;
    tx.execute(sql!("begin_merge"), [&id])?;
    head.open_segments += 1;
    head.merge_due = false;
    tx.signal()
}

fn failed(tx: &Transaction<'_>, sql: &str, job: &str) -> Result<FailedUnits> {
    let mut units = FailedUnits::default();
    let rows = tx.query(sql, [job], |row| {
        Ok((row.int("total")?, row.int("number")?, row.opt_text("error")?))
    })?;
    for (total, number, error) in rows {
        units.add(total, number, error);
    }
    Ok(units)
}
