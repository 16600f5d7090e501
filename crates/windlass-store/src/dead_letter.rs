//! Dead letters: items that failed for good.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value as Json;
use std::time::Duration;
use uuid::Uuid;
use windlass_core::{DeadLetterStatus, JobId};

/// A dead letter as people see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// Its id.
    pub id: Uuid,
    /// The job whose item it is. A redrive that fails again updates the same letter.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub job_id: JobId,
    /// The job's type.
    pub job_type: String,
    /// The chunk it fell out of.
    pub chunk: i64,
    /// The item's key, as a request's `ids` writes it.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub key: Json,
    /// The whole record as it was read.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub record: Json,
    /// What went wrong.
    pub error: String,
    /// The same without the values in it: what errors of one kind have in common.
    pub fingerprint: String,
    /// What helps to understand it.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub context: Json,
    /// How often it was tried, over all redrives.
    pub attempts: u32,
    /// What became of it.
    pub status: DeadLetterStatus,
    /// The job that redrives it, or did last.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Uuid>))]
    pub redrive_job: Option<JobId>,
    /// When it died first.
    pub created_at: DateTime<Utc>,
    /// When something last happened to it.
    pub updated_at: DateTime<Utc>,
}

/// A dead letter on its way from the ledger into the store.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDeadLetter {
    /// The key's text ([`windlass_core::Key::to_text`]).
    pub key: String,
    /// The whole record.
    pub record: Json,
    /// What went wrong.
    pub error: String,
    /// What helps to understand it.
    pub context: Json,
    /// How often it was tried.
    pub attempts: u32,
}

/// Which letters. Everything given must hold.
#[derive(Clone, Debug, Default)]
pub struct DeadLetterFilter {
    /// Exactly these.
    pub ids: Vec<Uuid>,
    /// Of this job.
    pub job: Option<JobId>,
    /// Of this job type.
    pub job_type: Option<String>,
    /// Of one of these job types.
    pub job_types: Option<Vec<String>>,
    /// Whose error contains this, whatever the case.
    pub error: Option<String>,
    /// Whose error has this fingerprint.
    pub fingerprint: Option<String>,
    /// In this status.
    pub status: Option<DeadLetterStatus>,
    /// At least this old.
    pub older_than: Option<Duration>,
    /// Of jobs that this one submitted.
    pub submitted_by: Option<String>,
    /// Older than this letter, for the next page.
    pub before: Option<Uuid>,
    /// At most so many; zero means 50 for listings and no limit for marking.
    pub limit: u32,
}

/// An original job with letters to redrive.
#[derive(Clone, Debug, PartialEq)]
pub struct RedriveRoot {
    /// The job.
    pub job: JobId,
    /// Its type.
    pub job_type: String,
    /// How many letters match.
    pub letters: u64,
}
