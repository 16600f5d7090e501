//! The state of Windlass: jobs, segments, chunks and dead letters, in SQLite or PostgreSQL.
//!
//! [`Store`] is composed of small traits, one per table or role. `postgres/` and `sqlite/` implement
//! each of them in a file of the same name. Their SQL statements are in `queries/`, and one
//! conformance suite runs against both.

// The two backends use every shared function between them; a build with one of them leaves some unused.
#![cfg_attr(
    not(all(feature = "postgres", feature = "sqlite")),
    allow(dead_code, unreachable_code, unused_imports, unused_macros)
)]

mod alert;
mod chunk;
mod connect;
mod control;
mod dead_letter;
mod dependency;
mod dependency_rules;
mod error;
mod fields;
mod job;
mod lease;
mod migrations;
mod part;
#[cfg(feature = "postgres")]
mod postgres;
mod read_snapshot;
mod rows;
mod schedule;
mod segment;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stats;
mod subscription;
mod topics;
mod traits;
mod transitions;
mod values;

pub use alert::{Alert, AlertFilter, DeliveryAttempt, NewAlert, Occurrence, Unleasable};
pub use chunk::{ChunkOutcome, ChunkRow, LeasedChunk, NewChunk, Progress, Split};
pub use connect::{connect, connect_with};
pub use control::{
    AS_DEFINED, Control, EVERYTHING, OrphanedLeases, SilentWorker, UNLIMITED, WorkerRow,
    connection_subject,
};
pub use dead_letter::{DeadLetter, DeadLetterFilter, DeadLetterGroup, NewDeadLetter, RedriveRoot};
pub use dependency::{JoinPointRow, LinkedJob, Trigger};
pub use error::{Result, StoreError};
pub use job::{JobCommand, JobFilter, JobSnapshot, NewJob, OldJobs, Owner, Submitted};
pub use lease::{Capabilities, HandBack, Lease, LeaseRenewal, LeaseStatus, SegmentLease};
pub use part::{MERGED, NewPart, PartRow, REPLACED, REPORT};
pub use read_snapshot::{LostReadSnapshot, NewReadSnapshot, ReadSnapshotRow};
pub use schedule::ScheduleRow;
pub use segment::{CompletePlan, LeasedSegment, NewSegment, Page, SegmentRow};
pub use stats::{ChunkBucket, Depth, DurationBucket, HourlyJobs, Losses, Stats, ThroughputBucket};
pub use subscription::Subscription;
pub use topics::Topics;
pub use traits::{
    AlertStore, CancellationStore, ChangeStore, ChunkStore, ConnectionShare, ConnectionShareStore,
    ControlStore, DeadLetterStore, DependencyStore, HistoryStore, JobStore, LeaseStore,
    LifecycleStore, PartStore, ReadSnapshotStore, RetentionStore, ScheduleStore, SchemaStore,
    SegmentStore, StatsStore, TakenConnections, WorkerStore,
};

/// The whole store.
///
/// Three rules hold for every method. A change of a chunk or segment checks the expected status,
/// epoch and nonce. All times are those of the database's clock. Locks are taken in the order job,
/// segment, chunk.
///
/// ```
/// # async fn example() -> windlass_store::Result<()> {
/// let store = windlass_store::connect("sqlite:windlass.db").await?;
/// store.migrate().await?;
/// let newest = store.jobs(&windlass_store::JobFilter::default()).await?;
/// # let _ = newest;
/// # Ok(())
/// # }
/// ```
pub trait Store:
    SchemaStore
    + JobStore
    + LifecycleStore
    + CancellationStore
    + SegmentStore
    + ChunkStore
    + LeaseStore
    + PartStore
    + ReadSnapshotStore
    + DeadLetterStore
    + ControlStore
    + WorkerStore
    + ConnectionShareStore
    + ScheduleStore
    + DependencyStore
    + AlertStore
    + RetentionStore
    + StatsStore
    + HistoryStore
    + ChangeStore
{
}

#[cfg(feature = "postgres")]
impl Store for postgres::PostgresStore {}
#[cfg(feature = "sqlite")]
impl Store for sqlite::SqliteStore {}
