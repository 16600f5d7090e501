//! `examples/nightly` keeps every promise of its README, with its own configuration and data, on a
//! real MariaDB, PostgreSQL and S3 endpoint.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;

mod cancel;
mod firing;
mod household;
mod killed;
mod load;
mod parquet;
mod reading;
mod refused;
mod rerun;
mod transient;
mod world;
