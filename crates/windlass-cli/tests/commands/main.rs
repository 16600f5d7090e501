//! Every command as people and scripts use it: what it prints, what it changes, how it exits.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;

mod audit;
mod bad_database;
mod bad_request;
mod check;
mod dead;
mod dry_run;
mod help;
mod init;
mod log;
mod look;
mod migrate;
mod permissions;
mod prune;
mod replicas;
mod roles;
mod run;
mod steer;
mod submit;
mod tls;
