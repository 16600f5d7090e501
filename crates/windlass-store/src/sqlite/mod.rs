//! The store in a SQLite file. `postgres/` has the same files for the same things.

mod advance;
mod alerts;
mod chunks;
mod controls;
mod dead_letters;
mod dependencies;
mod history;
mod jobs;
mod leases;
mod lifecycle;
mod listener;
mod migrate;
mod parts;
mod queries;
mod retention;
mod schedules;
mod segments;
mod summaries;
mod transaction;

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;
use windlass_core::{AlertKind, ChunkStatus, DeadLetterStatus, Delivery, Job, JobId, JobStatus};
use windlass_drivers::Sqlite;

use self::listener::ChangePoller;
use crate::change_notifier::ChangeNotifier;
use crate::door::door;
use crate::transitions::{Ending, Steering};
use crate::{
    Alert, AlertFilter, Capabilities, ChunkBucket, ChunkRow, ClaimedChunk, ClaimedSegment, Control,
    DeadLetter, DeadLetterFilter, DeadLetterGroup, DurationBucket, HourlyJobs, JobFilter,
    JobSnapshot, JoinPointRow, Kept, Lease, LeaseRenewal, Linked, NewAlert, NewDeadLetter, NewJob,
    NewPart, Occurrence, Owner, Page, PartRow, Progress, RedriveRoot, Result, ScheduleRow,
    SegmentLease, SegmentRow, Standing, Stats, Submitted, ThroughputBucket, Trigger, Unclaimable,
    WorkerRow,
};

/// A store in a SQLite file, shared by the processes of one machine. Everything that changes it
/// runs alone, inside BEGIN IMMEDIATE, so that no statement here needs a lock of its own.
pub(crate) struct SqliteStore {
    database: Sqlite,
    changes: ChangeNotifier,
    eye: ChangePoller,
}

impl SqliteStore {
    pub(crate) fn new(database: Sqlite) -> SqliteStore {
        let eye = ChangePoller::new(database.path());
        SqliteStore { database, changes: ChangeNotifier::new(), eye }
    }
}

door!(SqliteStore);

/// A statement whose condition on a parameter is plain where the parameter is given. SQLite plans
/// before it knows the values, and would use no index for `?5 IS NULL OR submitter = ?5`.
fn given<T>(sql: &str, value: &Option<T>, parameter: &str) -> String {
    match value {
        Some(_) => sql.replace(&format!("{parameter} IS NULL OR "), ""),
        None => sql.to_owned(),
    }
}

/// The text of a statement in `queries/sqlite`.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/queries/sqlite/", $name, ".sql"))
    };
    ($name:literal, $rest:literal) => {
        concat!(sql!($name), sql!($rest))
    };
}

use sql;
