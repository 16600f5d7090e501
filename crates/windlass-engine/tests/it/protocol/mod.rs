//! The promises of the engine, each tested by the interleaving that would break it.
//!
//! One program, so that all topics share one PostgreSQL server and one link. A test on both
//! databases is a plain function that takes a `EngineFixture`; `on_each!` lists them at the end of a file, or
//! `on_both!` where it is about the store alone.

#[macro_use]
mod common;

mod ambiguous_commit;
mod audit;
mod cancel;
mod claims;
mod conflicts;
mod crash;
mod definition_errors;
mod dependents;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod ending_together;
mod export;
mod fan_in;
mod float_keys;
mod halving;
mod injections;
mod item_errors;
mod items;
mod late_fence;
mod leases;
mod planning;
mod pruning;
mod query_keys;
mod reach;
mod redrive;
mod redrive_fan_in;
mod relay;
mod schedules;
mod spelled_ids;
mod stalled_loader;
mod steering;
mod stopped_redrive;
mod unavailable;
mod urgent;
