//! Tests the same behaviour on every backend, by topic.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod committing;
mod cutting;
mod deferred_items;
mod describing;
mod durability;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod extracting;
mod fencing;
mod guards;
mod harness;
mod index_use;
mod inline_source;
mod key_checks;
mod keys;
mod mariadb;
mod mariadb_splitting;
mod marking;
mod outbox_privileges;
mod outboxes;
mod quoting;
mod random_keys;
mod random_statements;
mod reading;
#[cfg(all(feature = "export", feature = "postgres"))]
mod redshift;
mod self_join;
mod splitting;
mod validation;
mod writing;
