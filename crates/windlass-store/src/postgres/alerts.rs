//! Raises alerts and tracks their delivery.

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::{AlertKind, Delivery};
use windlass_drivers::{Param, Row};

use super::{PostgresStore, params, sql, texts};
use crate::control::WORKER_VANISHED_AFTER_MS;
use crate::fields::Fields;
use crate::values::{AlertColumns, clean, list_limit, millis};
use crate::{
    Alert, AlertFilter, AlertStore, DeliveryAttempt, NewAlert, Occurrence, Result, Unleasable, rows,
};

#[async_trait]
impl AlertStore for PostgresStore {
    async fn raise_alert(&self, alert: &NewAlert) -> Result<bool> {
        let alert = AlertColumns::of(alert);
        let params = params![
            alert.id,
            alert.kind,
            &alert.subject,
            &alert.job_type,
            alert.job,
            alert.submitter.as_deref(),
            &alert.message,
            &alert.details,
            alert.threshold,
            alert.sustained_for,
            alert.stale_after,
            alert.delivery,
        ];
        let read = |row: &Row| row.flag("raised");
        Ok(self.read_first(sql!("raise_alert"), params, read).await?.unwrap_or_default())
    }

    async fn open_alerts(&self, kind: AlertKind) -> Result<Vec<(String, i64)>> {
        self.read(sql!(shared "open_alerts"), params![kind.as_str()], rows::condition).await
    }

    async fn clear_alert(&self, kind: AlertKind, subject: &str, reason: &str) -> Result<bool> {
        let of_alert: &[Param<'_>] = params![kind.as_str(), subject];
        let remove = (sql!(shared "remove_condition"), of_alert);
        let params: &[Param<'_>] = params![kind.as_str(), subject, clean(reason)];
        Ok(self.execute_all(&[remove, (sql!("clear_alert"), params)]).await?[1] > 0)
    }

    async fn acknowledge_alert(&self, id: Uuid, by: &str) -> Result<bool> {
        Ok(self.execute(sql!("acknowledge_alert"), params![id, clean(by)]).await? > 0)
    }

    async fn has_recovered(&self, job_type: &str) -> Result<bool> {
        let read = |row: &Row| row.flag("recovered");
        let found = self.read_first(sql!("has_recovered"), params![job_type], read).await?;
        Ok(found.unwrap_or(true))
    }

    async fn occurrences(&self, within: Duration, limit: u32) -> Result<Vec<Occurrence>> {
        self.read(sql!("occurrences"), params![millis(within), limit], rows::occurrence).await
    }

    async fn unleasable(&self) -> Result<Vec<Unleasable>> {
        let params = params![WORKER_VANISHED_AFTER_MS];
        self.read(sql!("unleasable"), params, rows::unleasable).await
    }

    async fn lease_alert(&self, lease: Duration) -> Result<Option<Alert>> {
        self.read_first(sql!("lease_alert"), params![millis(lease)], rows::alert).await
    }

    async fn settle_alert(&self, attempt: DeliveryAttempt) -> Result<Option<Delivery>> {
        let DeliveryAttempt { id, attempts, error, wait, give_up_after } = attempt;
        let error = error.as_deref().map(clean);
        let params = params![id, attempts, error, millis(wait), millis(give_up_after)];
        let read = |row: &Row| row.status("delivery");
        self.read_first(sql!("settle_alert"), params, read).await
    }

    async fn alerts(&self, filter: &AlertFilter) -> Result<Vec<Alert>> {
        let (by, types) = (filter.submitted_by.as_deref(), texts(filter.job_types.as_deref()));
        let params =
            params![by, filter.before, list_limit(filter.limit), types, filter.id, filter.open];
        self.read(sql!("list_alerts"), params, rows::alert).await
    }

    async fn remove_alerts(&self, age: Duration) -> Result<u64> {
        self.execute(sql!("remove_alerts"), params![millis(age)]).await
    }
}
