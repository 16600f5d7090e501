//! The HTML report of a job: collects what the store knows about it and renders one page.

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

/// Rows of the result shown on the page.
const MAX_RESULT_ROWS: usize = 20;
/// Failed chunks listed; half as many of the slowest are listed.
const MAX_CHUNKS: u32 = 10;

impl Engine {
    /// The report of a job that has ended, as one HTML page.
    ///
    /// # Errors
    /// There is no such job, it has not ended, or the store fails.
    pub async fn report(&self, id: JobId) -> Result<String> {
        let job = self.job(id).await?;
        if !job.has_ended() {
            let detail =
                format!("job {id} is {}; the report is available after it has ended", job.status);
            return Err(Problem::new(Code::Status, detail).into());
        }
        render(collect(self, job).await?).await
    }
}

/// The report of a job that its merge is about to complete. It shows the job as completed, since
/// nothing else of it will change.
pub(crate) async fn render_merged(engine: &Engine, id: JobId) -> Result<String> {
    let now = engine.store().now().await?;
    let job = engine.job(id).await?;
    let job = Job {
        status: JobStatus::Completed,
        phase: None,
        finished_at: Some(now),
        error: None,
        ..job
    };
    render(collect(engine, job).await?).await
}

/// Renders on a blocking thread, so that the runtime is not delayed and a panic fails only this page.
async fn render(report: JobReport) -> Result<String> {
    let page = tokio::task::spawn_blocking(move || report.html()).await;
    page.map_err(|error| {
        Problem::new(Code::Source, format!("failed to render the report: {error}")).into()
    })
}

async fn collect(engine: &Engine, job: Job) -> Result<JobReport> {
    let (store, id) = (engine.store(), job.id);
    let none = || EngineError::from(Problem::new(Code::NotFound, format!("there is no job {id}")));
    let snapshot = store.snapshot(id).await?.ok_or_else(none)?;
    let created_at = store.now().await?;
    let interval = bucket_interval(&job, created_at);
    let letters =
        DeadLetterFilter { job: Some(id), limit: MAX_ERRORS, ..DeadLetterFilter::default() };
    let merged = match snapshot.definition.merges() {
        true => merge::stored_result(engine, id).await?,
        false => None,
    };
    Ok(JobReport {
        deadline: engine.deadline(id).await?,
        throughput: store.throughput_buckets(id, interval).await?,
        interval,
        durations: store.duration_buckets(id).await?,
        slowest: store.slowest_chunks(id, MAX_CHUNKS / 2).await?,
        failed: store.chunks(id, Some(ChunkStatus::Failed), None, MAX_CHUNKS).await?,
        errors: store.dead_letter_groups(&letters).await?,
        outputs: outputs(
            &snapshot,
            merge::root_request(engine, &snapshot).await?.as_ref(),
            merged.as_ref(),
        )?,
        rows: match &merged {
            Some(merged) if snapshot.definition.reduces() => Some(first_rows(merged)?),
            _ => None,
        },
        is_pruned: store.segments(id).await?.is_empty(),
        created_at,
        job,
        snapshot,
    })
}

/// The outputs of the job, with their size if they exist.
fn outputs(
    snapshot: &JobSnapshot,
    root: Option<&Request>,
    merged: Option<&NewPart>,
) -> Result<Vec<Output>> {
    let definition = &snapshot.definition;
    let (rows, bytes) = (merged.map(|merged| merged.rows), merged.map(|merged| merged.bytes));
    let mut outputs = Vec::new();
    let mut add =
        |name, location, rows, bytes| outputs.push(Output { name, location, rows, bytes });
    if let StepKind::Export(export) = &definition.step.kind {
        add("Parts", destination::fill_template(snapshot, &export.to)?, rows, bytes);
        if let Some(manifest) = merged.and_then(|merged| merged.name.clone()) {
            add("Manifest", manifest, None, None);
        }
    }
    // The first stored row holds the column names.
    let rows = rows.map(|rows| rows - i64::from(definition.reduces()));
    if let Some(report) = &definition.report {
        add("Report", destination::fill_template(snapshot, &report.to)?, rows, None);
    }
    if let Some(load) = &definition.load {
        let place = format!("{} on {}", load.table, load.connection);
        match root.is_none_or(|root| merge::is_partial(definition, root)) {
            true => {
                add("Not loaded: the request covered only part of the source", place, None, None)
            }
            false => add("Loaded into", place, rows, None),
        }
    }
    Ok(outputs)
}

fn first_rows(merged: &NewPart) -> Result<Rows> {
    let (columns, rows) = merge::decode_result(merged)?;
    let text = |row: Vec<Value>| row.iter().map(Value::to_text).collect();
    // The store may have the first rows alone.
    let total = merged.rows - 1;
    Ok(Rows { columns, first: rows.into_iter().take(MAX_RESULT_ROWS).map(text).collect(), total })
}
