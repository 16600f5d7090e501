//! Stands in for `destination.rs` in a build without the feature `export`: a job type that writes files
//! is refused with an error that names the feature.

use crate::Result;
use crate::job_context::JobContext;
use crate::operate::files::FileContent;
use windlass_connectors::Rows;
use windlass_core::{Identity, JobId, JobType, Problem, Report, Request, StepKind};
use windlass_store::{JobSnapshot, NewPart, PartRow};

/// The destination of an export. There is none in this build.
pub(crate) enum JobDestination {}

impl JobDestination {
    /// None for a job without files; an error for one that exports.
    pub(crate) fn of(job: &JobContext) -> Result<Option<JobDestination>> {
        Ok(check(job.definition()).map(|()| None)?)
    }

    pub(crate) async fn write_manifest(
        &self,
        _job: &JobContext,
        _parts: &[PartRow],
        _confirm_lease: impl Future<Output = Result<()>>,
    ) -> Result<NewPart> {
        match *self {}
    }

    pub(crate) async fn delete_all(
        &self,
        _job: &JobContext,
        _cancelled: impl Future<Output = Result<bool>>,
    ) -> Result<()> {
        match *self {}
    }
}

/// No part of this build is a file, so there is none to remove.
pub(crate) async fn delete_orphaned_part(_job: &JobContext, _part: &NewPart) {}

pub(crate) async fn write_report(
    job: &JobContext,
    _report: &Report,
    _result: &Rows,
    _earlier: Option<NewPart>,
    _record: impl AsyncFnOnce(&NewPart) -> Result<()>,
) -> Result<NewPart> {
    Err(missing(job.definition(), "report").into())
}

/// This build has no files.
pub(crate) fn chunk_of_part(_name: &str) -> Option<i64> {
    None
}

/// This build reads no files.
pub(crate) async fn open_file(_url: &str, _sha256: Option<&str>) -> Result<Option<FileContent>> {
    Ok(None)
}

/// A report cannot be deleted by this build.
pub(crate) async fn remove_report(_job: JobId, report: &NewPart) -> Result<Option<String>> {
    let url = report.name.as_deref().unwrap_or_default();
    Ok(Some(format!(
        "the report {url} was not deleted, because this build has no feature `export`"
    )))
}

#[cfg(feature = "html")]
pub(crate) async fn write_report_page(
    job: &JobContext,
    _report: &Report,
    _page: String,
    _confirm_lease: impl Future<Output = Result<()>>,
) -> Result<()> {
    Err(missing(job.definition(), "report").into())
}

pub(crate) async fn list_parts(_engine: &crate::Engine, _job: JobId) -> Result<Vec<PartRow>> {
    Ok(Vec::new())
}

pub(crate) fn fill_template(job: &JobSnapshot, _template: &str) -> Result<String> {
    Err(missing(&job.definition, "report").into())
}

/// Refuses a request of a job type that writes files.
pub(crate) fn check_destinations(
    definition: &JobType,
    _request: &Request,
    _identity: &Identity,
) -> Result<()> {
    Ok(check(definition)?)
}

/// Refuses a job type that writes files.
pub(crate) fn check(definition: &JobType) -> std::result::Result<(), Problem> {
    match &definition.step.kind {
        StepKind::Export(_) => Err(missing(definition, "step.export")),
        _ if definition.report.is_some() => Err(missing(definition, "report")),
        _ if definition.load.as_ref().is_some_and(|load| load.copy.is_some()) => {
            Err(missing(definition, "load.copy"))
        }
        _ => Ok(()),
    }
}

fn missing(definition: &JobType, field: &str) -> Problem {
    let detail = "this build writes no files; build it with the cargo feature `export`";
    definition.problem(field, detail)
}
