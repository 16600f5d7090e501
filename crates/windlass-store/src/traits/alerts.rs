//! Table `windlass_alerts`: alerts and their delivery.

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::{AlertKind, Delivery};

use crate::{Alert, AlertFilter, DeliveryAttempt, NewAlert, Occurrence, Result, Unleasable};

/// Raises alerts and tracks their delivery.
#[async_trait]
pub trait AlertStore: Send + Sync {
    /// Raises an alert, unless the same alert is raised already. A condition that must hold for some
    /// time is only recorded at first. Returns true when this call raised the alert.
    async fn raise_alert(&self, alert: &NewAlert) -> Result<bool>;
    /// Lists the subjects and thresholds of conditions of this kind that are recorded or raised.
    async fn open_alerts(&self, kind: AlertKind) -> Result<Vec<(String, i64)>>;
    /// Ends a condition with a reason. If the alert was raised and is posted, its end is posted too.
    /// When the condition occurs again, a new alert is raised. Returns true when this call ended a raised
    /// alert.
    async fn clear_alert(&self, kind: AlertKind, subject: &str, reason: &str) -> Result<bool>;
    /// Records that a person has seen an alert. Returns false when there is no such alert, or it was
    /// acknowledged before.
    async fn acknowledge_alert(&self, id: Uuid, by: &str) -> Result<bool>;
    /// Whether a job type is no longer suspended: a chunk or a job of this type completed after the
    /// suspension, or no job of this type can run.
    async fn has_recovered(&self, job_type: &str) -> Result<bool>;
    /// Lists jobs that failed or exceeded their budget within this time and have no alert for it
    /// yet, oldest first.
    async fn occurrences(&self, within: Duration, limit: u32) -> Result<Vec<Occurrence>>;
    /// Lists waiting work that no running process can lease, by job type.
    async fn unleasable(&self) -> Result<Vec<Unleasable>>;
    /// Leases an alert that is due for delivery, for the length of the lease, and counts an attempt.
    async fn lease_alert(&self, lease: Duration) -> Result<Option<Alert>>;
    /// Records the result of a delivery attempt. Returns the delivery status, or `None` when a later
    /// attempt has begun meanwhile.
    async fn settle_alert(&self, attempt: DeliveryAttempt) -> Result<Option<Delivery>>;
    /// Lists alerts, newest first.
    async fn alerts(&self, filter: &AlertFilter) -> Result<Vec<Alert>>;
    /// Deletes alerts older than this, except those that still hold or are being delivered. Returns
    /// their number.
    async fn remove_alerts(&self, age: Duration) -> Result<u64>;
}
