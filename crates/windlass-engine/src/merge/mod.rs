//! Fan-in: the parts of a job become its result, its report and its rows in a table.

pub(crate) mod destination;
pub(crate) mod job_result;
pub(crate) mod map_export;
pub(crate) mod merge;
pub(crate) mod report_page;
