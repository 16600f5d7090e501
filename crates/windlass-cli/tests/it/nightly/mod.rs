//! `examples/nightly` does what its README states, with its own configuration and data, on a real MariaDB, PostgreSQL and
//! S3 endpoint.

mod bad_rows;
mod cancel;
mod firing;
mod fixture;
#[cfg(feature = "aws")]
mod functions;
mod killed;
mod load;
mod parquet;
mod read_only_and_pruned;
mod reading;
mod refused;
mod rerun;
mod transient;
