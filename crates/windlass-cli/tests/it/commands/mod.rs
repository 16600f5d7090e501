//! Every command as people and scripts use it: what it prints, what it changes, how it exits.

mod audit;
mod bad_database;
mod bad_request;
mod check;
mod dead;
mod dry_run;
mod help;
mod init;
mod look;
mod migrate;
mod permissions;
mod prune;
mod replicas;
mod roles;
mod run;
mod steer;
mod submit;
mod tls;
