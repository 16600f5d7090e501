//! `examples/candidates` does what its README states, with its own configuration, handler and data, on PostgreSQL with a
//! folder or an S3 endpoint for the originals.

mod controls;
mod dead_letters;
mod fixture;
mod metrics_and_alerts;
mod migrate;
mod new_job_types;
mod refresh;
mod requests;
mod service;
mod writer;
