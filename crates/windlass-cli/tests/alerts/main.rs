//! Tests of alerts with running servers and a webhook receiver.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod delivery;
mod fixture;
mod kinds;
mod signature;
mod webhook_receiver;
