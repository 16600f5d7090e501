//! Steps in any language: real programs and a real HTTP service, which work, fail and are killed.

mod answers;
mod check;
mod control_characters;
mod dry_run;
mod emit;
mod environment;
mod examples;
mod failures;
pub(crate) mod fixture;
mod identity;
mod isolation;
mod kill;
mod lifetime;
mod log;
mod outage;
mod plain_http;
mod poison;
mod refusals;
mod retries;
mod secrets;
pub(crate) mod server;
mod service;
mod start;
mod token;
mod unversioned;
