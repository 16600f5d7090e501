//! Stores, lists, marks and redrives dead letters.

use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::{DeadLetterStatus, JobId};
use windlass_drivers::Param;

use super::{PostgresStore, Transaction, jobs, params, sql, texts};
use crate::fields::Fields;
use crate::values::{self, JobColumns, LetterArguments, LetterColumns};
use crate::{
    DeadLetter, DeadLetterFilter, DeadLetterGroup, DeadLetterStore, Lease, NewDeadLetter, NewJob,
    RedriveRoot, Result, StoreError, rows, transitions,
};

#[async_trait]
impl DeadLetterStore for PostgresStore {
    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>> {
        let arguments = LetterArguments::of(filter);
        let params = bind(&arguments, [values::list_limit(filter.limit).into()]);
        let sql = with_conditions(sql!(shared "list_dead_letters"));
        self.read(&sql, &params, rows::dead_letter).await
    }

    async fn matching_dead_letters(&self, text: &str, limit: u32) -> Result<Vec<Uuid>> {
        self.read(sql!("matching_dead_letters"), params![text, limit], |row| row.id("id")).await
    }

    async fn dead_letter_groups(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetterGroup>> {
        let arguments = LetterArguments::of(filter);
        let params = bind(&arguments, [values::list_limit(filter.limit).into()]);
        let sql = with_conditions(sql!(shared "dead_letter_groups"));
        self.read(&sql, &params, rows::dead_letter_group).await
    }

    async fn count_dead_letters(&self, max: i64) -> Result<Vec<(String, i64)>> {
        self.read(sql!(shared "count_dead_letters"), params![max], rows::letter_count).await
    }

    async fn add_dead_letters(&self, lease: Lease, letters: &[NewDeadLetter]) -> Result<()> {
        let letters = values::letters(letters);
        let run = || async {
            let tx = self.begin().await?;
            let done = add(&tx, lease, &letters).await;
            tx.finish(done).await
        };
        self.repeat(run).await
    }

    async fn redrivable(&self, filter: &DeadLetterFilter) -> Result<Vec<RedriveRoot>> {
        let arguments = LetterArguments::of(filter);
        let sql = with_conditions(sql!(shared "redrivable"));
        self.read(&sql, &bind(&arguments, []), rows::redrive_root).await
    }

    async fn redrive(
        &self,
        original: JobId,
        filter: &DeadLetterFilter,
        job: NewJob,
    ) -> Result<Option<(JobId, u64)>> {
        let assign = with_conditions(&self.spell(sql!("assign_dead_letters")));
        let run = || async {
            let tx = self.begin().await?;
            let letters = redrive(&tx, &assign, original, filter, &job).await;
            tx.finish(letters).await
        };
        let letters = self.repeat(run).await?;
        Ok((letters > 0).then_some((job.id, letters)))
    }

    async fn mark_dead_letters(
        &self,
        filter: &DeadLetterFilter,
        to: DeadLetterStatus,
    ) -> Result<u64> {
        let arguments = LetterArguments::of(filter);
        let limit = values::mark_limit(filter.limit);
        let params = bind(&arguments, [limit.into(), to.as_str().into()]);
        self.execute(&with_conditions(sql!("mark_dead_letters")), &params).await
    }
}

async fn add(tx: &Transaction, lease: Lease, letters: &[LetterColumns]) -> Result<()> {
    let chunk = lease.chunk;
    let params = params![chunk.job, chunk.number, lease.epoch, lease.nonce];
    let row = tx.query_opt(sql!("lock_leased_chunk"), params).await?;
    let row = row.ok_or(StoreError::LeaseLost)?;
    if letters.is_empty() {
        return Ok(());
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
        tx.execute(sql!("update_redriven_letters"), &params).await?;
    } else {
        let ids: Vec<_> = letters.iter().map(|letter| letter.id).collect();
        let (job_type, submitter) = (row.text("job_type")?, row.text("submitter")?);
        let mut params = params![chunk.job, job_type, chunk.number, ids].to_vec();
        params.extend(content);
        params.push(submitter.into());
        tx.execute(sql!("upsert_dead_letters"), &params).await?;
    }
    Ok(())
}

/// Assigns letters to a redrive with the statement `assign`, and submits it. Changes nothing if there are none.
async fn redrive(
    tx: &Transaction,
    assign: &str,
    original: JobId,
    filter: &DeadLetterFilter,
    job: &NewJob,
) -> Result<u64> {
    if tx.query_opt(sql!(shared "find_job"), params![job.id]).await?.is_some() {
        // The same redrive, repeated because its answer was lost.
        let row = tx.query_one(sql!(shared "count_redriven"), params![job.id]).await?;
        return Ok(row.int("letters")?.unsigned_abs());
    }
    let arguments = LetterArguments::of(filter);
    let limit = values::redrive_limit(filter.limit);
    let params = bind(&arguments, [limit.into(), original.into(), job.id.into()]);
    let leased = tx.query(assign, &params).await?;
    if leased.is_empty() {
        return Ok(0);
    }
    let keys = leased.iter().map(|row| rows::key_id(&row.text("key")?));
    let mut job = job.clone();
    job.request.ids = Some(keys.collect::<Result<_>>()?);
    if !jobs::insert(tx, &JobColumns::of(&job, true)?, 0).await? {
        return Err(transitions::key_taken().into());
    }
    Ok(leased.len() as u64)
}

/// Inserts the conditions that several statements share.
fn with_conditions(sql: &str) -> String {
    sql.replace("{filter}", sql!("dead_letter_filter"))
        .replace("{redrivable}", sql!(shared "redrivable_filter"))
}

/// The parameters of a filter, in the order that all five statements use, and further ones.
fn bind<'a, const N: usize>(filter: &'a LetterArguments, more: [Param<'a>; N]) -> Vec<Param<'a>> {
    let ids = match &filter.ids {
        Some(ids) => ids.as_slice().into(),
        None => Param::Text(None),
    };
    let mut params = vec![ids];
    params.extend_from_slice(params![
        filter.job,
        texts(filter.job_types.as_deref()),
        filter.error.as_deref(),
        filter.status,
        filter.age,
        filter.before,
        filter.submitter.as_deref(),
        filter.fingerprint.as_deref(),
    ]);
    params.extend(more);
    params
}
