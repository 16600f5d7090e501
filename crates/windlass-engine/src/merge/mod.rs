//! Fan-in: merges the parts of a job into its result, writes the report, and loads the result into a
//! table.

#[cfg(feature = "export")]
mod bad_records;
mod bad_rows;
#[cfg(feature = "export")]
pub(crate) mod copy;
#[cfg(not(feature = "export"))]
#[path = "no_copy.rs"]
pub(crate) mod copy;
#[cfg(feature = "export")]
pub(crate) mod destination;
#[cfg(not(feature = "export"))]
#[path = "no_export.rs"]
pub(crate) mod destination;
pub(crate) mod job_result;
pub(crate) mod map_export;
#[expect(clippy::module_inception, reason = "the merge itself, beside what it needs")]
pub(crate) mod merge;
#[cfg(feature = "html")]
pub(crate) mod report_page;
pub(crate) mod result_rows;
