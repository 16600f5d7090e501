//! `examples/visits` keeps every promise of its README, with its own configuration and data.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;

mod cancel;
mod chunks;
mod dead;
mod half_way;
mod limit;
mod listing;
mod marks;
mod rerun;
mod resume;
mod retries;
mod two_processes;
mod world;
