//! A merge whose process dies, sleeps or is cancelled at the worst moment, or whose place refuses: the
//! load is there once, the report and the manifest whole, and nothing of it half.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;

mod asleep;
mod cancelled;
mod killed;
mod page;
mod refused;
mod world;
