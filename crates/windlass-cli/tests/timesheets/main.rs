//! `examples/timesheets` keeps every promise of its README, with its own configuration and data, and
//! several servers at once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;

mod cancel;
mod dependencies;
mod identity;
mod many_jobs;
mod progress;
mod queue;
mod retries;
mod servers;
mod service;
mod statuses;
mod world;
