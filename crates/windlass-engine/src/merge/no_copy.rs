//! Stands in for `copy.rs` in a build without the feature `export`: a load with `copy` writes files, and its job type
//! is refused.

use crate::Result;
use crate::merge::destination::JobDestination;
use crate::merge::job_result::MergedRows;
use crate::merge::merge::Merging;
use windlass_connectors::Bound;
use windlass_core::problem::Code;
use windlass_core::{Column, JobType, Load, Problem, S3Copy};
use windlass_store::JobSnapshot;

pub(crate) async fn load_result(
    _merge: Merging<'_>,
    _load: &Load,
    _copy: &S3Copy,
    _bounds: &[Bound],
) -> Result<MergedRows> {
    let detail = "this build writes no files; build it with the cargo feature `export`";
    Err(Problem::field(Code::Source, "load.copy", detail).into())
}

pub(crate) async fn load_export(
    _merge: Merging<'_>,
    _load: &Load,
    _bounds: &[Bound],
    destination: &JobDestination,
) -> Result<()> {
    match *destination {}
}

pub(crate) fn check_columns(_definition: &JobType, _columns: &[Column]) -> Result<()> {
    Ok(())
}

/// This build has staged no files.
pub(crate) async fn delete_staged(_job: &JobSnapshot) -> Result<()> {
    Ok(())
}
