//! Processes killed, frozen and cut off at work: every row is changed exactly once all the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;

mod diamond;
mod dice;
mod durable;
mod kill;
mod loader;
mod locked;
mod open_transaction;
mod outage;
mod pooler;
mod restart;
mod restore;
mod shutdown;
mod stall;
mod writer;
