//! Fan-in: the parts of a job become its result, its report and its rows in a table.

#[cfg(feature = "export")]
pub(crate) mod destination;
#[cfg(not(feature = "export"))]
#[path = "no_export.rs"]
pub(crate) mod destination;
pub(crate) mod job_result;
pub(crate) mod map_export;
pub(crate) mod merge;
#[cfg(feature = "html")]
pub(crate) mod report_page;
