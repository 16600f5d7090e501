//! Finds a job or a dead letter by a part of its id, and lists what a job wrote.

use crate::engine::Engine;
use crate::merge::{destination, merge};
use crate::{EngineError, Result};
use uuid::Uuid;
use windlass_core::problem::Code;
use windlass_core::{Job, JobId, JobOutput, JobStatus, OutputKind, Problem, StepKind};
use windlass_store::{JobFilter, JobSnapshot};

/// Ids that an ambiguous text lists.
const MAX_LISTED: u32 = 5;

impl Engine {
    /// The job with this id: the whole id, a prefix of one job only, the last eight characters, or `last`
    /// for the newest job.
    ///
    /// # Errors
    /// No job or several jobs match, or the store cannot be read.
    pub async fn find_job(&self, text: &str) -> Result<JobId> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        if text == "last" {
            let newest = JobFilter { limit: 1, ..JobFilter::default() };
            let newest = self.store().jobs(&newest).await?;
            let none = || Problem::new(Code::NotFound, "there are no jobs");
            return Ok(newest.first().ok_or_else(none)?.id);
        }
        let found = self.store().matching_jobs(&spelled(text)?, MAX_LISTED).await?;
        only(&found, "job", text, "`windlass jobs` lists them")
    }

    /// The dead letter with this id: the whole id, a prefix of one letter only, or the last eight
    /// characters.
    ///
    /// # Errors
    /// No dead letter or several match, or the store cannot be read.
    pub async fn find_dead_letter(&self, text: &str) -> Result<Uuid> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        let found = self.store().matching_dead_letters(&spelled(text)?, MAX_LISTED).await?;
        only(&found, "dead letter", text, "`windlass dead list` lists them")
    }

    /// What a completed job wrote.
    ///
    /// # Errors
    /// The store, or the database of a `load`, cannot be read.
    pub async fn outputs(&self, job: &Job) -> Result<Vec<JobOutput>> {
        if job.status != JobStatus::Completed {
            return Ok(Vec::new());
        }
        let Some(snapshot) = self.store().snapshot(job.id).await? else { return Ok(Vec::new()) };
        let definition = &snapshot.definition;
        let mut outputs = Vec::new();
        let mut add = |kind, to: String, rows| outputs.push(JobOutput { kind, to, rows });
        if !definition.step.kind.makes_parts()
            && definition.changes_source().unwrap_or(false)
            && let (Some(table), false) = (&definition.source.table, definition.source.items)
        {
            let to = format!("{}.{table}", definition.source.connection);
            add(OutputKind::Table, to, Some(job.items.processed));
        }
        if !definition.merges() {
            return Ok(outputs);
        }
        let stored = self.store().merged_part(job.id).await?.map(|merged| merged.part);
        if let (StepKind::Export(_), Some(manifest)) = (&definition.step.kind, &stored) {
            let name = manifest.name.clone().unwrap_or_default();
            add(OutputKind::Export, name, Some(manifest.rows));
        }
        // The first row of a stored result has the names of its columns.
        let header = i64::from(definition.reduces());
        let rows = stored.map(|result| result.rows - header);
        if let Some(load) = &definition.load
            && self.was_loaded(&snapshot).await?
        {
            add(OutputKind::Load, format!("{}.{}", load.connection, load.table), rows);
        }
        if let Some(report) = &definition.report {
            let to = destination::fill_template(&snapshot, &report.to)?;
            let page = (report.page && cfg!(feature = "html")).then(|| format!("{to}.html"));
            add(OutputKind::Report, to, rows);
            if let Some(page) = page {
                add(OutputKind::Page, page, None);
            }
        }
        Ok(outputs)
    }

    /// Whether the result of a job was loaded: a partial one is not.
    async fn was_loaded(&self, job: &JobSnapshot) -> Result<bool> {
        let root = merge::root_request(self, job).await?;
        Ok(root.is_some_and(|root| !merge::is_partial(&job.definition, &root)))
    }
}

/// The text in the spelling of stored ids.
fn spelled(text: &str) -> Result<String> {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    if text.len() < 4 || !text.chars().all(is_part) {
        let detail = format!(
            "`{text}` is no id; expected an id, at least four characters of its beginning, its last \
             eight characters, or `last` for the newest job"
        );
        return Err(Problem::new(Code::NotFound, detail).into());
    }
    Ok(text.to_ascii_lowercase())
}

fn only(found: &[Uuid], noun: &str, text: &str, listed: &str) -> Result<Uuid> {
    match found {
        [one] => Ok(*one),
        [] => {
            let detail = format!("there is no {noun} {text}; {listed}");
            Err(EngineError::from(Problem::new(Code::NotFound, detail)))
        }
        several => {
            let ids: Vec<String> = several.iter().map(Uuid::to_string).collect();
            let detail = format!(
                "`{text}` is the beginning of several ids; give more of it. The newest are {}",
                ids.join(", ")
            );
            Err(Problem::new(Code::NotFound, detail).into())
        }
    }
}
