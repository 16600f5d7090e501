//! The AWS deployment of the example: its template as AWS expands it, and its job types run by the real functions on
//! DynamoDB, SQS and S3.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test reports its failure with a panic"
)]

mod commands;
mod indexing;
mod jobs;
mod permissions;
mod record_types;
mod stack;
mod table;
mod template;
mod throughput;
mod writer;
