//! The files that a completed job has written: its report, or its manifest and parts.

use crate::Result;
use crate::engine::Engine;
use crate::merge::{destination, merge};
use futures::stream::BoxStream;
use serde::Serialize;
use windlass_core::{Job, JobStatus, OutputKind, StepKind};
use windlass_store::{JobSnapshot, MERGED, NewPart};

/// A file of a job.
///
/// ```
/// use windlass_engine::JobFile;
///
/// fn describe(file: &JobFile) -> String {
///     format!("{}: {} rows", file.name, file.rows)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct JobFile {
    /// Its name, without folder or bucket.
    pub name: String,
    /// `report` or `export`.
    pub kind: OutputKind,
    /// The chunk, if it is a part.
    pub chunk: Option<i64>,
    /// The number of rows.
    pub rows: i64,
    /// The size in bytes; unknown for a manifest.
    pub bytes: Option<i64>,
    /// The SHA-256 of its bytes in hex; unknown for a manifest.
    pub sha256: Option<String>,
}

/// A file that is being read.
pub struct FileContent {
    /// Its size.
    pub bytes: u64,
    /// Its content, in pieces.
    pub content: BoxStream<'static, Result<Vec<u8>>>,
}

impl Engine {
    /// The files of a completed job: its report or its manifest, unless `after` is given, and its parts
    /// after this chunk.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn files(&self, job: &Job, after: Option<i64>, limit: u32) -> Result<Vec<JobFile>> {
        let Some(snapshot) = self.snapshot_of_completed(job).await? else { return Ok(Vec::new()) };
        let mut files = Vec::new();
        if after.is_none() {
            files.extend(self.report_file(&snapshot).await?.map(|(file, _)| file));
        }
        if !matches!(snapshot.definition.step.kind, StepKind::Export(_)) {
            return Ok(files);
        }
        if after.is_none()
            && let Some(merged) = self.store().merged_part(job.id).await?
        {
            files.push(manifest(&merged.part));
        }
        let after = after.map_or(MERGED, |after| after.max(MERGED));
        let parts = self.store().parts(job.id, after, limit).await?;
        files.extend(
            parts.iter().map(|row| file_of(&row.part, OutputKind::Export, Some(row.chunk))),
        );
        Ok(files)
    }

    /// Opens a file of a completed job by its name. `None` if the job has no such file, or if the file is
    /// not the one that the job wrote: a later job may have replaced it.
    ///
    /// # Errors
    /// The store, the folder or the bucket cannot be read.
    pub async fn open_file(&self, job: &Job, name: &str) -> Result<Option<FileContent>> {
        let Some(snapshot) = self.snapshot_of_completed(job).await? else { return Ok(None) };
        if let Some((file, url)) = self.report_file(&snapshot).await?
            && file.name == name
        {
            return destination::open_file(&url, file.sha256.as_deref()).await;
        }
        // A folder of an export belongs to one job, and so do its files.
        let StepKind::Export(export) = &snapshot.definition.step.kind else { return Ok(None) };
        let has_file = match destination::chunk_of_part(name) {
            Some(chunk) => {
                let found = self.store().parts(job.id, chunk - 1, 1).await?;
                found.iter().any(|row| row.part.name.as_deref() == Some(name))
            }
            None => {
                let merged = self.store().merged_part(job.id).await?;
                merged.is_some_and(|merged| manifest(&merged.part).name == name)
            }
        };
        if !has_file {
            return Ok(None);
        }
        let folder = destination::fill_template(&snapshot, &export.to)?;
        destination::open_file(&format!("{folder}{name}"), None).await
    }

    async fn snapshot_of_completed(&self, job: &Job) -> Result<Option<JobSnapshot>> {
        match job.status {
            JobStatus::Completed => Ok(self.store().snapshot(job.id).await?),
            _ => Ok(None),
        }
    }

    /// The report of a job, with its URL.
    async fn report_file(&self, job: &JobSnapshot) -> Result<Option<(JobFile, String)>> {
        if job.definition.report.is_none() {
            return Ok(None);
        }
        let report = merge::stored_report(self, job.id).await?;
        Ok(report.map(|report| {
            let url = report.name.clone().unwrap_or_default();
            (file_of(&report, OutputKind::Report, None), url)
        }))
    }
}

fn manifest(merged: &NewPart) -> JobFile {
    let file = file_of(merged, OutputKind::Export, None);
    JobFile { bytes: None, sha256: None, ..file }
}

fn file_of(part: &NewPart, kind: OutputKind, chunk: Option<i64>) -> JobFile {
    let url = part.name.as_deref().unwrap_or_default();
    JobFile {
        name: url.rsplit(['/', ':']).next().unwrap_or_default().to_owned(),
        kind,
        chunk,
        rows: part.rows,
        bytes: Some(part.bytes),
        sha256: Some(part.sha256.clone()),
    }
}
