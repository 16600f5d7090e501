//! Candidates and periods in DynamoDB, worked through SQS by the two real functions.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test reports its failure with a panic"
)]

mod commands;
mod duplicates;
mod fixture;
mod killed;
mod letters;
mod process;
mod progress;
mod record_types;
mod scenario;
mod start;
mod whole_items;
mod worker;
mod writer;
