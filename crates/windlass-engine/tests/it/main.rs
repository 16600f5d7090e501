//! The integration tests of the engine, all in one test program: whole jobs in one process (`protocol`) and reads
//! from replicas (`replicas`), and every type of each database (`types`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test reports its failure with a panic"
)]

mod protocol;
mod replicas;
mod types;
