//! `examples/timesheets` does what its README states, with its own configuration and data, and several servers at
//! once.

mod cancel;
mod dependencies;
mod files;
mod fixture;
mod identity;
mod many_jobs;
mod progress;
mod queue;
mod retries;
mod servers;
mod service;
mod statuses;
