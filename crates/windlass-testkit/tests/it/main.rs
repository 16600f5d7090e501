//! The test kit's own tests: its servers, its proxy and its processes do what the tests of the engine rely on.

#![allow(clippy::unwrap_used, reason = "a test reports its failure with a panic")]

mod mariadb;
mod pgbouncer;
mod postgres;
mod process;
mod proxy;
