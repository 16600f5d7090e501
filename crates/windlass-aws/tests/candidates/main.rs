//! Candidates and periods in DynamoDB, worked over SQS by the two functions run for real.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

mod commands;
mod duplicates;
mod fixture;
mod killed;
mod letters;
mod process;
mod scenario;
mod start;
mod worker;
mod writer;
