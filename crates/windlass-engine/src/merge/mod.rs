//! Fan-in: merges the parts of a job into its result, writes the report, and loads the result into a
//! table.

pub(crate) mod destination;
pub(crate) mod job_result;
pub(crate) mod map_export;
pub(crate) mod merge;
pub(crate) mod report_page;
