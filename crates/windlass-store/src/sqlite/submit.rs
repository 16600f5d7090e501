//! Jobs come in.

use windlass_db::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::fields::Fields;
use crate::values::{self, JobColumns};
use crate::{NewJob, Result, StoreError, Submitted, rules};

pub(super) async fn submit(store: &SqliteStore, job: NewJob) -> Result<Submitted> {
    let columns = JobColumns::of(&job, false)?;
    let work = move |tx: &Transaction<'_>| {
        if insert(tx, &columns)? {
            return Ok(Submitted::New(job.id));
        }
        existing(tx, &job, &columns)
    };
    store.write(work).await
}

/// Inserts a job and the segment it begins with, unless its id or its key is there.
pub(super) fn insert(tx: &Transaction<'_>, job: &JobColumns) -> Result<bool> {
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
        ],
        |_| Ok(()),
    )?;
    if inserted.is_none() {
        return Ok(false);
    }
    tx.execute(sql!("default_throughput"), params![job.job_type, job.workers, job.rate])?;
    let (state, range) = values::plan()?;
    tx.execute(sql!("insert_segment"), params![id, 0, state, range])?;
    tx.signal()?;
    Ok(true)
}

/// The job that stood in the way of an insert.
fn existing(tx: &Transaction<'_>, job: &NewJob, columns: &JobColumns) -> Result<Submitted> {
    if tx.query_opt(sql!("find_job"), [job.id.to_string()], |_| Ok(()))?.is_some() {
        // This very submit, repeated because its answer was lost.
        return Ok(Submitted::New(job.id));
    }
    let params = params![columns.job_type, columns.submitter, columns.idempotency_key];
    let found =
        tx.query_opt(sql!("find_by_key"), params, |row| Ok((row.id("id")?, row.text("request")?)))?;
    let (id, request) = found.ok_or_else(|| StoreError::Unreadable(format!("job {}", job.id)))?;
    rules::check_same_request(&request, &job.request)?;
    Ok(Submitted::Existing(id))
}
