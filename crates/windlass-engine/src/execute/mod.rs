//! Execution: a chunk becomes committed effects.

pub(crate) mod acquire;
pub(crate) mod chunk_end;
pub(crate) mod chunk_runner;
pub(crate) mod commit_pace;
mod completion;
pub(crate) mod flush;
pub(crate) mod heartbeat;
pub(crate) mod last_commit;
pub(crate) mod lease;
pub(crate) mod per_item;
pub(crate) mod poison;
pub(crate) mod read_ahead;
pub(crate) mod ready_queue;
pub(crate) mod set_based;
pub(crate) mod settlement;
pub(crate) mod slot;
pub(crate) mod slots;
pub(crate) mod stop_reason;
pub(crate) mod straggler;
pub(crate) mod throttle;
pub(crate) mod throttled;
mod unread;
pub(crate) mod unwritten;
pub(crate) mod worker;
