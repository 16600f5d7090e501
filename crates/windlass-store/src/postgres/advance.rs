//! What happens to a job when something of it has ended, in the transaction that ended it.

use windlass_core::JobId;
use windlass_drivers::{DURABLE, Transaction};

use super::{dependencies, params, sql};
use crate::fields::Fields;
use crate::transitions::{self, FailedUnits, JobState, Rest, Transition};
use crate::{Result, values};

/// Locks a job, before anything of it is locked.
pub(super) async fn lock(tx: &Transaction, id: JobId) -> Result<Option<JobState>> {
    let row = tx.query_opt(sql!("lock_job"), params![id]).await?;
    row.as_ref().map(JobState::read).transpose()
}

/// Makes a move and tells those who wait; an end moves on what comes after the job.
pub(super) async fn apply(tx: &Transaction, head: &mut JobState, made: &Transition) -> Result<()> {
    let followed = moved(tx, head, made).await?;
    if followed && made.ends() { dependencies::follow(tx, head.id).await } else { Ok(()) }
}

/// Makes a move and no more; says whether other jobs come after this one.
///
/// Whatever the transaction was begun with, a job's status is durable before anybody sees it:
/// people act on it, and nothing else would tell it again. Ends of chunks that were committed
/// without waiting for the disk are durable with it.
pub(super) async fn moved(
    tx: &Transaction,
    head: &mut JobState,
    made: &Transition,
) -> Result<bool> {
    let (status, error) = (made.status.as_str(), made.error.as_deref());
    let params = params![head.id, status, error, made.grants, made.finish];
    let (durable, moved) = tokio::join!(
        biased;
        tx.batch(DURABLE),
        tx.query_one(sql!("move_job"), params)
    );
    durable?;
    let followed = moved?.flag("followed")?;
    head.status = made.status;
    signal(tx).await?;
    Ok(followed)
}

/// Ends a job of which nothing is open any more. The job is locked.
pub(super) async fn advance(tx: &Transaction, head: &mut JobState) -> Result<()> {
    match transitions::rest(head) {
        Rest::No => return Ok(()),
        Rest::Judge => {
            let segments = failed(tx, sql!("failed_segments"), head.id).await?;
            let chunks = failed(tx, sql!("failed_chunks"), head.id).await?;
            match transitions::judge(head, &segments, &chunks) {
                Some(made) => apply(tx, head, &made).await?,
                None => return merge(tx, head).await,
            }
        }
        Rest::Close => {
            apply(tx, head, &transitions::close()).await?;
            if head.redrive {
                tx.execute(sql!("free_letters"), params![head.id]).await?;
            }
        }
        Rest::Sum => signal(tx).await?,
    }
    tx.execute(sql!("write_sums"), params![head.id]).await?;
    Ok(())
}

/// All chunks are completed: what is made of their parts is one more segment.
async fn merge(tx: &Transaction, head: &mut JobState) -> Result<()> {
    let (state, range) = values::merge()?;
    tx.execute(sql!("insert_merge"), params![head.id, state, range]).await?;
    tx.execute(sql!("begin_merge"), params![head.id]).await?;
    head.open_segments += 1;
    head.merge_due = false;
    signal(tx).await
}

/// Wakes whoever waits, when the transaction commits.
pub(super) async fn signal(tx: &Transaction) -> Result<()> {
    tx.query(sql!("signal"), &[]).await?;
    Ok(())
}

async fn failed(tx: &Transaction, sql: &str, job: JobId) -> Result<FailedUnits> {
    let mut units = FailedUnits::default();
    for row in tx.query(sql, params![job]).await? {
        units.add(row.int("total")?, row.int("number")?, row.opt_text("error")?);
    }
    Ok(units)
}
