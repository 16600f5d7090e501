//! The loops that move a record from submit to commit.
//!
//! [`Engine`] is what one process has: the store, the connections, the job types and the handlers.
//! [`Worker`] runs the loops: the loader cuts segments into chunks, the worker claims and fences
//! chunks, the executor works each one under the commit protocol, the heart keeps the leases, and
//! the housekeeper rescues what others left behind. Follow a record: `submit` → `loader` →
//! `worker` → `executor`.

mod alerts;
mod audit;
mod availability;
mod canceller;
mod catalog;
mod client;
mod controls;
mod crew;
mod dependents;
mod dry_run;
mod engine;
mod error;
mod executor;
mod files;
mod health;
mod heart;
mod hold;
mod housekeeper;
mod job;
mod loader;
mod merger;
mod outcomes;
mod pace;
mod part;
mod planner;
mod pruner;
mod redrive;
mod relay;
mod report;
mod restored;
mod result;
mod run;
mod scheduler;
mod seal;
mod settlement;
mod statement;
mod step;
mod stop;
mod submit;
mod timetable;
mod trial;
mod worker;

pub use audit::{Audit, Drift, Verdict};
pub use client::client;
pub use crew::Tally;
pub use dependents::{Dependencies, Due};
pub use dry_run::{DryRun, Sample};
pub use engine::{Builder, Engine};
pub use error::{EngineError, Result};
pub use pruner::Pruned;
pub use redrive::{Caller, Redriven};
pub use restored::AfterRestore;
pub use result::JobResult;
pub use scheduler::SCHEDULER;
pub use step::{ItemContext, Step, StepBatch, StepError, StepItem, Steps};
pub use submit::{Checked, step_problem};
pub use timetable::Scheduled;
pub use worker::{Handle, Options, Worker};
