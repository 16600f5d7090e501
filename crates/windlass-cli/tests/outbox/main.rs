//! The outbox: what was committed there becomes exactly one job, whoever is killed meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../faults/dice.rs"]
mod dice;

mod application;
mod between;
mod commands;
mod kill;
mod world;
