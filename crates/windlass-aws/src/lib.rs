//! The serverless form: AWS's own queue, table and functions, and no store of ours at all.
//!
//! [`Start`] plans a job and puts a message for each record on a queue; [`Process`] takes messages
//! and works their records. Both are Lambda functions (`lambda.rs`, and the two binaries), and both
//! run without Lambda: [`Start::load_all`] fills a queue from anywhere, [`Worker`] polls it, and
//! [`dead_letters`] lists, redrives and deletes what failed.
//!
//! Once per job costs one write per record: the record itself remembers the last jobs that were
//! done to it, in the same conditional write as what the job changes (`windlass-connectors/src/dynamodb/records.rs`).

mod batch_stats;
mod batch_tracker;
pub mod dead_letters;
mod error;
mod events;
mod invocation;
pub mod lambda;
mod message;
mod page;
mod process;
mod queue;
mod settings;
mod sources;
mod start;
mod state;
mod worker;

pub use batch_stats::BatchStats;
pub use error::{Error, Result};
pub use events::{DETAIL_TYPE, Events, SOURCE};
pub use invocation::Invocation;
pub use message::{Delivery, Message};
pub use process::Process;
pub use queue::{Queue, Received};
pub use settings::{config, environment, processing_enabled};
pub use start::{Loaded, Start};
pub use state::State;
pub use windlass_connectors::dynamodb::JOBS;
pub use windlass_core::Config;
pub use windlass_engine::Steps;
pub use worker::{Worker, WorkerHandle};
