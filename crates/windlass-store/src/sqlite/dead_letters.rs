//! Stores, lists, marks and redrives dead letters.

use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::{DeadLetterStatus, JobId};
use windlass_drivers::rusqlite::types::Value;
use windlass_drivers::rusqlite::{params, params_from_iter};

use super::transaction::Transaction;
use super::{SqliteStore, jobs, sql, without_null_check};
use crate::fields::Fields;
use crate::values::{self, JobColumns, LetterArguments, LetterColumns};
use crate::{
    DeadLetter, DeadLetterFilter, DeadLetterGroup, DeadLetterStore, Lease, NewDeadLetter, NewJob,
    RedriveRoot, Result, StoreError, rows, transitions,
};

#[async_trait]
impl DeadLetterStore for SqliteStore {
    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>> {
        let params = bind(filter, [values::list_limit(filter.limit).into()])?;
        let sql = indexed(sql!(shared "list_dead_letters"), filter);
        self.query(sql, params_from_iter(params), |row| rows::dead_letter(row)).await
    }

    async fn matching_dead_letters(&self, text: &str, limit: u32) -> Result<Vec<Uuid>> {
        let params = (text.to_owned(), limit);
        self.query(sql!("matching_dead_letters"), params, |row| row.id("id")).await
    }

    async fn dead_letter_groups(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetterGroup>> {
        let params = bind(filter, [values::list_limit(filter.limit).into()])?;
        let sql = indexed(sql!(shared "dead_letter_groups"), filter);
        self.query(sql, params_from_iter(params), |row| rows::dead_letter_group(row)).await
    }

    async fn count_dead_letters(&self, max: i64) -> Result<Vec<(String, i64)>> {
        self.query(sql!(shared "count_dead_letters"), [max], |row| rows::letter_count(row)).await
    }

    async fn add_dead_letters(&self, lease: Lease, letters: &[NewDeadLetter]) -> Result<()> {
        let letters = values::letters(letters);
        self.write(move |tx| add(tx, lease, &letters)).await
    }

    async fn redrivable(&self, filter: &DeadLetterFilter) -> Result<Vec<RedriveRoot>> {
        let params = bind(filter, [])?;
        let sql = indexed(sql!(shared "redrivable"), filter);
        self.query(sql, params_from_iter(params), |row| rows::redrive_root(row)).await
    }

    async fn redrive(
        &self,
        original: JobId,
        filter: &DeadLetterFilter,
        job: NewJob,
    ) -> Result<Option<(JobId, u64)>> {
        let id = job.id;
        let limit = values::redrive_limit(filter.limit);
        let more = [limit.into(), original.to_string().into(), id.to_string().into()];
        let params = bind(filter, more)?;
        let letters = self.write(move |tx| redrive(tx, params, job)).await?;
        Ok((letters > 0).then_some((id, letters)))
    }

    async fn mark_dead_letters(
        &self,
        filter: &DeadLetterFilter,
        to: DeadLetterStatus,
    ) -> Result<u64> {
        let more = [values::mark_limit(filter.limit).into(), to.as_str().to_owned().into()];
        let params = bind(filter, more)?;
        let sql = indexed(sql!("mark_dead_letters"), filter);
        self.write(move |tx| tx.execute(&sql, params_from_iter(params))).await
    }
}

fn add(tx: &Transaction<'_>, lease: Lease, letters: &[LetterColumns]) -> Result<()> {
    let (job, number) = (lease.chunk.job.to_string(), lease.chunk.number);
    let params = params![job, number, lease.epoch, lease.nonce];
    let found = tx.query_opt(sql!("lock_leased_chunk"), params, |row| {
        Ok((row.flag("redrive")?, row.text("job_type")?, row.text("submitter")?))
    })?;
    let (redrive, job_type, submitter) = found.ok_or(StoreError::LeaseLost)?;
    for LetterColumns { id, key, record, error, fingerprint, context, attempts } in letters {
        if redrive {
            let params = params![job, key, record, error, fingerprint, context, attempts];
            tx.execute(sql!("update_redriven_letter"), params)?;
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
            tx.execute(sql!("upsert_dead_letter"), params)?;
        }
    }
    Ok(())
}

fn redrive(tx: &Transaction<'_>, params: Vec<Value>, mut job: NewJob) -> Result<u64> {
    let id = job.id.to_string();
    if tx.query_opt(sql!(shared "find_job"), [&id], |_| Ok(()))?.is_some() {
        // The same redrive, repeated because its answer was lost.
        let letters =
            tx.query_one(sql!(shared "count_redriven"), [&id], |row| row.int("letters"))?;
        return Ok(letters.unsigned_abs());
    }
    let params = params_from_iter(params);
    let sql = with_conditions(sql!("assign_dead_letters"));
    let keys = tx.query(&sql, params, |row| rows::key_id(&row.text("key")?))?;
    if keys.is_empty() {
        return Ok(0);
    }
    let letters = keys.len() as u64;
    job.request.ids = Some(keys);
    if !jobs::insert(tx, &JobColumns::of(&job, true)?, 0)? {
        return Err(transitions::key_taken().into());
    }
    Ok(letters)
}

/// The statement with its conditions, in a form that can use the index on the submitter.
fn indexed(sql: &str, filter: &DeadLetterFilter) -> String {
    without_null_check(&with_conditions(sql), &filter.submitted_by, "?8")
}

/// Inserts the conditions that several statements share.
fn with_conditions(sql: &str) -> String {
    sql.replace("{filter}", sql!("dead_letter_filter"))
        .replace("{redrivable}", sql!(shared "redrivable_filter"))
}

/// The parameters of a filter, in the order that all five statements use, and further ones.
fn bind<const N: usize>(filter: &DeadLetterFilter, more: [Value; N]) -> Result<Vec<Value>> {
    let filter = LetterArguments::of(filter);
    let id = |id: Option<uuid::Uuid>| id.map(|id| id.to_string());
    let mut params: Vec<Value> = vec![
        filter.ids.map(|ids| serde_json::to_string(&ids)).transpose()?.into(),
        id(filter.job).into(),
        filter.job_types.map(|types| serde_json::to_string(&types)).transpose()?.into(),
        filter.error.into(),
        filter.status.map(str::to_owned).into(),
        filter.age.into(),
        id(filter.before).into(),
        filter.submitter.into(),
        filter.fingerprint.into(),
    ];
    params.extend(more);
    Ok(params)
}
