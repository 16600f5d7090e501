//! Planning: splits a job into segments and cuts the segments into chunks.

mod page;
pub(crate) mod planner;
pub(crate) mod schema_cache;
pub(crate) mod segment_planner;
