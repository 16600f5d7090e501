//! Inserts and reads of jobs by many callers at once: inserts share a transaction, and reads share a statement.

use std::collections::HashMap;
use std::sync::Arc;

use windlass_core::{Job, JobId};
use windlass_drivers::{CallGroups, Error, ErrorClass, Row, WaitingCall};

use super::jobs::{params_of, topics};
use super::{PostgresStore, params, sql};
use crate::fields::Fields as _;
use crate::values::JobColumns;
use crate::{JobSnapshot, Result, StoreError, Topics, rows};

/// The calls of this process that wait.
#[derive(Clone)]
pub(super) struct Groups {
    inserts: CallGroups<Arc<JobColumns>, Result<bool>>,
    jobs: CallGroups<JobId, Result<Option<Job>>>,
    snapshots: CallGroups<JobId, Result<Option<JobSnapshot>>>,
}

/// Groups of inserts that run at the same time. Each uses a connection.
const MAX_INSERT_TASKS: usize = 2;
/// Groups of each kind of reads. More, since a read of a job with a million chunks takes a while.
const MAX_READ_TASKS: usize = 4;
/// Calls per group. More would hardly be cheaper, and each call waits for its whole group.
const MAX_CALLS: usize = 30;
/// Fewer, since a request may have megabytes of items.
const MAX_SNAPSHOTS: usize = 8;

impl Default for Groups {
    fn default() -> Groups {
        Groups {
            inserts: CallGroups::new(MAX_INSERT_TASKS, MAX_CALLS),
            jobs: CallGroups::new(MAX_READ_TASKS, MAX_CALLS),
            snapshots: CallGroups::new(MAX_READ_TASKS, MAX_SNAPSHOTS),
        }
    }
}

impl PostgresStore {
    /// Inserts a job without parents. Returns whether its id and its idempotency key were new.
    pub(super) async fn insert(&self, job: Arc<JobColumns>) -> Result<bool> {
        let store = self.clone();
        let run = move |group| store.clone().insert_group(group);
        self.groups.inserts.call(job, run).await.unwrap_or_else(|| Err(aborted()))
    }

    async fn insert_group(self, mut group: Vec<WaitingCall<Arc<JobColumns>, Result<bool>>>) {
        // Other processes may insert jobs with the same keys. Locks in one order do not deadlock.
        group.sort_by(|one, other| lock_order(&one.call).cmp(&lock_order(&other.call)));
        let jobs: Vec<_> = group.iter().map(|waiting| waiting.call.as_ref()).collect();
        match self.insert_all(&jobs, "; SET LOCAL lock_timeout = '1s'").await {
            Ok(inserted) => {
                for (waiting, inserted) in group.into_iter().zip(inserted) {
                    waiting.answer(Ok(inserted));
                }
            }
            Err(error) => {
                // A job that is refused, or whose key another transaction is inserting, must not delay the others.
                tracing::debug!(%error, "failed to insert jobs together; inserting each alone");
                for waiting in group {
                    tokio::spawn(self.clone().insert_alone(waiting));
                }
            }
        }
    }

    /// Inserts a job of a group that failed. If the server has committed the group all the same, the job is not new, and
    /// the caller finds it by its id.
    async fn insert_alone(self, waiting: WaitingCall<Arc<JobColumns>, Result<bool>>) {
        let inserted = self.insert_all(&[&waiting.call], "").await;
        waiting.answer(inserted.map(|inserted| inserted == [true]));
    }

    /// Inserts jobs in one transaction with these additional settings. Returns which of them were new.
    async fn insert_all(&self, jobs: &[&JobColumns], settings: &str) -> Result<Vec<bool>> {
        let params: Vec<_> = jobs.iter().map(|job| params_of(job, 0)).collect();
        let params: Vec<_> = params.iter().map(<[_; _]>::as_slice).collect();
        let inserted = self.for_each_by_key(settings, sql!("insert_job"), &params).await;
        let inserted = inserted.map(|rows| rows.iter().map(|rows| !rows.is_empty()).collect());
        // Also after an error: the connection may be lost although the server has committed.
        let may_be_new = |number| inserted.as_ref().map_or(true, |new: &Vec<bool>| new[number]);
        let changed = jobs.iter().enumerate().filter(|(number, _)| may_be_new(*number));
        let changed = changed.fold(Topics::NONE, |changed, (_, job)| changed | topics(job));
        if changed != Topics::NONE {
            self.signaller.signal(changed).await;
        }
        inserted
    }

    /// Reads a job with its counters.
    pub(super) async fn read_job(&self, id: JobId) -> Result<Option<Job>> {
        let store = self.clone();
        let sql = sql!("show_job", "job_sums");
        let run = move |group| store.clone().read_group(sql, group, rows::job);
        self.groups.jobs.call(id, run).await.unwrap_or_else(|| Err(aborted()))
    }

    /// Reads what a job was submitted with.
    pub(super) async fn read_snapshot(&self, id: JobId) -> Result<Option<JobSnapshot>> {
        let store = self.clone();
        let run = move |group| store.clone().read_group(sql!("snapshots"), group, rows::snapshot);
        self.groups.snapshots.call(id, run).await.unwrap_or_else(|| Err(aborted()))
    }

    async fn read_group<T: Clone>(
        self,
        sql: &str,
        group: Vec<WaitingCall<JobId, Result<Option<T>>>>,
        convert: fn(&Row) -> Result<T>,
    ) {
        let ids: Vec<JobId> = group.iter().map(|waiting| waiting.call).collect();
        let read = self.by_key(sql, params![ids]).await;
        let found = read.and_then(|rows| {
            // A row that cannot be read is an error of its caller only.
            let row = |row: &Row| Ok((row.id("id")?, convert(row)));
            rows.iter().map(row).collect::<Result<HashMap<JobId, _>>>()
        });
        for waiting in group {
            let answer = match &found {
                Ok(found) => found.get(&waiting.call).cloned().transpose(),
                Err(error) => Err(error.clone()),
            };
            waiting.answer(answer);
        }
    }
}

/// Jobs that are inserted in this order lock the limits of their types and their idempotency keys in one order.
fn lock_order(job: &JobColumns) -> (&str, &str, Option<&str>) {
    (&job.job_type, &job.submitter, job.idempotency_key.as_deref())
}

fn aborted() -> StoreError {
    Error::new(ErrorClass::Connection, "the process is shutting down").into()
}
