//! Alerts as whoever receives them sees it: real servers, a real listener.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;

mod delivery;
mod kinds;
mod receiver;
mod signature;
mod world;
