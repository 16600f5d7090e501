//! Alerts and their delivery.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value as Json;
use std::time::Duration;
use uuid::Uuid;
use windlass_core::{AlertKind, Delivery, JobId};

/// An alert.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Alert {
    /// Its id, the same for every delivery attempt.
    pub id: Uuid,
    /// What it is about.
    pub kind: AlertKind,
    /// The job type.
    pub job_type: String,
    /// The job, if it is about one.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Uuid>))]
    pub job_id: Option<JobId>,
    /// What happened.
    pub message: String,
    /// Numbers and times for the receiver, by kind.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Map<String, serde_json::Value>))]
    pub details: Json,
    /// When it was raised.
    pub at: DateTime<Utc>,
    /// When the condition ended.
    pub cleared_at: Option<DateTime<Utc>>,
    /// What ended the condition.
    pub cleared_reason: Option<String>,
    /// When a person has acknowledged it.
    pub acknowledged_at: Option<DateTime<Utc>>,
    /// Who has acknowledged it.
    pub acknowledged_by: Option<String>,
    /// The status of its delivery.
    pub delivery: Delivery,
    /// The number of delivery attempts.
    pub attempts: u32,
    /// The time of the next delivery attempt.
    pub next_at: Option<DateTime<Utc>>,
    /// When the receiver accepted it.
    pub delivered_at: Option<DateTime<Utc>>,
    /// The error of the last delivery attempt.
    pub error: Option<String>,
}

/// An alert to raise.
#[derive(Clone, Debug)]
pub struct NewAlert {
    /// What it is about.
    pub kind: AlertKind,
    /// The occurrence. Kind and subject together are unique, so that an alert is raised once, even
    /// if several processes detect it. When a condition ends, its subject can be raised again.
    pub subject: String,
    /// The job type.
    pub job_type: String,
    /// The job and its submitter, if it is about one.
    pub job: Option<(JobId, String)>,
    /// What happened.
    pub message: String,
    /// Numbers and times for the receiver.
    pub details: Json,
    /// For a condition: it ends when its number is no longer above this.
    pub threshold: Option<i64>,
    /// For a condition: it is raised when it has lasted this long.
    pub sustained_for: Duration,
    /// Whether it is to be posted.
    pub post: bool,
}

/// A job that needs an alert.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// What happened to it.
    pub kind: AlertKind,
    /// The subject of the alert.
    pub subject: String,
    /// The job.
    pub job: JobId,
    /// Its type.
    pub job_type: String,
    /// The name of the submitter.
    pub submitted_by: String,
    /// When it happened.
    pub at: DateTime<Utc>,
    /// The error of the job, unless it has continued since.
    pub error: Option<String>,
}

/// The result of an attempt to deliver an alert.
#[derive(Clone, Debug)]
pub struct DeliveryAttempt {
    /// The id of the alert.
    pub id: Uuid,
    /// The number of the attempt.
    pub attempts: u32,
    /// Why it failed.
    pub error: Option<String>,
    /// After an error, the alert is posted again after this time.
    pub wait: Duration,
    /// An alert that was raised longer ago than this is not posted again.
    pub give_up_after: Duration,
}

/// Waiting work that no running process can lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unleasable {
    /// The job type.
    pub job_type: String,
    /// The number of waiting jobs.
    pub jobs: i64,
    /// The connection that a process would need.
    pub connection: String,
    /// The handler that a process would need.
    pub handler: Option<String>,
}

/// Which alerts to list. All given conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct AlertFilter {
    /// About one of these job types, or their jobs.
    pub job_types: Option<Vec<String>>,
    /// About jobs of this submitter.
    pub submitted_by: Option<String>,
    /// This alert.
    pub id: Option<Uuid>,
    /// Neither acknowledged nor over.
    pub open: bool,
    /// Older than this alert, for the next page.
    pub before: Option<Uuid>,
    /// At most this many; zero means 50.
    pub limit: u32,
}

/// A condition that was not checked for this long may have ended meanwhile, so its duration is
/// measured anew.
pub(crate) const CONDITION_STALE_AFTER: Duration = Duration::from_secs(60);
