//! Jobs come in.

use windlass_drivers::{Param, Transaction};

use super::{PostgresStore, advance, dependencies, params, sql};
use crate::fields::Fields;
use crate::values::{self, JobColumns};
use crate::{NewJob, Result, StoreError, Submitted, transitions};

pub(super) async fn submit(store: &PostgresStore, job: NewJob) -> Result<Submitted> {
    let columns = JobColumns::of(&job, false)?;
    let tx = store.begin().await?;
    match submit_in(&tx, &job, &columns).await {
        Ok(Submitted::New(id)) => {
            tx.commit().await?;
            Ok(Submitted::New(id))
        }
        other => {
            // Nothing was written, so how this ends is of no interest.
            let _ = tx.rollback().await;
            other
        }
    }
}

async fn submit_in(tx: &Transaction, job: &NewJob, columns: &JobColumns) -> Result<Submitted> {
    // A repeated request is the same job, even if its parents would be refused by now.
    if job.request.after.is_some()
        && let Some(submitted) = existing(tx, job, columns).await?
    {
        return Ok(submitted);
    }
    let admission = dependencies::admit(tx, &job.request).await?;
    if insert(tx, columns, admission.waits()).await? {
        dependencies::link(tx, job.id, &admission).await?;
        return Ok(Submitted::New(job.id));
    }
    // The insert has waited for whoever inserted the same, so it can be seen now.
    let submitted = existing(tx, job, columns).await?;
    submitted.ok_or_else(|| StoreError::Unreadable(format!("job {}", job.id)))
}

/// Inserts a job and the segment it begins with, unless its id or its key is there.
pub(super) async fn insert(tx: &Transaction, job: &JobColumns, waits: i64) -> Result<bool> {
    let inserted = tx
        .query_opt(
            sql!("insert_job"),
            params![
                job.id,
                job.root,
                job.redrive,
                &job.job_type,
                &job.submitter,
                job.idempotency_key.as_deref(),
                &job.request,
                &job.identity,
                &job.definition,
                &job.definition_hash,
                job.failures.as_deref(),
                job.priority,
                &job.connection,
                job.handler.as_deref(),
                job.lease,
                job.timeout,
                waits,
                job.on_failed,
                job.rules.as_deref(),
                job.merge,
                job.summary.as_deref(),
            ],
        )
        .await?;
    if inserted.is_none() {
        return Ok(false);
    }
    let limits = params![&job.job_type, job.concurrency, job.rate];
    tx.execute(sql!("default_throughput"), limits).await?;
    let (state, range) = values::plan()?;
    let (states, ranges) = (Param::texts([&state]), Param::texts([&range]));
    tx.execute(sql!("insert_segments"), &[job.id.into(), 0_i64.into(), states, ranges]).await?;
    advance::signal(tx).await?;
    Ok(true)
}

/// The job that was submitted before by this id or key.
async fn existing(
    tx: &Transaction,
    job: &NewJob,
    columns: &JobColumns,
) -> Result<Option<Submitted>> {
    if tx.query_opt(sql!("find_job"), params![job.id]).await?.is_some() {
        // This very submit, repeated because its answer was lost.
        return Ok(Some(Submitted::New(job.id)));
    }
    let (key, by) = (columns.idempotency_key.as_deref(), &columns.submitter);
    let row = tx.query_opt(sql!("find_by_key"), params![&columns.job_type, by, key]).await?;
    let Some(row) = row else { return Ok(None) };
    transitions::check_same_request(&row.text("request")?, &job.request)?;
    Ok(Some(Submitted::Existing(row.id("id")?)))
}
