//! Jobs come in.

use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, dependencies, sql};
use crate::fields::Fields;
use crate::values::{self, JobColumns};
use crate::{NewJob, Result, StoreError, Submitted, transitions};

pub(super) async fn submit(store: &SqliteStore, job: NewJob) -> Result<Submitted> {
    let columns = JobColumns::of(&job, false)?;
    store.write(move |tx| submit_in(tx, &job, &columns)).await
}

fn submit_in(tx: &Transaction<'_>, job: &NewJob, columns: &JobColumns) -> Result<Submitted> {
    // A repeated request is the same job, even if its parents would be refused by now.
    if let Some(submitted) = existing(tx, job, columns)? {
        return Ok(submitted);
    }
    let admission = dependencies::admit(tx, &job.request)?;
    if !insert(tx, columns, admission.waits())? {
        return Err(StoreError::Unreadable(format!("job {}", job.id)));
    }
    dependencies::link(tx, job.id, &admission)?;
    Ok(Submitted::New(job.id))
}

/// Inserts a job and the segment it begins with, unless its id or its key is there.
pub(super) fn insert(tx: &Transaction<'_>, job: &JobColumns, waits: i64) -> Result<bool> {
    let id = job.id.to_string();
    let inserted = tx.query_opt(
        sql!("insert_job"),
        params![
            id,
            job.root.to_string(),
            job.redrive,
            job.job_type,
            job.submitter,
            job.idempotency_key,
            job.request,
            job.identity,
            job.definition,
            job.definition_hash,
            job.failures,
            job.priority,
            job.connection,
            job.handler,
            job.lease,
            job.timeout,
            waits,
            job.on_failed,
            job.rules,
            job.merge,
            job.summary,
        ],
        |_| Ok(()),
    )?;
    if inserted.is_none() {
        return Ok(false);
    }
    tx.execute(sql!("default_throughput"), params![job.job_type, job.concurrency, job.rate])?;
    let (state, range) = values::plan()?;
    tx.execute(sql!("insert_segment"), params![id, 0, state, range])?;
    tx.signal()?;
    Ok(true)
}

/// The job that was submitted before by this id or key.
fn existing(tx: &Transaction<'_>, job: &NewJob, columns: &JobColumns) -> Result<Option<Submitted>> {
    if tx.query_opt(sql!("find_job"), [job.id.to_string()], |_| Ok(()))?.is_some() {
        // This very submit, repeated because its answer was lost.
        return Ok(Some(Submitted::New(job.id)));
    }
    let params = params![columns.job_type, columns.submitter, columns.idempotency_key];
    let found =
        tx.query_opt(sql!("find_by_key"), params, |row| Ok((row.id("id")?, row.text("request")?)))?;
    let Some((id, request)) = found else { return Ok(None) };
    transitions::check_same_request(&request, &job.request)?;
    Ok(Some(Submitted::Existing(id)))
}
