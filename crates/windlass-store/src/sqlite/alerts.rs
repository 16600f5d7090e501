//! Alerts: raised once, watched before that and cleared after it, and posted by whoever takes them.

use std::time::Duration;

use uuid::Uuid;
use windlass_core::{AlertKind, Delivery};
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::control::VANISHED;
use crate::fields::Fields;
use crate::values::{AlertColumns, listed, millis};
use crate::{Alert, AlertFilter, NewAlert, Occurrence, Result, Unclaimable, rows};

pub(super) async fn raise(store: &SqliteStore, alert: &NewAlert) -> Result<bool> {
    let alert = AlertColumns::of(alert);
    let work = move |tx: &Transaction<'_>| {
        let params = params![
            alert.id.to_string(),
            alert.kind,
            alert.subject,
            alert.job_type,
            alert.job.map(|job| job.to_string()),
            alert.submitter,
            alert.message,
            alert.details,
            alert.above,
            alert.after,
            alert.unseen,
            alert.delivery,
        ];
        tx.query_opt(sql!("raise_alert"), params, |row| row.flag("raised"))
    };
    Ok(store.write(work).await?.unwrap_or_default())
}

pub(super) async fn open(store: &SqliteStore, kind: AlertKind) -> Result<Vec<(String, i64)>> {
    let work = move |tx: &Transaction<'_>| {
        tx.query(sql!("open_alerts"), [kind.as_str()], |row| rows::condition(row))
    };
    store.read(work).await
}

pub(super) async fn clear(store: &SqliteStore, kind: AlertKind, subject: &str) -> Result<()> {
    let params = (kind.as_str(), subject.to_owned());
    let work = move |tx: &Transaction<'_>| {
        tx.execute(sql!("forget_alert"), params.clone())?;
        tx.execute(sql!("clear_alert"), params)
    };
    store.write(work).await.map(drop)
}

pub(super) async fn occurrences(
    store: &SqliteStore,
    within: Duration,
    limit: u32,
) -> Result<Vec<Occurrence>> {
    let params = (millis(within), limit);
    store.read(move |tx| tx.query(sql!("occurrences"), params, |row| rows::occurrence(row))).await
}

pub(super) async fn letters_by_type(store: &SqliteStore, most: i64) -> Result<Vec<(String, i64)>> {
    let work = move |tx: &Transaction<'_>| {
        tx.query(sql!("letters_by_type"), [most], |row| rows::letters_of_type(row))
    };
    store.read(work).await
}

pub(super) async fn unclaimable(store: &SqliteStore) -> Result<Vec<Unclaimable>> {
    store.read(|tx| tx.query(sql!("unclaimable"), [VANISHED], |row| rows::unclaimable(row))).await
}

pub(super) async fn claim(store: &SqliteStore, lease: Duration) -> Result<Option<Alert>> {
    let lease = millis(lease);
    let due = store.read(|tx| tx.query_opt(sql!("due_alert"), [], |_| Ok(()))).await?;
    // Looking costs nobody anything; a claim needs the writer.
    if due.is_none() {
        return Ok(None);
    }
    store.write(move |tx| tx.query_opt(sql!("claim_alert"), [lease], |row| rows::alert(row))).await
}

pub(super) async fn settle(
    store: &SqliteStore,
    id: Uuid,
    attempts: u32,
    error: Option<&str>,
    wait: Duration,
    patience: Duration,
) -> Result<Option<Delivery>> {
    let params =
        (id.to_string(), attempts, error.map(str::to_owned), millis(wait), millis(patience));
    let work = move |tx: &Transaction<'_>| {
        tx.query_opt(sql!("settle_alert"), params, |row| row.status("delivery"))
    };
    store.write(work).await
}

pub(super) async fn list(store: &SqliteStore, filter: &AlertFilter) -> Result<Vec<Alert>> {
    let before = filter.before.map(|id| id.to_string());
    let types = filter.job_types.as_ref().map(serde_json::to_string).transpose()?;
    let params = (filter.submitted_by.clone(), before, listed(filter.limit), types);
    store.read(move |tx| tx.query(sql!("list_alerts"), params, |row| rows::alert(row))).await
}

pub(super) async fn remove(store: &SqliteStore, age: Duration) -> Result<u64> {
    let age = millis(age);
    store.write(move |tx| tx.execute(sql!("remove_alerts"), [age])).await
}
