//! Planning: splits a job into segments and cuts the segments into chunks.

mod block_plan;
pub(crate) mod page;
pub(crate) mod planner;
pub(crate) mod read_snapshot;
pub(crate) mod schema_cache;
pub(crate) mod segment_planner;
mod snapshot_holder;
mod snapshot_plan;
