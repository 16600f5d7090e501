//! Dependencies between jobs.

use chrono::{DateTime, Utc};
use serde::Serialize;
use windlass_core::{Dependency, Identity, JobId, JobStatus, JoinPoint, Request};

/// A job in the dependency graph of another job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LinkedJob {
    /// The job.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub id: JobId,
    /// Its type.
    pub job_type: String,
    /// Its status.
    pub status: JobStatus,
    /// The name of the submitter.
    pub submitted_by: String,
    /// The jobs that it runs after.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Uuid>))]
    pub after: Vec<JobId>,
}

/// A dependency of which some parents have ended, for certain values, and others have not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = JoinPoint))]
#[serde(rename_all = "camelCase")]
pub struct JoinPointRow {
    /// The dependency, as it was defined when the parents were submitted.
    pub rule: Dependency,
    /// The values that the parents have in common: `match` and `claims`.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub agreed: serde_json::Value,
    /// The parents that have ended, by job type.
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, windlass_core::JoinArrival>))]
    pub arrived: JoinPoint,
    /// When the last of them ended.
    pub updated_at: DateTime<Utc>,
}

/// A job that is to be submitted because the parents of a dependency have ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// The id that the job will have.
    pub id: JobId,
    /// Its request.
    pub request: Request,
    /// Its identity: that of the parent that ended last.
    pub identity: Identity,
    /// The root of that parent. A token in the identity is sealed for it.
    pub root: JobId,
    /// How often the submit was refused.
    pub attempts: i64,
    /// Why it was refused.
    pub error: Option<String>,
}
