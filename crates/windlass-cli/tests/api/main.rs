//! The API as its clients use it: a real `windlass serve`, asked over HTTP.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;
#[macro_use]
mod purses;

mod alerts;
mod control;
mod dependencies;
mod document;
mod events;
mod forwarding;
mod health;
mod injections;
mod items;
mod jobs;
mod jwks;
mod letters;
mod limits;
mod output;
mod permissions;
mod problems;
mod report;
mod resources;
mod roles;
mod rows;
mod schedules;
mod schemathesis;
mod served;
mod shutdown;
mod stub;
mod tokens;
