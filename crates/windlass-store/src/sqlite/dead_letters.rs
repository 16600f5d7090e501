//! Dead letters: written by chunks, listed and marked by people, given to redrives.

use windlass_core::{DeadLetterStatus, JobId};
use windlass_drivers::rusqlite::params;
use windlass_drivers::rusqlite::types::Value;

use super::transaction::Transaction;
use super::{SqliteStore, given, jobs, sql};
use crate::fields::Fields;
use crate::values::{self, JobColumns, LetterArguments, LetterColumns};
use crate::{
    DeadLetter, DeadLetterFilter, DeadLetterGroup, Kept, Lease, NewDeadLetter, NewJob, RedriveRoot,
    Result, rows, transitions,
};

pub(super) async fn add(
    store: &SqliteStore,
    lease: Lease,
    letters: &[NewDeadLetter],
) -> Result<Kept> {
    let letters = values::letters(letters);
    store.write(move |tx| add_in(tx, lease, &letters)).await
}

fn add_in(tx: &Transaction<'_>, lease: Lease, letters: &[LetterColumns]) -> Result<Kept> {
    let (job, number) = (lease.chunk.job.to_string(), lease.chunk.number);
    let held =
        tx.query_opt(sql!("hold_chunk"), params![job, number, lease.epoch, lease.nonce], |row| {
            Ok((row.flag("redrive")?, row.text("job_type")?, row.text("submitter")?))
        })?;
    let Some((redrive, job_type, submitter)) = held else {
        return Ok(Kept::Lost);
    };
    for LetterColumns { id, key, record, error, fingerprint, context, attempts } in letters {
        if redrive {
            let params = params![job, key, record, error, fingerprint, context, attempts];
            tx.execute(sql!("refail_letter"), params)?;
        } else {
            let id = id.to_string();
            let params = params![
                job,
                job_type,
                number,
                id,
                key,
                record,
                error,
                fingerprint,
                context,
                attempts,
                submitter
            ];
            tx.execute(sql!("upsert_letter"), params)?;
        }
    }
    Ok(Kept::Yes)
}

pub(super) async fn list(
    store: &SqliteStore,
    filter: &DeadLetterFilter,
) -> Result<Vec<DeadLetter>> {
    let mut params = bind(filter)?;
    params.push(values::listed(filter.limit).into());
    let sql = given(sql!("list_letters"), &filter.submitted_by, "?8");
    let work = move |tx: &Transaction<'_>| {
        let params = windlass_drivers::rusqlite::params_from_iter(params);
        tx.query(&sql, params, |row| rows::letter(row))
    };
    store.read(work).await
}

pub(super) async fn groups(
    store: &SqliteStore,
    filter: &DeadLetterFilter,
) -> Result<Vec<DeadLetterGroup>> {
    let mut params = bind(filter)?;
    params.push(values::listed(filter.limit).into());
    let sql = given(sql!("letter_groups"), &filter.submitted_by, "?8");
    let work = move |tx: &Transaction<'_>| {
        let params = windlass_drivers::rusqlite::params_from_iter(params);
        tx.query(&sql, params, |row| rows::letter_group(row))
    };
    store.read(work).await
}

pub(super) async fn redrivable(
    store: &SqliteStore,
    filter: &DeadLetterFilter,
) -> Result<Vec<RedriveRoot>> {
    let params = bind(filter)?;
    let sql = given(sql!("redrivable"), &filter.submitted_by, "?8");
    let work = move |tx: &Transaction<'_>| {
        let params = windlass_drivers::rusqlite::params_from_iter(params);
        tx.query(&sql, params, |row| rows::redrive_root(row))
    };
    store.read(work).await
}

pub(super) async fn redrive(
    store: &SqliteStore,
    original: JobId,
    filter: &DeadLetterFilter,
    job: NewJob,
) -> Result<Option<(JobId, u64)>> {
    let id = job.id;
    let mut params = bind(filter)?;
    params.push(values::redriven(filter.limit).into());
    params.push(original.to_string().into());
    params.push(id.to_string().into());
    let taken = store.write(move |tx| redrive_in(tx, params, job)).await?;
    Ok((taken > 0).then_some((id, taken)))
}

fn redrive_in(tx: &Transaction<'_>, params: Vec<Value>, mut job: NewJob) -> Result<u64> {
    let id = job.id.to_string();
    if tx.query_opt(sql!("find_job"), [&id], |_| Ok(()))?.is_some() {
        // This very redrive, repeated because its answer was lost.
        let named = tx.query_one(sql!("count_redriven"), [&id], |row| row.int("letters"))?;
        return Ok(named.unsigned_abs());
    }
    let params = windlass_drivers::rusqlite::params_from_iter(params);
    let keys = tx.query(sql!("take_letters"), params, |row| rows::key_id(&row.text("key")?))?;
    if keys.is_empty() {
        return Ok(0);
    }
    let taken = keys.len() as u64;
    job.request.ids = Some(keys);
    if !jobs::insert(tx, &JobColumns::of(&job, true)?, 0)? {
        return Err(transitions::key_taken().into());
    }
    Ok(taken)
}

pub(super) async fn mark(
    store: &SqliteStore,
    filter: &DeadLetterFilter,
    to: DeadLetterStatus,
) -> Result<u64> {
    let mut params = bind(filter)?;
    params.push(values::marked(filter.limit).into());
    params.push(to.as_str().to_owned().into());
    let sql = given(sql!("mark_letters"), &filter.submitted_by, "?8");
    let work = move |tx: &Transaction<'_>| {
        tx.execute(&sql, windlass_drivers::rusqlite::params_from_iter(params))
    };
    store.write(work).await
}

/// The arguments in the order all five statements number them.
fn bind(filter: &DeadLetterFilter) -> Result<Vec<Value>> {
    let filter = LetterArguments::of(filter);
    let id = |id: Option<uuid::Uuid>| id.map(|id| id.to_string());
    Ok(vec![
        filter.ids.map(|ids| serde_json::to_string(&ids)).transpose()?.into(),
        id(filter.job).into(),
        filter.job_types.map(|types| serde_json::to_string(&types)).transpose()?.into(),
        filter.error.into(),
        filter.status.map(str::to_owned).into(),
        filter.age.into(),
        id(filter.before).into(),
        filter.submitter.into(),
        filter.fingerprint.into(),
    ])
}
