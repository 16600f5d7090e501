//! Dead letters: written by chunks, listed and marked by people, given to redrives.

use windlass_core::{DeadLetterStatus, JobId};
use windlass_drivers::{Param, Transaction};

use super::{PostgresStore, jobs, params, sql, texts};
use crate::fields::Fields;
use crate::values::{self, JobColumns, LetterArguments, LetterColumns};
use crate::{
    DeadLetter, DeadLetterFilter, DeadLetterGroup, Kept, Lease, NewDeadLetter, NewJob, RedriveRoot,
    Result, rows, transitions,
};

pub(super) async fn add(
    store: &PostgresStore,
    lease: Lease,
    letters: &[NewDeadLetter],
) -> Result<Kept> {
    let tx = store.begin().await?;
    let kept = add_in(&tx, lease, &values::letters(letters)).await?;
    tx.commit().await?;
    Ok(kept)
}

async fn add_in(tx: &Transaction, lease: Lease, letters: &[LetterColumns]) -> Result<Kept> {
    let chunk = lease.chunk;
    let held = params![chunk.job, chunk.number, lease.epoch, lease.nonce];
    let Some(row) = tx.query_opt(sql!("hold_chunk"), held).await? else {
        return Ok(Kept::Lost);
    };
    if letters.is_empty() {
        return Ok(Kept::Yes);
    }
    let text = |of: fn(&LetterColumns) -> &String| Param::texts(letters.iter().map(of));
    let attempts: Vec<_> = letters.iter().map(|letter| letter.attempts).collect();
    let content = [
        text(|letter| &letter.key),
        text(|letter| &letter.record),
        text(|letter| &letter.error),
        text(|letter| &letter.fingerprint),
        text(|letter| &letter.context),
        attempts.into(),
    ];
    if row.flag("redrive")? {
        let mut params = vec![chunk.job.into()];
        params.extend(content);
        tx.execute(sql!("refail_letters"), &params).await?;
    } else {
        let ids: Vec<_> = letters.iter().map(|letter| letter.id).collect();
        let (job_type, submitter) = (row.text("job_type")?, row.text("submitter")?);
        let mut params = params![chunk.job, job_type, chunk.number, ids].to_vec();
        params.extend(content);
        params.push(submitter.into());
        tx.execute(sql!("upsert_letters"), &params).await?;
    }
    Ok(Kept::Yes)
}

pub(super) async fn list(
    store: &PostgresStore,
    filter: &DeadLetterFilter,
) -> Result<Vec<DeadLetter>> {
    let arguments = LetterArguments::of(filter);
    let mut params = bind(&arguments);
    params.push(values::listed(filter.limit).into());
    store.read(sql!("list_letters"), &params, rows::letter).await
}

pub(super) async fn groups(
    store: &PostgresStore,
    filter: &DeadLetterFilter,
) -> Result<Vec<DeadLetterGroup>> {
    let arguments = LetterArguments::of(filter);
    let mut params = bind(&arguments);
    params.push(values::listed(filter.limit).into());
    store.read(sql!("letter_groups"), &params, rows::letter_group).await
}

pub(super) async fn redrivable(
    store: &PostgresStore,
    filter: &DeadLetterFilter,
) -> Result<Vec<RedriveRoot>> {
    let arguments = LetterArguments::of(filter);
    store.read(sql!("redrivable"), &bind(&arguments), rows::redrive_root).await
}

pub(super) async fn redrive(
    store: &PostgresStore,
    original: JobId,
    filter: &DeadLetterFilter,
    job: NewJob,
) -> Result<Option<(JobId, u64)>> {
    let id = job.id;
    let tx = store.begin().await?;
    let taken = redrive_in(&tx, original, filter, job).await?;
    if taken == 0 {
        tx.rollback().await?;
        return Ok(None);
    }
    tx.commit().await?;
    Ok(Some((id, taken)))
}

async fn redrive_in(
    tx: &Transaction,
    original: JobId,
    filter: &DeadLetterFilter,
    mut job: NewJob,
) -> Result<u64> {
    if tx.query_opt(sql!("find_job"), params![job.id]).await?.is_some() {
        // This very redrive, repeated because its answer was lost.
        let row = tx.query_one(sql!("count_redriven"), params![job.id]).await?;
        return Ok(row.int("letters")?.unsigned_abs());
    }
    let arguments = LetterArguments::of(filter);
    let mut params = bind(&arguments);
    params.extend([values::redriven(filter.limit).into(), original.into(), job.id.into()]);
    let taken = tx.query(sql!("take_letters"), &params).await?;
    if taken.is_empty() {
        return Ok(0);
    }
    let keys = taken.iter().map(|row| rows::key_id(&row.text("key")?));
    job.request.ids = Some(keys.collect::<Result<_>>()?);
    if !jobs::insert(tx, &JobColumns::of(&job, true)?, 0).await? {
        return Err(transitions::key_taken().into());
    }
    Ok(taken.len() as u64)
}

pub(super) async fn mark(
    store: &PostgresStore,
    filter: &DeadLetterFilter,
    to: DeadLetterStatus,
) -> Result<u64> {
    let tx = store.begin().await?;
    let arguments = LetterArguments::of(filter);
    let mut params = bind(&arguments);
    params.extend([values::marked(filter.limit).into(), to.as_str().into()]);
    let marked = tx.execute(sql!("mark_letters"), &params).await?;
    tx.commit().await?;
    Ok(marked)
}

/// The arguments in the order all five statements number them.
fn bind(filter: &LetterArguments) -> Vec<Param<'_>> {
    let ids = match &filter.ids {
        Some(ids) => ids.as_slice().into(),
        None => Param::Text(None),
    };
    let (job_types, error) = (texts(filter.job_types.as_deref()), filter.error.as_deref());
    let (submitter, fingerprint) = (filter.submitter.as_deref(), filter.fingerprint.as_deref());
    let rest: &[Param<'_>] = params![
        filter.job,
        job_types,
        error,
        filter.status,
        filter.age,
        filter.before,
        submitter,
        fingerprint
    ];
    [&[ids], rest].concat()
}
