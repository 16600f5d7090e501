//! Several processes on one store behave as one engine that an operator can steer while it runs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;

mod clock;
mod health;
mod limits;
mod schedules;
mod stop;
mod workers;
