//! Every command: its output, its changes, its exit code.

mod audit;
mod bad_database;
mod bad_request;
mod check;
mod check_statements;
mod dead_letters;
mod dry_run;
mod exit_codes;
mod help;
mod init;
mod lifecycle;
mod listings;
mod log;
mod migrate;
mod permissions;
mod prune;
mod replicas;
mod roles;
mod run;
mod submit;
mod tls;
