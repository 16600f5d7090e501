//! The outbox: applications put requests there in transactions of their own, and the relay submits
//! them. [`enqueue`] is the application's side, [`Outbox`] the relay's.

mod enqueue;

pub use enqueue::{Enqueue, EnqueueError, Entry, enqueue};

use crate::{DataError, Result};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::Duration;
use windlass_core::JobId;

/// The outbox of a database, as the relay and those who look see it.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Makes the table where it is missing, and what applications call.
    async fn prepare(&self) -> Result<()>;
    /// The statements [`Outbox::prepare`] runs, with the privileges that are needed.
    fn ddl(&self) -> &'static str;
    /// Takes rows that are due, oldest first, gives each to the door, and removes those that became
    /// jobs. A row that was given to the door and not removed is given to it again, under the same id.
    async fn relay(&self, door: &dyn Submitter) -> Result<Relayed>;
    /// What waits, oldest first; none where there is no table.
    async fn waiting(&self, limit: u32) -> Result<Option<Vec<Waiting>>>;
    /// Waits until something may have come, at most so long.
    async fn changed(&self, at_most: Duration);
}

/// Where the relay submits a request.
#[async_trait]
pub trait Submitter: Send + Sync {
    /// Submits a request under its id. The same id again is the same job.
    async fn submit(&self, given: OutboxRow) -> SubmitResult;
}

/// A row of the outbox on its way to the door.
#[derive(Clone, Debug)]
pub struct OutboxRow {
    /// The id that its job will have.
    pub id: JobId,
    /// The job type.
    pub job_type: String,
    /// The request as JSON, with the submitter's claims and without the job type.
    pub request: String,
    /// Why it was refused last.
    pub error: Option<String>,
}

/// What the door says to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitResult {
    /// There is a job.
    Taken,
    /// There can be none as things are.
    Refused(String),
    /// Nothing can be submitted at the moment, whatever it is.
    Away(String),
}

/// What one go of the relay came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relayed {
    /// Rows that became jobs.
    pub taken: u64,
    /// Rows that were refused and stay.
    pub refused: u64,
    /// Why it stopped before the end.
    pub away: Option<String>,
    /// Whether there may be more.
    pub more: bool,
}

/// A row of the outbox that waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// The id that its job will have.
    pub id: JobId,
    /// The job type.
    pub job_type: String,
    /// When it came.
    pub created_at: DateTime<Utc>,
    /// How often it was refused.
    pub attempts: u32,
    /// Why it was refused last.
    pub error: Option<String>,
    /// When it is tried again.
    pub next_at: DateTime<Utc>,
}

/// Rows taken at once. Their requests are read one by one.
pub(crate) const BATCH: u32 = 100;

/// A row that is due.
pub(crate) struct Due {
    pub(crate) id: JobId,
    pub(crate) attempts: u32,
    pub(crate) error: Option<String>,
}

/// What the door said to the rows of a batch so far.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) taken: Vec<JobId>,
    pub(crate) refused: Vec<(JobId, String, Duration)>,
    away: Option<String>,
}

impl Answers {
    /// Keeps what the door said to a row; where it is away, the rest of the batch waits.
    pub(crate) fn keep(&mut self, due: &Due, answer: SubmitResult) -> ControlFlow<()> {
        match answer {
            SubmitResult::Taken => self.taken.push(due.id),
            SubmitResult::Refused(error) => {
                // No database takes a NUL character in a text.
                let error = error.replace('\0', "\u{fffd}");
                self.refused.push((due.id, error, wait_after(due.attempts.saturating_add(1))));
            }
            SubmitResult::Away(why) => {
                self.away = Some(why);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// The result of a batch of this many rows, with the rows that could not be settled.
    pub(crate) fn relayed(self, rows: usize, unsettled: Unsettled) -> Relayed {
        let away = self.away.or(unsettled.0);
        Relayed {
            taken: self.taken.len() as u64,
            refused: self.refused.len() as u64,
            more: away.is_none() && rows == BATCH as usize,
            away,
        }
    }
}

/// Why a row could not be removed or updated after its request was answered. The other rows of the
/// batch are settled all the same; this one is submitted again, as the same job.
#[derive(Default)]
pub(crate) struct Unsettled(Option<String>);

impl Unsettled {
    pub(crate) fn add(&mut self, row: JobId, error: &DataError) {
        self.0 = Some(format!("row {row} of the outbox cannot be changed: {error}"));
    }
}

/// How long a row waits after it was refused so often: from a second to a minute.
fn wait_after(attempts: u32) -> Duration {
    Duration::from_secs(1 << attempts.saturating_sub(1).min(6)).min(Duration::from_secs(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_refused_waits_longer_and_longer_up_to_a_minute() {
        let waits = [1, 2, 6, 7, 8, u32::MAX].map(|n| wait_after(n).as_secs());
        assert_eq!(waits, [1, 2, 32, 60, 60, 60]);
    }
}
