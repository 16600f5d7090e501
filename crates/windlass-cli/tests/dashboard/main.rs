//! The dashboard as people use it: a real `windlass serve`, in a real browser without a screen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../api/served.rs"]
#[allow(dead_code, reason = "the tests of the API use the rest")]
mod served;
#[path = "../api/stub.rs"]
#[allow(dead_code, reason = "the tests of the API use the rest")]
mod stub;

mod browser;
mod doors;
mod keyboard;
mod large;
mod letters;
mod live;
mod pages;
mod pictures;
mod private;
mod report;
mod roles;
mod scene;
mod scripts;
mod world;
