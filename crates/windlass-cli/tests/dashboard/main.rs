//! Tests of the dashboard: a running `windlass serve` in a headless browser.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../api/server_fixture.rs"]
#[allow(dead_code, reason = "the tests of the API use the rest")]
mod server_fixture;
#[path = "../api/stub_service.rs"]
#[allow(dead_code, reason = "the tests of the API use the rest")]
mod stub_service;

mod appearance;
mod browser;
mod cross_site;
mod dead_letters;
mod keyboard;
mod large_job;
mod live_updates;
mod pages;
mod report;
mod roles;
mod screenshots;
mod script_injection;
mod visibility;
mod wallets_fixture;
