//! The loops that move a record from submit to commit.
//!
//! [`Engine`] is what one process has: the store, the connections, the job types and the handlers.
//! [`Worker`] runs the loops: the loader cuts segments into chunks, the worker claims and fences
//! chunks, the executor works each one under the commit protocol, the heartbeat keeps the leases, and
//! the housekeeper rescues what others left behind. Follow a record: `submit` → `loader` →
//! `worker` → `executor`.

mod background;
mod engine;
mod error;
mod execute;
mod http_client;
mod job_context;
mod merge;
mod operate;
mod plan;
mod shutdown;
mod step;
mod submit;

pub use engine::{Builder, Engine};
pub use error::{EngineError, Result};
pub use execute::slots::WorkerStats;
pub use execute::worker::{Handle, Options, Worker};
pub use http_client::client;
pub use merge::job_result::JobResult;
pub use operate::after_restore::AfterRestore;
pub use operate::audit::{Audit, Drift, Verdict};
pub use operate::retention::Pruned;
pub use step::{ItemContext, JobDefinition, Step, StepBatch, StepError, StepItem, Steps};
pub use submit::dependents::{Dependencies, DueJob};
pub use submit::dry_run::{DryRun, Sample};
pub use submit::redrive::{Caller, Redriven};
pub use submit::schedule_view::Scheduled;
pub use submit::scheduler::SCHEDULER;
pub use submit::{Checked, step_problem};
