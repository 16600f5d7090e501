//! Alerts: raised once, watched before that and cleared after it, and posted by whoever takes them.

use std::time::Duration;

use uuid::Uuid;
use windlass_core::{AlertKind, Delivery};
use windlass_drivers::Row;

use super::{PostgresStore, params, sql, texts};
use crate::control::VANISHED;
use crate::fields::Fields;
use crate::values::{AlertColumns, listed, millis};
use crate::{Alert, AlertFilter, NewAlert, Occurrence, Result, Unclaimable, rows};

pub(super) async fn raise(store: &PostgresStore, alert: &NewAlert) -> Result<bool> {
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
        alert.above,
        alert.after,
        alert.unseen,
        alert.delivery,
    ];
    let raised = store.read(sql!("raise_alert"), params, |row: &Row| row.flag("raised")).await?;
    Ok(raised.first().copied().unwrap_or_default())
}

pub(super) async fn open(store: &PostgresStore, kind: AlertKind) -> Result<Vec<(String, i64)>> {
    store.read(sql!("open_alerts"), params![kind.as_str()], rows::condition).await
}

pub(super) async fn clear(store: &PostgresStore, kind: AlertKind, subject: &str) -> Result<()> {
    let tx = store.begin().await?;
    tx.execute(sql!("forget_alert"), params![kind.as_str(), subject]).await?;
    tx.execute(sql!("clear_alert"), params![kind.as_str(), subject]).await?;
    tx.commit().await?;
    Ok(())
}

pub(super) async fn occurrences(
    store: &PostgresStore,
    within: Duration,
    limit: u32,
) -> Result<Vec<Occurrence>> {
    store.read(sql!("occurrences"), params![millis(within), limit], rows::occurrence).await
}

pub(super) async fn letters_by_type(
    store: &PostgresStore,
    most: i64,
) -> Result<Vec<(String, i64)>> {
    store.read(sql!("letters_by_type"), params![most], rows::letters_of_type).await
}

pub(super) async fn unclaimable(store: &PostgresStore) -> Result<Vec<Unclaimable>> {
    store.read(sql!("unclaimable"), params![VANISHED], rows::unclaimable).await
}

pub(super) async fn claim(store: &PostgresStore, lease: Duration) -> Result<Option<Alert>> {
    let claimed = store.read(sql!("claim_alert"), params![millis(lease)], rows::alert).await?;
    Ok(claimed.into_iter().next())
}

pub(super) async fn settle(
    store: &PostgresStore,
    id: Uuid,
    attempts: u32,
    error: Option<&str>,
    wait: Duration,
    patience: Duration,
) -> Result<Option<Delivery>> {
    let params = params![id, attempts, error, millis(wait), millis(patience)];
    let settled =
        store.read(sql!("settle_alert"), params, |row: &Row| row.status("delivery")).await?;
    Ok(settled.into_iter().next())
}

pub(super) async fn list(store: &PostgresStore, filter: &AlertFilter) -> Result<Vec<Alert>> {
    let (by, types) = (filter.submitted_by.as_deref(), texts(filter.job_types.as_deref()));
    let params = params![by, filter.before, listed(filter.limit), types];
    store.read(sql!("list_alerts"), params, rows::alert).await
}

pub(super) async fn remove(store: &PostgresStore, age: Duration) -> Result<u64> {
    let tx = store.begin().await?;
    let removed = tx.execute(sql!("remove_alerts"), params![millis(age)]).await?;
    tx.commit().await?;
    Ok(removed)
}
