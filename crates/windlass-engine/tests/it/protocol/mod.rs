//! The guarantees of the engine. Each test forces the interleaving that would break one.
//!
//! A test for several databases is a function that takes an `EngineFixture`. The end of a file lists it in `on_each!`,
//! or in `on_both!` if it concerns only the store.

#[macro_use]
pub(crate) mod common;

mod ambiguous_commit;
mod audit;
mod bad_rows;
mod busy_database;
mod cancel;
mod claims;
mod conflicts;
mod crash;
mod damaged_parts;
mod deadlines;
mod definition_errors;
mod dependents;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod ending_together;
mod export;
mod fairness;
mod fan_in;
mod float_keys;
mod halving;
mod injections;
mod item_errors;
mod items;
mod late_fence;
mod leases;
mod malformed_answers;
mod overlap;
mod planning;
mod pruning;
mod query_keys;
mod reach;
mod read_snapshot;
mod redrive;
mod redrive_fan_in;
mod relay;
mod restored_plan;
mod schedules;
mod spelled_ids;
mod stalled_planner;
mod steering;
mod stopped_redrive;
mod stragglers;
mod strict_store;
mod unavailable;
mod unwritten;
mod urgent;
