//! The report of a job for people: what the store knows of it, brought together on one page.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::merge::destination;
use crate::merge::merge;
use windlass_core::problem::Code;
use windlass_core::{ChunkStatus, Job, JobId, JobStatus, Problem, Request, StepKind, Value};
use windlass_html::report::{JobReport, MAX_ERRORS, Output, Rows};
use windlass_html::throughput::bucket_interval;
use windlass_store::{DeadLetterFilter, JobSnapshot, NewPart};

/// Rows of a result that are shown.
const ROWS: usize = 20;
/// Chunks that are listed.
const CHUNKS: u32 = 10;

impl Engine {
    /// The report of a job that has ended, as one page of HTML.
    pub async fn report(&self, id: JobId) -> Result<String> {
        let job = self.job(id).await?;
        if !job.has_ended() {
            let detail =
                format!("job {id} is {}; its report is there when it has ended", job.status);
            return Err(Problem::new(Code::Status, detail).into());
        }
        page(gather(self, job).await?).await
    }
}

/// The report of a job that is about to complete by its merge. Nothing of it changes any more but
/// that it has ended.
pub(crate) async fn of_merged(engine: &Engine, id: JobId) -> Result<String> {
    let now = engine.store().now().await?;
    let job = engine.job(id).await?;
    let job = Job {
        status: JobStatus::Completed,
        phase: None,
        finished_at: Some(now),
        error: None,
        ..job
    };
    page(gather(engine, job).await?).await
}

/// Writes the page where it holds nobody up, and where a mistake in it breaks nothing but it.
async fn page(report: JobReport) -> Result<String> {
    let page = tokio::task::spawn_blocking(move || report.html()).await;
    page.map_err(|error| {
        Problem::new(Code::Source, format!("a report cannot be made: {error}")).into()
    })
}

async fn gather(engine: &Engine, job: Job) -> Result<JobReport> {
    let (store, id) = (engine.store(), job.id);
    let none = || EngineError::from(Problem::new(Code::NotFound, format!("there is no job {id}")));
    let snapshot = store.snapshot(id).await?.ok_or_else(none)?;
    let created_at = store.now().await?;
    let interval = bucket_interval(&job, created_at);
    let letters =
        DeadLetterFilter { job: Some(id), limit: MAX_ERRORS, ..DeadLetterFilter::default() };
    let merged = match snapshot.definition.merges() {
        true => merge::merged(engine, id).await?,
        false => None,
    };
    Ok(JobReport {
        deadline: engine.deadline(id).await?,
        throughput: store.pace(id, interval).await?,
        interval,
        durations: store.durations(id).await?,
        slowest: store.slowest_chunks(id, CHUNKS / 2).await?,
        failed: store.chunks(id, Some(ChunkStatus::Failed), None, CHUNKS).await?,
        errors: store.letter_groups(&letters).await?,
        outputs: outputs(
            &snapshot,
            merge::root_request(engine, &snapshot).await?.as_ref(),
            merged.as_ref(),
        )?,
        rows: match &merged {
            Some(merged) if snapshot.definition.reduces() => Some(first(merged)?),
            _ => None,
        },
        is_pruned: store.segments(id).await?.is_empty(),
        created_at,
        job,
        snapshot,
    })
}

/// What the job puts out, with its size where it is there.
fn outputs(
    snapshot: &JobSnapshot,
    root: Option<&Request>,
    merged: Option<&NewPart>,
) -> Result<Vec<Output>> {
    let definition = &snapshot.definition;
    let (rows, bytes) = (merged.map(|merged| merged.rows), merged.map(|merged| merged.bytes));
    let mut outputs = Vec::new();
    let mut put =
        |name, location, rows, bytes| outputs.push(Output { name, location, rows, bytes });
    if let StepKind::Export(export) = &definition.step.kind {
        put("Parts", destination::fill(snapshot, &export.to)?, rows, bytes);
        if let Some(manifest) = merged.and_then(|merged| merged.name.clone()) {
            put("Manifest, which lists them", manifest, None, None);
        }
    }
    // The names of the columns are kept as a row.
    let rows = rows.map(|rows| rows - 1);
    if let Some(report) = &definition.report {
        put("Report", destination::fill(snapshot, &report.to)?, rows, None);
    }
    if let Some(load) = &definition.load {
        let place = format!("{} on {}", load.table, load.connection);
        match root.is_none_or(|root| merge::is_partial(definition, root)) {
            true => put("Not loaded, since only some records were asked for", place, None, None),
            false => put("Loaded into", place, rows, None),
        }
    }
    Ok(outputs)
}

fn first(merged: &NewPart) -> Result<Rows> {
    let (columns, rows) = merge::rows_of(merged)?;
    let text = |row: Vec<Value>| row.iter().map(Value::to_text).collect();
    let total = rows.len() as i64;
    Ok(Rows { columns, first: rows.into_iter().take(ROWS).map(text).collect(), total })
}
