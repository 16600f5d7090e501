//! Dry runs: shows what a job would do to a few records and changes nothing.

use crate::Result;
use crate::engine::Engine;
use crate::job_context::JobContext;
use crate::step::{StepBatch, StepItem};
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::Duration;
use windlass_connectors::{ConnectorError, ReadLimits, WriteItem};
use windlass_core::{
    Change, Identity, ItemError, JobId, Key, KeyRange, KeySet, Keys, Outcome, Request, StepKind,
    Value,
};
use windlass_drivers::ErrorClass;
use windlass_store::JobSnapshot;

/// The result of a dry run.
///
/// ```no_run
/// use windlass_core::Request;
/// use windlass_engine::Engine;
///
/// # async fn example(engine: &Engine) -> windlass_engine::Result<()> {
/// let result = engine.dry_run(Request::new("REFRESH"), Engine::local_identity()).await?;
/// println!("{} records", result.records);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DryRun {
    /// How many records the job would process.
    pub records: i64,
    /// The first few of them.
    pub sample: Vec<Sample>,
}

/// One record before and after the step.
///
/// ```
/// use windlass_engine::DryRun;
///
/// fn changed(result: &DryRun) -> usize {
///     result.sample.iter().filter(|record| record.before != record.after).count()
/// }
/// ```
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct Sample {
    /// Its key.
    pub key: Json,
    /// The record as it is.
    pub before: Json,
    /// The record after the step; null when it would be deleted.
    pub after: Json,
    /// Rows that would be inserted into other tables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inserts: Vec<windlass_core::Insert>,
    /// Rows that would be emitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub emits: Vec<Json>,
    /// `update`, `skip`, `read`, or `error: ` and the error of the dead letter it would become.
    pub outcome: String,
}

/// Records in the sample.
const SAMPLE_SIZE: u32 = 5;

impl Engine {
    /// Runs a request on a few records and rolls everything back.
    ///
    /// # Errors
    /// The request is refused as [`Engine::submit`] would, or its database fails.
    pub async fn dry_run(&self, request: Request, identity: Identity) -> Result<DryRun> {
        let checked = self.check_request(&request, &identity).await?;
        let (id, definition) = (JobId::now_v7(), checked.definition);
        let request = request.resolve(&definition, id);
        let snapshot = JobSnapshot { id, definition, request, identity, root: id };
        let job = self.resolve(snapshot, true).await?;
        let reach = requested_keys(&job);
        let samples = self.sample_reader(&job)?;
        let records = samples.count(&job.scope, &reach).await?;
        let limits = ReadLimits::new(SAMPLE_SIZE, usize::MAX);
        let batch = samples.read(&job.scope, &reach, limits).await?;
        let sample = match &job.step {
            None if job.definition().step.kind.makes_parts() => {
                sample_parts(&job, batch.items).await?
            }
            None => sample_statement(&job, batch.items).await?,
            Some(_) => sample_step(&job, batch.items).await?,
        };
        Ok(DryRun { records, sample })
    }
}

/// The keys that the request asks for.
fn requested_keys(job: &JobContext) -> KeySet {
    let keys = match &job.snapshot.request.ids {
        Some(ids) => Keys::List(ids.iter().cloned().map(Key::from_id).collect()),
        None => Keys::Range(KeyRange::ALL),
    };
    KeySet::new(None, keys)
}

/// Samples for `map` and `export`: the records as they are read, and the rows that `map` computes
/// from all of them together.
async fn sample_parts(
    job: &JobContext,
    items: Vec<windlass_connectors::Item>,
) -> Result<Vec<Sample>> {
    let keys = items.iter().map(|item| item.key.clone()).collect();
    let mut mapped = Vec::new();
    if !job.part_columns.is_empty() && !items.is_empty() {
        let found = job.fan_in.map(&job.scope, &job.part_columns, &KeySet::keys(keys)).await?;
        let row = |values: Vec<Value>| {
            let names = job.part_columns.iter().map(|column| column.name.clone());
            names.zip(values.iter().map(Value::to_json)).collect::<Json>()
        };
        mapped = found.rows.into_iter().map(row).collect();
    }
    let sample = |item: windlass_connectors::Item| {
        let before = item.record.to_json();
        Sample {
            key: item.key.to_id(),
            after: before.clone(),
            before,
            inserts: Vec::new(),
            // `map` aggregates all records of the sample, so its rows are shown with the first.
            emits: std::mem::take(&mut mapped),
            outcome: "read".to_owned(),
        }
    };
    Ok(items.into_iter().map(sample).collect())
}

/// Samples for `sql` and `refresh`. The statement runs on all records at once. If a record makes it
/// fail, it runs on each record alone, which shows the error of the dead letter.
async fn sample_statement(
    job: &JobContext,
    items: Vec<windlass_connectors::Item>,
) -> Result<Vec<Sample>> {
    let is_data_error = |error: &ConnectorError| matches!(error.class(), Some(ErrorClass::Data));
    match preview(job, items.iter().map(|item| item.key.clone()).collect()).await {
        Err(error) if is_data_error(&error) => {}
        shown => return Ok(shown?),
    }
    let mut samples = Vec::new();
    for item in items {
        match preview(job, vec![item.key.clone()]).await {
            Err(error) if is_data_error(&error) => {
                let error = ItemError::permanent(error.to_string());
                samples.push(sample(item, Outcome::Error(error)));
            }
            shown => samples.extend(shown?),
        }
    }
    Ok(samples)
}

async fn preview(job: &JobContext, keys: Vec<Key>) -> windlass_connectors::Result<Vec<Sample>> {
    let previews = job.target.preview(&job.scope, &KeySet::keys(keys)).await?;
    Ok(previews
        .into_iter()
        .map(|preview| {
            let after = preview.after.as_ref().map_or(Json::Null, |record| record.to_json());
            // A refresh without a version writes the same record again.
            let changed = preview.after.as_ref() != Some(&preview.before)
                || matches!(job.definition().step.kind, StepKind::Refresh);
            Sample {
                key: preview.key.to_id(),
                before: preview.before.to_json(),
                after,
                inserts: Vec::new(),
                emits: Vec::new(),
                outcome: if changed { "update" } else { "skip" }.to_owned(),
            }
        })
        .collect())
}

/// Samples for `command`, `http` and `handler`.
async fn sample_step(
    job: &JobContext,
    items: Vec<windlass_connectors::Item>,
) -> Result<Vec<Sample>> {
    let Some(step) = &job.step else { return Ok(Vec::new()) };
    let item = |item: &windlass_connectors::Item| StepItem {
        key: item.key.clone(),
        record: item.record.clone(),
        attempt: 1,
    };
    let batch = StepBatch::new(&job.facts, None, items.iter().map(item).collect());
    let outcomes = step.process(batch).await;
    step.close_idle(Duration::ZERO).await;
    let outcomes = outcomes?;
    let mut samples = Vec::new();
    for (item, outcome) in items.into_iter().zip(outcomes) {
        samples.push(sample(item.clone(), try_outcome(job, item, outcome).await?));
    }
    Ok(samples)
}

/// Writes an outcome in a transaction that is rolled back. If the database rejects it, the result is
/// the error of the dead letter.
async fn try_outcome(
    job: &JobContext,
    item: windlass_connectors::Item,
    outcome: Outcome,
) -> Result<Outcome> {
    let Outcome::Done(change) = &outcome else { return Ok(outcome) };
    // Emitted rows go into a table that a dry run does not create.
    let change = Arc::new(Change { emit: Vec::new(), ..change.clone() });
    let windlass_connectors::Item { key, guard, record } = item;
    let write = WriteItem { key, guard, change, record, attempts: 0, conflicts: 0 };
    match job.target.try_write(&job.scope, write).await {
        Err(error) if matches!(error.class(), Some(ErrorClass::Data | ErrorClass::Definition)) => {
            Ok(Outcome::Error(ItemError::permanent(error.to_string())))
        }
        written => {
            written?;
            Ok(outcome)
        }
    }
}

fn sample(item: windlass_connectors::Item, outcome: Outcome) -> Sample {
    let before = item.record.to_json();
    let mut after = before.clone();
    let (mut inserts, mut emits, mut name) = (Vec::new(), Vec::new(), "skip".to_owned());
    match outcome {
        Outcome::Skip => {}
        Outcome::Error(error) => name = format!("error: {}", error.message),
        Outcome::Done(change) => {
            name = "update".to_owned();
            inserts = change.insert;
            emits = change.emit.into_iter().map(|row| Value::from_row(row).to_json()).collect();
            if let Json::Object(fields) = &mut after {
                fields.extend(
                    change.update.into_iter().map(|(column, value)| (column, value.to_json())),
                );
            }
        }
    }
    Sample { key: item.key.to_id(), before, after, inserts, emits, outcome: name }
}
