//! The outbox: applications insert requests in their own transactions, and the relay submits them.
//! [`enqueue`] is the application's side, [`Outbox`] the relay's.

mod enqueue;

pub use enqueue::{Enqueue, EnqueueError, Entry, enqueue};

use crate::{ConnectorError, Result};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::Duration;
use windlass_core::{JobId, JobType};

/// The outbox of a database, for the relay and for inspection.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Creates the tables and the function that applications call, where they are missing, and records what
    /// is checked before the application commits.
    async fn prepare(&self, types: &[OutboxType]) -> Result<()>;
    /// The statements that [`Outbox::prepare`] runs, with the necessary privileges.
    fn ddl(&self) -> &'static str;
    /// Submits the due rows, oldest first, and deletes those that became jobs. A row that was submitted
    /// but not deleted is submitted again under the same id.
    async fn relay(&self, submitter: &dyn Submitter) -> Result<Relayed>;
    /// The waiting rows, oldest first. `None` when there is no table.
    async fn waiting(&self, limit: u32) -> Result<Option<Vec<Waiting>>>;
    /// Waits until there may be new rows, at most for this long.
    async fn changed(&self, timeout: Duration);
}

/// What the outbox of a database checks of the requests of a job type, in the application's transaction. What
/// a database cannot check, the relay does.
///
/// ```
/// use serde_json::json;
/// use windlass_connectors::OutboxType;
/// use windlass_core::JobType;
///
/// let job_type = JobType::from_json("RESOLVE", json!({
///     "source": {"connection": "app", "items": true, "key": ["id"], "unit": "fileId"},
///     "step": {"command": ["resolve"]},
/// }))?;
/// let checked = OutboxType::of(&job_type);
/// assert_eq!((checked.list.as_deref(), checked.unit.as_deref()), (Some("items"), Some("fileId")));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboxType {
    /// The job type.
    pub job_type: String,
    /// The field of a request that holds the items, if its requests have any.
    pub list: Option<String>,
    /// The field that must have the same value in all items of a request.
    pub unit: Option<String>,
}

impl OutboxType {
    /// What is checked of the requests of this job type.
    pub fn of(job_type: &JobType) -> OutboxType {
        let list = job_type.source.items.then(|| job_type.items_field().to_owned());
        // SQLite has no way to write a quote in the path to a JSON field.
        let unit = job_type.source.unit.clone().filter(|unit| !unit.contains('"'));
        OutboxType { job_type: job_type.name.clone(), list, unit }
    }
}

/// Submits requests for the relay.
#[async_trait]
pub trait Submitter: Send + Sync {
    /// Submits a request under its id. Submitting the same id again gives the same job.
    async fn submit(&self, row: OutboxRow) -> SubmitResult;
}

/// A row of the outbox that is being submitted.
#[derive(Clone, Debug)]
pub struct OutboxRow {
    /// The id that its job will have.
    pub id: JobId,
    /// The job type.
    pub job_type: String,
    /// The request as JSON, with the submitter's claims and without the job type.
    pub request: String,
    /// The error of its last refusal.
    pub error: Option<String>,
}

/// The result of submitting a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitResult {
    /// The request became a job, or needs none because it has no items.
    Submitted,
    /// The request is invalid as things are.
    Refused(String),
    /// No request can be submitted at the moment.
    Unavailable(String),
}

/// The result of one pass of the relay.
///
/// ```
/// use windlass_connectors::Relayed;
///
/// let relayed = Relayed::default();
/// assert!(relayed.submitted == 0 && !relayed.more);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Relayed {
    /// Rows that became jobs, or had no items, and were deleted.
    pub submitted: u64,
    /// Rows that were refused and stay in the outbox.
    pub refused: u64,
    /// Why it stopped early.
    pub unavailable: Option<String>,
    /// Whether there may be more due rows.
    pub more: bool,
}

/// A waiting row of the outbox.
///
/// ```
/// use windlass_connectors::Waiting;
///
/// fn why(row: &Waiting) -> &str {
///     row.error.as_deref().unwrap_or("waiting for a relay")
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Waiting {
    /// The id that its job will have.
    pub id: JobId,
    /// The job type.
    pub job_type: String,
    /// When it was inserted.
    pub created_at: DateTime<Utc>,
    /// How often it was refused.
    pub attempts: u32,
    /// The error of its last refusal.
    pub error: Option<String>,
    /// When it will be submitted again.
    pub next_at: DateTime<Utc>,
}

/// The most rows of one pass. Their requests are read one by one.
pub(crate) const MAX_ROWS: u32 = 100;

/// A due row.
pub(crate) struct DueRow {
    pub(crate) id: JobId,
    pub(crate) attempts: u32,
    pub(crate) error: Option<String>,
}

/// The results of the submitted rows of a pass.
#[derive(Default)]
pub(crate) struct RelayResults {
    pub(crate) submitted: Vec<JobId>,
    pub(crate) refused: Vec<(JobId, String, Duration)>,
    unavailable: Option<String>,
}

impl RelayResults {
    /// Records the result of a row. Breaks when nothing can be submitted.
    pub(crate) fn record(&mut self, due: &DueRow, result: SubmitResult) -> ControlFlow<()> {
        match result {
            SubmitResult::Submitted => self.submitted.push(due.id),
            SubmitResult::Refused(error) => {
                // PostgreSQL accepts no NUL character in a text.
                let error = error.replace('\0', "\u{fffd}");
                self.refused.push((due.id, error, retry_delay(due.attempts.saturating_add(1))));
            }
            SubmitResult::Unavailable(why) => {
                self.unavailable = Some(why);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// The result of a pass over this many rows, with those that could not be updated.
    pub(crate) fn relayed(self, rows: usize, failures: RowFailures) -> Relayed {
        let unavailable = self.unavailable.or(failures.0);
        Relayed {
            submitted: self.submitted.len() as u64,
            refused: self.refused.len() as u64,
            more: unavailable.is_none() && rows == MAX_ROWS as usize,
            unavailable,
        }
    }
}

/// Why a row could not be deleted or updated after it was submitted. It does not affect the other rows.
/// The row is submitted again, as the same job.
#[derive(Default)]
pub(crate) struct RowFailures(Option<String>);

impl RowFailures {
    pub(crate) fn add(&mut self, row: JobId, error: &ConnectorError) {
        self.0 = Some(format!("row {row} of the outbox cannot be updated: {error}"));
    }
}

/// The delay after this many refusals: from a second to a minute.
fn retry_delay(attempts: u32) -> Duration {
    Duration::from_secs(1 << attempts.saturating_sub(1).min(6)).min(Duration::from_secs(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_delay_doubles_up_to_a_minute() {
        let waits = [1, 2, 6, 7, 8, u32::MAX].map(|n| retry_delay(n).as_secs());
        assert_eq!(waits, [1, 2, 32, 60, 60, 60]);
    }
}
