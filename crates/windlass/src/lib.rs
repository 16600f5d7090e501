//! Windlass: batch jobs over records, every one exactly once.
//!
//! The library is the engine that the `windlass` binary runs, with Rust functions as handlers:
//!
//! ```no_run
//! use serde::Deserialize;
//! use windlass::{Config, Engine, Outcome, Request};
//!
//! #[derive(Deserialize)]
//! struct Account {
//!     balance: i64,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let text = std::fs::read_to_string("windlass.toml")?;
//!     let config = Config::parse(&text, |name| std::env::var(name).ok())?;
//!     let engine = Engine::builder(config)
//!         .handler("add_interest", |account: Account, _context| async move {
//!             Ok(Outcome::set("balance", account.balance + account.balance / 100))
//!         })
//!         .connect()
//!         .await?;
//!     let job = engine.run(Request::new("ADD_INTEREST")).await?;
//!     println!("{}: {} processed", job.status, job.items.processed);
//!     Ok(())
//! }
//! ```

pub use windlass_connectors::{Emitted, EmittedCursor, Relayed, Waiting, outbox};
pub use windlass_core::{
    Change, ChunkCounts, ChunkStatus, Claims, Config, Counts, DeadLetterStatus, Identity, Insert,
    ItemCounts, ItemError, Job, JobId, JobStatus, JobType, Key, Outcome, Problem, Record, Request,
    Retention, Secret, Value,
};
pub use windlass_engine::{
    AfterRestore, Audit, Builder, Checked, Drift, DryRun, Engine, EngineError, Handle, ItemContext,
    Options, Pruned, Redriven, Result, Sample, Scheduled, Step, StepBatch, StepError, StepItem,
    Verdict, Worker, WorkerStats, step_problem,
};
pub use windlass_server::{Server, ServerError};
pub use windlass_store::{
    ChunkRow, Control, DeadLetter, DeadLetterFilter, JobFilter, Submitted, WorkerRow,
};
