//! Changes the status of a job, in the transaction that ended one of its chunks or segments.

use windlass_core::JobId;
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{dependencies, sql};
use crate::fields::Fields;
use crate::transitions::{self, FailedUnits, JobState, NextStep, Transition};
use crate::{Result, values};

/// Reads the state of a job. The write transaction is its lock.
pub(super) fn lock_job(tx: &Transaction<'_>, id: JobId) -> Result<Option<JobState>> {
    tx.query_opt(sql!("lock_job"), [id.to_string()], |row| JobState::read(row))
}

/// Applies a transition. When the job ends with it, its followers are released or cancelled.
pub(super) fn apply(
    tx: &Transaction<'_>,
    job: &mut JobState,
    transition: &Transition,
) -> Result<()> {
    let followed = write(tx, job, transition)?;
    if followed && transition.ends() {
        dependencies::release_followers(tx, job.id)?;
    }
    Ok(())
}

/// Writes a transition and signals it. Returns whether other jobs follow this one.
pub(super) fn write(
    tx: &Transaction<'_>,
    job: &mut JobState,
    transition: &Transition,
) -> Result<bool> {
    let Transition { status, error, added_budgets, finished_at } = transition;
    let (id, status, finished_at) = (job.id.to_string(), status.as_str(), finished_at.as_str());
    let params = params![id, status, error, added_budgets, finished_at];
    let followed = tx.query_one(sql!("update_job_status"), params, |row| row.flag("followed"))?;
    job.status = transition.status;
    tx.signal()?;
    Ok(followed)
}

/// Ends a job if nothing of it is open.
pub(super) fn advance(tx: &Transaction<'_>, job: &mut JobState) -> Result<()> {
    let id = job.id.to_string();
    match transitions::next_step(job) {
        NextStep::Wait => return Ok(()),
        NextStep::Finish => {
            let segments = failed_units(tx, sql!(shared "failed_segments"), &id)?;
            let chunks = failed_units(tx, sql!(shared "failed_chunks"), &id)?;
            match transitions::finish(job, &segments, &chunks) {
                Some(transition) => apply(tx, job, &transition)?,
                None => return begin_merge(tx, job),
            }
        }
        NextStep::EndCancelled => {
            apply(tx, job, &transitions::end_cancelled())?;
            if job.redrive {
                tx.execute(sql!("release_dead_letters"), [&id])?;
            }
        }
        NextStep::SumFailed => tx.signal()?,
    }
    tx.execute(sql!("write_sums"), [&id])?;
    Ok(())
}

/// Adds the segment that merges the parts, when all chunks are completed.
fn begin_merge(tx: &Transaction<'_>, job: &mut JobState) -> Result<()> {
    let (state, range) = values::merge()?;
    let id = job.id.to_string();
    tx.execute(sql!("insert_merge"), params![id, state, range])?;
    tx.execute(sql!(shared "begin_merge"), [&id])?;
    job.open_segments += 1;
    job.merge_due = false;
    tx.signal()
}

fn failed_units(tx: &Transaction<'_>, sql: &str, job: &str) -> Result<FailedUnits> {
    let mut units = FailedUnits::default();
    let rows = tx.query(sql, [job], |row| {
        Ok((row.int("total")?, row.int("number")?, row.opt_text("error")?))
    })?;
    for (total, number, error) in rows {
        units.add(total, number, error);
    }
    Ok(units)
}
