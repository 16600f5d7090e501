//! `examples/relationships` keeps every promise of its README, with its own programs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;

mod letters;
mod one_job;
mod resume;
mod together;
mod unwritten;
mod world;
