//! The API as its clients use it: a real `windlass serve`, asked over HTTP.

#[macro_use]
mod accounts_fixture;

mod alerts;
mod control;
mod dependencies;
mod document;
mod events;
mod forwarding;
mod health;
mod injections;
mod items;
mod jobs;
mod jwks;
mod letters;
mod limits;
mod output;
mod permissions;
mod problems;
mod report;
mod resources;
mod roles;
mod rows;
mod schedules;
mod schemathesis;
pub(crate) mod served;
mod shutdown;
pub(crate) mod stub;
mod tokens;
