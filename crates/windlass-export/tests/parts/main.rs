//! Parts in real folders and a real endpoint of S3, read back by a reader that is not ours.

#![allow(clippy::unwrap_used, reason = "a panic is how a test tells its failure")]

mod common;
mod crash;
mod deterministic;
mod folder;
mod manifest;
mod pyarrow;
mod s3;
mod text;
