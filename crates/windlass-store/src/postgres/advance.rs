//! Changes the status of a job, in the transaction that ended one of its chunks or segments.

use windlass_core::JobId;
use windlass_drivers::DURABLE;

use super::{Transaction, dependencies, params, sql};
use crate::fields::Fields;
use crate::transitions::{self, FailedUnits, JobState, NextStep, Transition};
use crate::{Result, Topics, values};

/// Locks a job. Its segments and chunks are locked after it.
pub(super) async fn lock_job(tx: &Transaction, id: JobId) -> Result<Option<JobState>> {
    let row = tx.query_opt(sql!("lock_job"), params![id]).await?;
    row.as_ref().map(JobState::read).transpose()
}

/// Applies a transition. When the job ends with it, its followers are released or cancelled.
pub(super) async fn apply(
    tx: &Transaction,
    job: &mut JobState,
    transition: &Transition,
) -> Result<()> {
    let followed = write(tx, job, transition).await?;
    if followed && transition.ends() {
        dependencies::release_followers(tx, job.id).await?;
    }
    Ok(())
}

/// Writes a transition and signals it. Returns whether other jobs follow this one.
///
/// A job's status is durable before it is visible, even in a transaction that was begun without
/// waiting for the disk: people act on it, and it is recorded nowhere else. Ends of chunks that
/// were committed without waiting become durable with it.
pub(super) async fn write(
    tx: &Transaction,
    job: &mut JobState,
    transition: &Transition,
) -> Result<bool> {
    let (status, error) = (transition.status.as_str(), transition.error.as_deref());
    let finished_at = transition.finished_at.as_str();
    let params = params![job.id, status, error, transition.added_budgets, finished_at];
    let (durable, updated) = tokio::join!(
        biased;
        tx.batch(DURABLE),
        tx.query_one(sql!("update_job_status"), params)
    );
    durable?;
    let followed = updated?.flag("followed")?;
    job.status = transition.status;
    // The end of a job gives no work to planners and slots, except of its followers, whose release is signalled.
    tx.signal_topics(if transition.ends() { Topics::REST } else { Topics::ALL });
    Ok(followed)
}

/// Ends a job if nothing of it is open. The job is locked.
pub(super) async fn advance(tx: &Transaction, job: &mut JobState) -> Result<()> {
    match transitions::next_step(job) {
        NextStep::Wait => return Ok(()),
        NextStep::Finish => {
            let segments = failed_units(tx, sql!(shared "failed_segments"), job.id).await?;
            let chunks = failed_units(tx, sql!(shared "failed_chunks"), job.id).await?;
            match transitions::finish(job, &segments, &chunks) {
                Some(transition) => apply(tx, job, &transition).await?,
                None => return begin_merge(tx, job).await,
            }
        }
        NextStep::EndCancelled => {
            apply(tx, job, &transitions::end_cancelled()).await?;
            if job.redrive {
                tx.execute(sql!("release_dead_letters"), params![job.id]).await?;
            }
        }
        NextStep::SumFailed => tx.signal(),
    }
    tx.execute(sql!("write_sums"), params![job.id]).await?;
    Ok(())
}

/// Adds the segment that merges the parts, when all chunks are completed.
async fn begin_merge(tx: &Transaction, job: &mut JobState) -> Result<()> {
    let (state, range) = values::merge()?;
    tx.execute(sql!("insert_merge"), params![job.id, state, range]).await?;
    tx.execute(sql!(shared "begin_merge"), params![job.id]).await?;
    job.open_segments += 1;
    job.merge_due = false;
    tx.signal();
    Ok(())
}

async fn failed_units(tx: &Transaction, sql: &str, job: JobId) -> Result<FailedUnits> {
    let mut units = FailedUnits::default();
    for row in tx.query(sql, params![job]).await? {
        units.add(row.int("total")?, row.int("number")?, row.opt_text("error")?);
    }
    Ok(units)
}
