//! Tests of the dashboard: a running `windlass serve` in a headless browser.

mod alerts;
mod appearance;
mod cross_site;
mod dead_letters;
mod forms;
mod keyboard;
mod large_job;
mod live_updates;
mod long_names;
mod numbers_and_times;
mod pages;
mod report;
mod roles;
mod screenshots;
mod script_injection;
mod visibility;
mod wallets_fixture;
