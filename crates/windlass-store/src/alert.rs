//! Alerts: what went wrong, once per occurrence, and how telling it stands.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value as Json;
use std::time::Duration;
use uuid::Uuid;
use windlass_core::{AlertKind, Delivery, JobId};

/// An alert as people see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Alert {
    /// Its id, the same however often it is posted.
    pub id: Uuid,
    /// What it is about.
    pub kind: AlertKind,
    /// The job type.
    pub job_type: String,
    /// The job, where it is about one.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Uuid>))]
    pub job_id: Option<JobId>,
    /// What happened.
    pub message: String,
    /// Numbers and times that help, by kind.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Map<String, serde_json::Value>))]
    pub details: Json,
    /// When it was raised.
    pub at: DateTime<Utc>,
    /// When the condition it is about did not hold any more.
    pub cleared_at: Option<DateTime<Utc>>,
    /// How its delivery stands.
    pub delivery: Delivery,
    /// How often it was posted.
    pub attempts: u32,
    /// When it is posted next.
    pub next_at: Option<DateTime<Utc>>,
    /// When the receiver took it.
    pub delivered_at: Option<DateTime<Utc>>,
    /// Why it could not be posted last time.
    pub error: Option<String>,
}

/// An alert to raise.
#[derive(Clone, Debug)]
pub struct NewAlert {
    /// What it is about.
    pub kind: AlertKind,
    /// Which occurrence of that: raised once, whoever finds it and however often. That of a
    /// condition is free again once the condition is over.
    pub subject: String,
    /// The job type.
    pub job_type: String,
    /// The job and who submitted it, where it is about one.
    pub job: Option<(JobId, String)>,
    /// What happened.
    pub message: String,
    /// Numbers and times that help.
    pub details: Json,
    /// Of a condition: it is over when its number is not above this.
    pub above: Option<i64>,
    /// Of a condition: it is raised when it has held for so long.
    pub after: Duration,
    /// Whether it is to be posted.
    pub post: bool,
}

/// A job of which an alert is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// What happened to it.
    pub kind: AlertKind,
    /// The alert's subject.
    pub subject: String,
    /// The job.
    pub job: JobId,
    /// Its type.
    pub job_type: String,
    /// Who submitted it.
    pub submitted_by: String,
    /// When it happened.
    pub at: DateTime<Utc>,
    /// What the job says of it, if it has not gone on since.
    pub error: Option<String>,
}

/// Work that no process can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unclaimable {
    /// The job type.
    pub job_type: String,
    /// How many of its jobs wait.
    pub jobs: i64,
    /// The connection that a process would need.
    pub connection: String,
    /// The handler that it would need.
    pub handler: Option<String>,
}

/// Which alerts to list.
#[derive(Clone, Debug, Default)]
pub struct AlertFilter {
    /// About one of these job types, or jobs of them.
    pub job_types: Option<Vec<String>>,
    /// About jobs that this one submitted.
    pub submitted_by: Option<String>,
    /// Older than this alert, for the next page.
    pub before: Option<Uuid>,
    /// At most so many; zero means 50.
    pub limit: u32,
}

/// A condition that nobody has looked at for so long is watched anew: it may have been over.
pub(crate) const UNSEEN: Duration = Duration::from_secs(60);
