//! The AWS form of the example: its template as AWS understands it, and its job types run by the real
//! functions on DynamoDB, SQS and S3.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

mod commands;
mod jobs;
mod permissions;
mod stack;
mod table;
mod template;
mod writer;
