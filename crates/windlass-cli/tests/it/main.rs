//! The integration tests of the `windlass` binary, all in one test program.
//!
//! One program links the dependencies once, and its tests share one PostgreSQL, one MariaDB and one moto. Tests run in
//! parallel threads, so none may change its process: no environment variables, no working directory, no limits. A test
//! that needs such a change makes it in the `windlass` process that it starts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test reports its failure with a panic"
)]

mod common;

mod alerts;
mod api;
mod candidates;
mod commands;
mod dashboard;
mod demo;
#[cfg(feature = "aws")]
mod dynamodb;
mod failover;
mod faults;
mod merge;
mod nightly;
mod outbox;
mod pages;
mod redshift;
mod relationships;
mod steering;
mod steps;
mod timesheets;
mod torture;
mod visits;
