//! Parts written to real folders and to an S3 endpoint, and read back by PyArrow.

#![allow(clippy::unwrap_used, reason = "a test reports its failure with a panic")]

mod common;
mod crash;
mod damaged_manifest;
mod deterministic;
mod folder;
mod full_disk;
mod manifest;
mod pyarrow;
mod s3;
mod text;
