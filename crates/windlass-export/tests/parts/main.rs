//! Writes parts to folders and to an S3 endpoint, and reads them with pyarrow.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod crash;
mod deterministic;
mod folder;
mod manifest;
mod pyarrow;
mod s3;
mod text;
