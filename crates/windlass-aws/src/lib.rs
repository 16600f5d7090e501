//! Windlass without a store: jobs run on an AWS queue, a DynamoDB table and Lambda functions.
//!
//! [`Start`] plans a job and sends the keys of its records as messages to a queue. [`Process`] receives messages
//! and processes their records. Both are Lambda functions (`lambda.rs` and the binaries), and both run without Lambda too:
//! [`Start::enqueue_all`] fills a queue from any process, [`Worker`] polls it, and [`dead_letters`] manages failed
//! messages.
//!
//! [`Fleet`] is a third function, for job types that have a store and a SQL source: each invocation works chunks of one
//! job, as `windlass worker --job` does.
//!
//! Each record is processed once per job at the cost of one write: the record stores the last jobs that processed
//! it, in the same conditional write as its changes (`windlass-connectors/src/dynamodb/records.rs`).

mod batch_stats;
mod batch_tracker;
mod completion;
mod counting;
mod dead_letter_queue;
pub mod dead_letters;
mod error;
mod events;
mod fleet;
mod invocation;
pub mod lambda;
mod message;
mod page;
mod planning;
mod process;
mod queue;
mod settings;
mod sources;
mod start;
mod state;
mod worker;

pub use batch_stats::BatchStats;
pub use completion::{JobState, job_progress};
pub use dead_letter_queue::DeadLetterQueue;
pub use error::{Error, Result};
pub use events::{COMPLETED_TYPE, DETAIL_TYPE, Events, SOURCE};
pub use fleet::{Fleet, FleetAnswer, TimeLimit};
pub use invocation::Invocation;
pub use message::{Delivery, Message};
pub use process::Process;
pub use queue::{Queue, Received};
pub use settings::{Secrets, config, config_with, environment, processing_enabled, secrets};
pub use start::{Enqueued, Start};
pub use state::State;
pub use windlass_connectors::dynamodb::{JOBS, JobPlan, JobProgress};
pub use windlass_core::Config;
pub use windlass_engine::Steps;
pub use worker::{MAX_BATCH_SIZE, Worker, WorkerHandle};
