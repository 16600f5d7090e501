//! The domain types of Windlass: no database, no clock, no SQL dialect.
//!
//! The store, the connectors and the engine share these definitions of a job, a chunk, a key range and
//! an outcome. Everything can be tested without a database. The only I/O is [`Config::from_path`].

pub mod backoff;
pub mod budget;
pub mod claims;
pub mod config;
pub mod cursor;
pub mod definition;
pub mod dependency;
pub mod error_fingerprint;
pub mod error_kind;
pub mod fan_in;
pub mod guard;
pub mod inline_items;
pub mod job;
pub mod job_type_builder;
mod json;
pub mod key;
pub mod key_set;
pub mod outcome;
pub mod pagination;
pub mod problem;
pub mod queue;
pub mod record;
pub mod request;
pub mod retention;
pub mod retry;
pub mod schedule;
pub mod secret;
pub mod state;
pub mod step;
pub mod table;
pub mod template;
pub mod value;

pub use backoff::Backoff;
pub use budget::{Budget, Failures, OnExceeded};
pub use claims::{Claims, Identity};
pub use config::Config;
pub use cursor::Cursor;
pub use definition::{ChunkOptions, JobType, Source, Throughput};
pub use dependency::{Dependency, JoinArrival, JoinPoint, OnFailed, Verdict};
pub use error_fingerprint::error_fingerprint;
pub use error_kind::ErrorKind;
pub use fan_in::{Load, Report};
pub use guard::Guard;
pub use job::{ChunkCounts, ChunkId, ItemCounts, Job, JobId};
pub use job_type_builder::JobTypeBuilder;
pub use json::Json;
pub use key::{Key, KeyRange};
pub use key_set::{FilterValue, KeySet, Keys};
pub use outcome::{Change, Counts, Insert, ItemError, Outcome, Row};
pub use pagination::PaginationState;
pub use problem::Problem;
pub use queue::QueueOptions;
pub use record::{Columns, Record};
pub use request::Request;
pub use retention::Retention;
pub use retry::RetryPolicy;
pub use schedule::{Missed, Overlap, Schedule};
pub use secret::Secret;
pub use state::{AlertKind, ChunkStatus, DeadLetterStatus, Delivery, JobStatus, Phase};
pub use step::{Endpoint, Export, OnConflict, Step, StepKind};
pub use table::{Column, ColumnType, Index, Table};
pub use template::{Fragment, Template};
pub use value::{ExactValue, Value};
