//! Dependencies as the store keeps them.

use chrono::{DateTime, Utc};
use serde::Serialize;
use windlass_core::{Dependency, Identity, JobId, JobStatus, JoinPoint, Request};

/// A job in the graph of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Linked {
    /// The job.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub id: JobId,
    /// Its type.
    pub job_type: String,
    /// Where it is in its life.
    pub status: JobStatus,
    /// Who asked for it.
    pub submitted_by: String,
    /// The jobs it comes after.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Uuid>))]
    pub after: Vec<JobId>,
}

/// The parents of a rule that have ended for some values, while others are missing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = JoinPoint))]
#[serde(rename_all = "camelCase")]
pub struct JoinPointRow {
    /// The rule, as it was when they were submitted.
    pub rule: Dependency,
    /// What they have in common: `match` and `claims`.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub agreed: serde_json::Value,
    /// Who is here, by job type.
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, windlass_core::JoinArrival>))]
    pub arrived: JoinPoint,
    /// When the last one came.
    pub updated_at: DateTime<Utc>,
}

/// A job that is to be submitted, since the parents of a rule have ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// The id that the job will have.
    pub id: JobId,
    /// Its request.
    pub request: Request,
    /// Whom it is submitted for: the submitter of the parent that ended last.
    pub identity: Identity,
    /// The root of that parent, for which a token in the identity is sealed.
    pub root: JobId,
    /// How often it was refused.
    pub attempts: i64,
    /// Why.
    pub error: Option<String>,
}
