//! `examples/candidates` keeps every promise of its README, with its own configuration, handler and
//! data, on PostgreSQL with a folder or an S3 endpoint for the originals.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;

mod further;
mod letters;
mod migrate;
mod refresh;
mod requests;
mod service;
mod steering;
mod told;
mod world;
mod writer;
