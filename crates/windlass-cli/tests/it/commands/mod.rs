//! Every command: its output, its changes, its exit code.

mod audit;
mod bad_database;
mod bad_request;
mod check;
mod check_statements;
mod claims;
mod dead_letters;
mod dry_run;
mod exit_codes;
mod help;
mod ids;
mod init;
mod lifecycle;
mod listings;
mod log;
mod migrate;
mod params;
mod permissions;
mod prune;
mod replicas;
mod roles;
mod run;
mod samples;
mod submit;
mod tls;
