//! Who asked for a job, and what of the source they may reach.

use crate::{Secret, Value};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The verified claims of a submitter. A claim with several values means any of them.
pub type Claims = BTreeMap<String, Vec<Value>>;

/// The identity a job keeps: it filters every scan, retry and redrive of the job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The submitter's name, shown as `submittedBy`.
    pub name: String,
    /// The claims that `source.claims` turns into a row filter.
    #[serde(default)]
    pub claims: Claims,
    /// When the token that they came from is no longer good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<DateTime<Utc>>,
    /// The submitter's own token, as long as the request is at the door.
    #[serde(skip)]
    pub token: Option<Secret>,
    /// The same, sealed, for jobs that forward it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_token: Option<String>,
}
