//! The same behaviour on every backend, split by topic.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod committing;
mod cutting;
mod describing;
mod durability;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod extracting;
mod fencing;
mod fitting;
mod harness;
mod holding;
mod items;
mod key_checks;
mod keys;
mod mariadb;
mod marking;
mod naming;
mod outboxes;
mod reading;
mod splitting;
mod writing;
