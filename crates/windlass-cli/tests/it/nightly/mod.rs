//! `examples/nightly` keeps every promise of its README, with its own configuration and data, on a
//! real MariaDB, PostgreSQL and S3 endpoint.

mod cancel;
mod firing;
mod fixture;
mod household;
mod killed;
mod load;
mod parquet;
mod reading;
mod refused;
mod rerun;
mod transient;
