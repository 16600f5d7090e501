//! Raises alerts and tracks their delivery.

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::{AlertKind, Delivery};
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::control::WORKER_VANISHED_AFTER_MS;
use crate::fields::Fields;
use crate::values::{AlertColumns, clean, list_limit, millis};
use crate::{
    Alert, AlertFilter, AlertStore, DeliveryAttempt, NewAlert, Occurrence, Result, Unleasable, rows,
};

#[async_trait]
impl AlertStore for SqliteStore {
    async fn raise_alert(&self, alert: &NewAlert) -> Result<bool> {
        let alert = AlertColumns::of(alert);
        let raise = move |tx: &Transaction<'_>| {
            let params = params![
                alert.id.to_string(),
                alert.kind,
                alert.subject,
                alert.job_type,
                alert.job.map(|job| job.to_string()),
                alert.submitter,
                alert.message,
                alert.details,
                alert.threshold,
                alert.sustained_for,
                alert.stale_after,
                alert.delivery,
            ];
            tx.query_opt(sql!("raise_alert"), params, |row| row.flag("raised"))
        };
        Ok(self.write(raise).await?.unwrap_or_default())
    }

    async fn open_alerts(&self, kind: AlertKind) -> Result<Vec<(String, i64)>> {
        self.query(sql!(shared "open_alerts"), [kind.as_str()], |row| rows::condition(row)).await
    }

    async fn clear_alert(&self, kind: AlertKind, subject: &str, reason: &str) -> Result<bool> {
        let (kind, subject, reason) = (kind.as_str(), subject.to_owned(), clean(reason));
        let clear = move |tx: &Transaction<'_>| {
            tx.execute(sql!(shared "remove_condition"), (kind, subject.clone()))?;
            tx.execute(sql!("clear_alert"), (kind, subject, reason))
        };
        Ok(self.write(clear).await? > 0)
    }

    async fn acknowledge_alert(&self, id: Uuid, by: &str) -> Result<bool> {
        let params = (id.to_string(), clean(by));
        Ok(self.execute(sql!("acknowledge_alert"), params).await? > 0)
    }

    async fn has_recovered(&self, job_type: &str) -> Result<bool> {
        let params = [job_type.to_owned()];
        let found = self.query_opt(sql!("has_recovered"), params, |row| row.flag("recovered"));
        Ok(found.await?.unwrap_or(true))
    }

    async fn occurrences(&self, within: Duration, limit: u32) -> Result<Vec<Occurrence>> {
        let params = (millis(within), limit);
        self.query(sql!("occurrences"), params, |row| rows::occurrence(row)).await
    }

    async fn unleasable(&self) -> Result<Vec<Unleasable>> {
        let params = [WORKER_VANISHED_AFTER_MS];
        self.query(sql!("unleasable"), params, |row| rows::unleasable(row)).await
    }

    async fn lease_alert(&self, lease: Duration) -> Result<Option<Alert>> {
        // A read that finds nothing does not block other writers.
        if self.query_opt(sql!("due_alert"), [], |_| Ok(())).await?.is_none() {
            return Ok(None);
        }
        let params = [millis(lease)];
        let lease = move |tx: &Transaction<'_>| {
            tx.query_opt(sql!("lease_alert"), params, |row| rows::alert(row))
        };
        self.write(lease).await
    }

    async fn settle_alert(&self, attempt: DeliveryAttempt) -> Result<Option<Delivery>> {
        let DeliveryAttempt { id, attempts, error, wait, give_up_after } = attempt;
        let (id, error) = (id.to_string(), error.as_deref().map(clean));
        let params = (id, attempts, error, millis(wait), millis(give_up_after));
        let settle = move |tx: &Transaction<'_>| {
            tx.query_opt(sql!("settle_alert"), params, |row| row.status("delivery"))
        };
        self.write(settle).await
    }

    async fn alerts(&self, filter: &AlertFilter) -> Result<Vec<Alert>> {
        let before = filter.before.map(|id| id.to_string());
        let types = filter.job_types.as_ref().map(serde_json::to_string).transpose()?;
        let (by, limit) = (filter.submitted_by.clone(), list_limit(filter.limit));
        let id = filter.id.map(|id| id.to_string());
        let params = (by, before, limit, types, id, filter.open);
        self.query(sql!("list_alerts"), params, |row| rows::alert(row)).await
    }

    async fn remove_alerts(&self, age: Duration) -> Result<u64> {
        self.execute(sql!("remove_alerts"), [millis(age)]).await
    }
}
