//! Tests of the REST API against a running `windlass serve`.

#[macro_use]
mod wallets_fixture;

mod alerts;
mod controls;
mod cursors;
mod dead_letters;
mod dependencies;
mod events;
mod health;
mod inline_items;
mod jobs;
mod jwks;
mod openapi;
mod output;
mod permissions;
mod problems;
mod rate_limit;
mod report;
mod resources;
mod roles;
mod row_level_security;
mod schedules;
mod schemathesis;
pub(crate) mod server_fixture;
mod shutdown;
mod sql_injection;
pub(crate) mod stub_service;
mod token_forwarding;
mod tokens;
