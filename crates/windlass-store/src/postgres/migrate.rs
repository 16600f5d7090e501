//! Brings the schema up to date.

use super::{PostgresStore, params, sql};
use crate::fields::Fields;
use crate::migrations::{migrations, pending};
use crate::{Result, StoreError};
use windlass_drivers::{Error, ErrorClass};

const MIGRATIONS: &[(&str, &str)] = migrations!("postgres": "0001_jobs", "0002_controls", "0003_retention", "0004_claims", "0005_schedules", "0006_dependencies", "0007_alerts", "0008_submitters", "0009_discard", "0010_parts", "0011_redrives", "0012_listing", "0013_patterns", "0014_statuses", "0017_restores", "0019_reserved_at", "0020_summaries");

/// Any number that others are unlikely to use: the first letters of the product's name.
const LOCK: i64 = i64::from_be_bytes(*b"windlass");

pub(super) async fn migrate(store: &PostgresStore) -> Result<()> {
    if is_current(store).await? {
        return Ok(());
    }
    apply(store).await.map_err(|error| match error {
        StoreError::Database(refused) if refused.class == ErrorClass::Permission => {
            let message = format!(
                "its schema is not up to date and this role may not change it ({}); run \
                 `windlass migrate` as the role that owns the store's tables",
                refused.message
            );
            Error { message, ..refused }.into()
        }
        error => error,
    })
}

async fn apply(store: &PostgresStore) -> Result<()> {
    let tx = store.begin().await?;
    // Held until the transaction ends, so that it works behind a pooler as well. Whoever comes
    // second waits here and then finds nothing to do.
    tx.query("SELECT pg_advisory_xact_lock($1)", params![LOCK]).await?;
    tx.batch(sql!("migrations")).await?;
    let applied = tx.query_one(sql!("migrated"), &[]).await?.int("number")?;
    for migration in pending(MIGRATIONS, applied)? {
        tx.batch(migration.sql).await?;
        let params = params![migration.number, migration.name];
        tx.execute(sql!("record_migration"), params).await?;
        tracing::info!(migration = migration.name, "the store's schema was changed");
    }
    tx.commit().await?;
    Ok(())
}

/// Whether there is nothing to do. Then no privilege to create tables is needed, and no lock is taken
/// for which another role could make this process wait.
async fn is_current(store: &PostgresStore) -> Result<bool> {
    let tx = store.begin().await?;
    let made = tx.query_one(sql!("is_migrated"), &[]).await?.flag("made")?;
    let current = if made {
        let applied = tx.query_one(sql!("migrated"), &[]).await?.int("number")?;
        pending(MIGRATIONS, applied)?.next().is_none()
    } else {
        false
    };
    tx.rollback().await?;
    Ok(current)
}
