//! A dry run: what a job would do to a few records, with nothing changed.

use crate::Result;
use crate::engine::Engine;
use crate::job_context::JobContext;
use crate::step::{StepBatch, StepItem};
use serde_json::Value as Json;
use std::time::Duration;
use windlass_connectors::{ConnectorError, ReadLimits, WriteItem};
use windlass_core::{
    Change, Identity, ItemError, JobId, Key, KeyRange, KeySet, Keys, Outcome, Request, Value,
};
use windlass_drivers::ErrorClass;
use windlass_store::JobSnapshot;

/// What a dry run shows.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// How many records the job would reach.
    pub records: i64,
    /// A few of them.
    pub sample: Vec<Sample>,
}

/// One record before and after.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Sample {
    /// Its key.
    pub key: Json,
    /// As it is.
    pub before: Json,
    /// As it would be; null when it would be deleted.
    pub after: Json,
    /// What would be inserted elsewhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inserts: Vec<windlass_core::Insert>,
    /// What would be emitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub emits: Vec<Json>,
    /// `update`, `skip` or the error it would become a dead letter with.
    pub outcome: String,
}

/// Records shown.
const SAMPLES: u32 = 5;

impl Engine {
    /// Runs a request on a few records and takes everything back.
    pub async fn dry_run(&self, request: Request, identity: Identity) -> Result<DryRun> {
        let checked = self.check_request(&request, &identity).await?;
        let id = JobId::now_v7();
        let snapshot =
            JobSnapshot { id, definition: checked.definition, request, identity, root: id };
        let job = self.resolve(snapshot, true).await?;
        let reach = reach(&job);
        let samples = self.sample_reader(&job)?;
        let records = samples.count(&job.scope, &reach).await?;
        let batch = samples.read(&job.scope, &reach, ReadLimits::new(SAMPLES, usize::MAX)).await?;
        let sample = match &job.step {
            None if job.definition().step.kind.makes_parts() => parts(&job, batch.items).await?,
            None => statement(&job, batch.items).await?,
            Some(_) => handler(&job, batch.items).await?,
        };
        Ok(DryRun { records, sample })
    }
}

/// Everything the request reaches.
fn reach(job: &JobContext) -> KeySet {
    let part = match &job.snapshot.request.ids {
        Some(ids) => Keys::List(ids.iter().cloned().map(Key::from_id).collect()),
        None => Keys::Range(KeyRange::ALL),
    };
    KeySet { within: None, keys: part }
}

/// What is read of the records, and what `map` makes of them together.
async fn parts(job: &JobContext, items: Vec<windlass_connectors::Item>) -> Result<Vec<Sample>> {
    let keys = items.iter().map(|item| item.key.clone()).collect();
    let mut mapped = Vec::new();
    if !job.part_columns.is_empty() && !items.is_empty() {
        let rows = job.fan_in.map(&job.scope, &job.part_columns, &KeySet::keys(keys)).await?;
        let row = |values: Vec<Value>| {
            let names = job.part_columns.iter().map(|column| column.name.clone());
            names.zip(values.iter().map(Value::to_json)).collect::<Json>()
        };
        mapped = rows.into_iter().map(row).collect();
    }
    let sample = |item: windlass_connectors::Item| {
        let before = item.record.to_json();
        Sample {
            key: item.key.to_id(),
            after: before.clone(),
            before,
            inserts: Vec::new(),
            // Of all the records shown, so it stands with the first.
            emits: std::mem::take(&mut mapped),
            outcome: "read".to_owned(),
        }
    };
    Ok(items.into_iter().map(sample).collect())
}

/// What a statement makes of the records: of all together, or of each by itself where one of them
/// makes it fail, which shows the error that it would become a dead letter with.
async fn statement(job: &JobContext, items: Vec<windlass_connectors::Item>) -> Result<Vec<Sample>> {
    let spoilt = |error: &ConnectorError| matches!(error.class(), Some(ErrorClass::Data));
    match preview(job, items.iter().map(|item| item.key.clone()).collect()).await {
        Err(error) if spoilt(&error) => {}
        shown => return Ok(shown?),
    }
    let mut samples = Vec::new();
    for item in items {
        match preview(job, vec![item.key.clone()]).await {
            Err(error) if spoilt(&error) => {
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
            let changed = preview.after.as_ref() != Some(&preview.before);
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

async fn handler(job: &JobContext, items: Vec<windlass_connectors::Item>) -> Result<Vec<Sample>> {
    let Some(step) = &job.step else { return Ok(Vec::new()) };
    let item = |item: &windlass_connectors::Item| StepItem {
        key: item.key.clone(),
        record: item.record.clone(),
        attempt: 1,
    };
    let batch = StepBatch::new(&job.facts, None, items.iter().map(item).collect());
    let outcomes = step.process(batch).await;
    step.rest(Duration::ZERO).await;
    let outcomes = outcomes?;
    let mut samples = Vec::new();
    for (item, outcome) in items.into_iter().zip(outcomes) {
        samples.push(sample(item.clone(), tried(job, item, outcome).await?));
    }
    Ok(samples)
}

/// An outcome that the database would not take is the error it would become a dead letter with.
async fn tried(
    job: &JobContext,
    item: windlass_connectors::Item,
    outcome: Outcome,
) -> Result<Outcome> {
    let Outcome::Done(change) = &outcome else { return Ok(outcome) };
    // What is emitted goes into a table that a dry run does not make.
    let change = Change { emit: Vec::new(), ..change.clone() };
    let windlass_connectors::Item { key, version, record } = item;
    let write = WriteItem { key, version, change, record, attempts: 0, conflicts: 0 };
    match job.target.try_write(&job.scope, write).await {
        Err(error) if matches!(error.class(), Some(ErrorClass::Data | ErrorClass::Definition)) => {
            Ok(Outcome::Error(ItemError::permanent(error.to_string())))
        }
        tried => {
            tried?;
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
