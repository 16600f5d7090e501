//! Dead letters: items that failed for good.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value as Json;
use std::time::Duration;
use uuid::Uuid;
use windlass_core::{DeadLetterStatus, JobId};

/// A dead letter.
///
/// ```
/// use windlass_store::DeadLetter;
///
/// fn line(letter: &DeadLetter) -> String {
///     format!("{} {}: {}", letter.job_type, letter.key, letter.error)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// Its id.
    pub id: Uuid,
    /// The job of the item. A redrive that fails again updates the same letter.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub job_id: JobId,
    /// The type of the job.
    pub job_type: String,
    /// The chunk of the item.
    pub chunk: i64,
    /// The key of the item, as a request's `ids` writes it.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub key: Json,
    /// The whole record, as it was read.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub record: Json,
    /// The error.
    pub error: String,
    /// The error without the values in it, which errors of one kind have in common.
    pub fingerprint: String,
    /// Details that help to diagnose the error.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub context: Json,
    /// The number of attempts, over all redrives.
    pub attempts: u32,
    /// Its status.
    pub status: DeadLetterStatus,
    /// The job that redrives it, or did last.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Uuid>))]
    pub redrive_job: Option<JobId>,
    /// When the item failed for the first time.
    pub created_at: DateTime<Utc>,
    /// When the letter last changed.
    pub updated_at: DateTime<Utc>,
}

/// A dead letter that is copied from the ledger into the store.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDeadLetter {
    /// The key as text ([`windlass_core::Key::to_text`]).
    pub key: String,
    /// The whole record.
    pub record: Json,
    /// The error.
    pub error: String,
    /// Details that help to diagnose the error.
    pub context: Json,
    /// The number of attempts.
    pub attempts: u32,
}

/// Which dead letters. All given conditions must hold.
///
/// ```
/// use windlass_store::DeadLetterFilter;
///
/// let timeouts = DeadLetterFilter { error: Some("timed out".to_owned()), ..DeadLetterFilter::default() };
/// ```
#[derive(Clone, Debug, Default)]
pub struct DeadLetterFilter {
    /// Only these.
    pub ids: Vec<Uuid>,
    /// Of this job.
    pub job: Option<JobId>,
    /// Of this job type.
    pub job_type: Option<String>,
    /// Of one of these job types.
    pub job_types: Option<Vec<String>>,
    /// Whose error contains this text; case is ignored.
    pub error: Option<String>,
    /// Whose error has this fingerprint.
    pub fingerprint: Option<String>,
    /// With this status.
    pub status: Option<DeadLetterStatus>,
    /// At least this old.
    pub older_than: Option<Duration>,
    /// Of jobs of this submitter.
    pub submitted_by: Option<String>,
    /// Older than this letter, for the next page.
    pub before: Option<Uuid>,
    /// At most this many; zero means 50 for listings and no limit for marking.
    pub limit: u32,
}

/// Dead letters of a job type whose errors differ only in values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterGroup {
    /// The job type.
    pub job_type: String,
    /// The error, if it is the same for all of them; otherwise the fingerprint.
    pub error: String,
    /// The fingerprint ([`windlass_core::error_fingerprint()`]). It selects exactly these letters.
    pub fingerprint: String,
    /// The number of letters.
    pub letters: i64,
    /// When the last of these items failed.
    pub last_at: DateTime<Utc>,
}

/// An original job with dead letters to redrive.
#[derive(Clone, Debug, PartialEq)]
pub struct RedriveRoot {
    /// The job.
    pub job: JobId,
    /// Its type.
    pub job_type: String,
    /// The number of matching letters.
    pub letters: u64,
}
