//! Windlass runs batch jobs over the records of a database and commits the effect of each record exactly
//! once.
//!
//! This crate embeds the engine in a program. The `windlass` command is such a program.
//!
//! # Define a job type, run it
//!
//! ```no_run
//! use serde::Deserialize;
//! use windlass::{Config, Engine, ItemContext, ItemError, JobType, Outcome};
//!
//! #[derive(Deserialize)]
//! struct Account {
//!     balance: i64,
//! }
//!
//! async fn add_interest(account: Account, _: ItemContext) -> Result<Outcome, ItemError> {
//!     Ok(Outcome::set("balance", account.balance + account.balance / 100))
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let interest = JobType::builder("ADD_INTEREST")
//!         .connection("app")
//!         .table("accounts")
//!         .handler(add_interest)
//!         .version("version");
//!     let request = interest.request();
//!     let config =
//!         Config::new("sqlite:windlass.db").connection("app", "postgres://localhost/app");
//!     let engine = Engine::builder(config).job(interest).connect().await?;
//!     let job = engine.run(request).await?;
//!     println!("{}: {} processed", job.status, job.items.processed);
//!     Ok(())
//! }
//! ```
//!
//! [`Builder::job`] registers the job type and its handler together, so the compiler checks that they
//! fit. Job types can also come from windlass.toml ([`Config::from_path`]); there `step.handler` names a
//! function that [`Builder::handler`] registers.
//!
//! # Errors in a handler
//!
//! An error that `?` returns is transient: the item is retried with backoff, and becomes a dead letter when
//! its attempts are used up. [`ItemError::permanent`] gives up at once. Neither fails the chunk or the job.
//!
//! # Run a service
//!
//! [`Engine::run`] runs one job and returns. [`Worker`] processes every job until it is stopped.
//! `Service` (feature `server`) also runs the API, the dashboard, schedules, alerts and the outbox relay.
//!
//! # Cargo features
//!
//! | feature | adds | default |
//! |---|---|---|
//! | `postgres` | PostgreSQL as store and as connection | yes |
//! | `sqlite` | SQLite as store and as connection | yes |
//! | `mysql` | MySQL and MariaDB as connections | yes |
//! | `export` | `step.export` and `report`: Parquet, CSV and JSON files | yes |
//! | `server` | the API, the dashboard and the report page | yes |
//! | `aws` | DynamoDB as a connection | no |
//!
//! A configuration that needs a feature which is not built is refused with an error that names it.
//!
//! # Examples
//!
//! The folder `examples/` has complete programs: `write_back`, `report`, `service`, `outbox` and
//! `outbox_sqlite`.

#[cfg(feature = "server")]
mod service;

pub use chrono_tz::Tz;
pub use windlass_connectors::{Emitted, EmittedCursor, Relayed, Waiting, outbox};
pub use windlass_core::config::Connection;
pub use windlass_core::{
    Budget, Change, ChunkCounts, ChunkOptions, ChunkStatus, Claims, Config, Counts,
    DeadLetterStatus, Durability, Export, Failures, Guard, Identity, Insert, ItemCounts, ItemError,
    Job, JobId, JobStatus, JobType, JobTypeBuilder, Json, Key, Load, OnBadRow, OnConflict,
    OnExceeded, Outcome, Problem, Record, Report, Request, Retention, RetryPolicy, S3Copy,
    Schedule, Secret, Value,
};
pub use windlass_engine::{
    AfterRestore, Audit, Builder, Checked, Drift, DryRun, Engine, EngineError, Handle, ItemContext,
    JobDefinition, Options, Pruned, Redriven, Result, Sample, Scheduled, Step, StepBatch,
    StepError, StepItem, Verdict, Worker, WorkerStats, step_problem,
};
#[cfg(feature = "server")]
pub use windlass_server::{Server, ServerError};
pub use windlass_store::{
    ChunkRow, Control, DeadLetter, DeadLetterFilter, JobFilter, Submitted, WorkerRow,
};

#[cfg(feature = "server")]
pub use service::{Service, ServiceBuilder, ServiceError};
