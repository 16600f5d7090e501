//! Shared by the integration tests of all crates: real servers, injected faults, real processes.
//!
//! Nothing needs to run before the tests, and nothing is left running after them, even if the test process is
//! killed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "this code runs only inside tests, which report failures with panics"
)]

mod account;
#[cfg(feature = "aws")]
pub mod aws;
#[cfg(feature = "browser")]
mod browser;
mod certificates;
mod descendants;
mod folder;
mod gate;
mod launch;
mod mariadb;
mod ministack;
mod moto;
mod pgbouncer;
mod port;
mod postgres;
mod process;
mod proxy;
mod python;
#[cfg(feature = "redshift")]
mod redshift;
mod spawn;
mod template;
mod wait;

#[cfg(feature = "browser")]
pub use browser::{Browser, Screen};
pub use certificates::Certificates;
pub use descendants::{Descendant, children_of, descendants_in};
#[cfg(feature = "browser")]
pub use fantoccini::key::Key;
pub use gate::Gate;
pub use mariadb::{MariaDatabase, MariaServer};
pub use ministack::Ministack;
pub use moto::{Dynamodb, Moto};
pub use pgbouncer::PgBouncer;
pub use port::free_port;
pub use postgres::{Database, Options, PostgresServer, StoppedWalWriter};
pub use process::{Output, Running, Windlass, allow_descriptors, built_program, windlass_bin};
pub use proxy::Proxy;
pub use python::python_program;
#[cfg(feature = "redshift")]
pub use redshift::RedshiftServer;
pub use wait::eventually;
