//! Planning: segments of the source become chunks.

pub(crate) mod planner;
pub(crate) mod schema_cache;
pub(crate) mod segment_planner;
