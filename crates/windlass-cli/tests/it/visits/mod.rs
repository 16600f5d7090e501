//! `examples/visits` keeps every promise of its README, with its own configuration and data.

mod cancel;
mod chunks;
mod dead;
mod fixture;
mod half_way;
mod limit;
mod listing;
mod marks;
mod rerun;
mod resume;
mod retries;
mod two_processes;
