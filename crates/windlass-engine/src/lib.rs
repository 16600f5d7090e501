//! The engine: everything that happens to a record from the request to the commit.
//!
//! [`Engine`] has the store, the connections, the job types and the handlers of one process. [`Worker`] runs
//! jobs. Follow a record through the folders: `submit` turns a request into a job, `plan` splits its
//! segments into chunks, `execute` leases each chunk and runs its `step` under the commit protocol, `merge`
//! makes the result of the parts, and `operate` has cancellation, retention, alerts and the audit.

mod background;
mod engine;
mod error;
mod execute;
mod http_client;
mod job_context;
mod merge;
mod operate;
mod plan;
mod quiet;
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
pub use operate::files::{FileContent, JobFile};
pub use operate::retention::Pruned;
pub use quiet::Pause;
pub use step::{ItemContext, JobDefinition, Step, StepBatch, StepError, StepItem, Steps};
pub use submit::dependents::{Dependencies, DueJob};
pub use submit::dry_run::{DryRun, Sample};
pub use submit::redrive::{Caller, Redriven};
pub use submit::schedule_view::Scheduled;
pub use submit::scheduler::SCHEDULER;
pub use submit::{Checked, step_problem};
