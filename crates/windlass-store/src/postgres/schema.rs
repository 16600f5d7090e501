//! Applies migrations.

use async_trait::async_trait;
use windlass_drivers::{Error, ErrorClass, Transaction};

use super::{PostgresStore, finish, params, sql};
use crate::fields::Fields;
use crate::migrations::{migrations, pending};
use crate::{Result, SchemaStore, StoreError};

#[async_trait]
impl SchemaStore for PostgresStore {
    async fn migrate(&self) -> Result<()> {
        let tx = self.begin().await?;
        let current = is_current(&tx).await;
        if finish(tx, current).await? {
            return Ok(());
        }
        let tx = self.begin().await?;
        let applied = apply(&tx).await;
        finish(tx, applied).await.map_err(|error| match error {
            StoreError::Database(denied) if denied.class == ErrorClass::Permission => {
                let message = format!(
                    "its schema is not up to date and this role may not change it ({}); run \
                     `windlass migrate` as the role that owns the store's tables",
                    denied.message
                );
                Error { message, ..denied }.into()
            }
            error => error,
        })
    }
}

const MIGRATIONS: &[(&str, &str)] = migrations!("postgres": "0001_initial");

/// The key of the advisory lock. The letters make a collision with other applications unlikely.
const MIGRATION_LOCK_KEY: i64 = i64::from_be_bytes(*b"windlass");

async fn apply(tx: &Transaction) -> Result<()> {
    // The lock lasts until the transaction ends, so it also works behind a connection pooler. A
    // second process waits here and then has nothing to apply.
    tx.query("SELECT pg_advisory_xact_lock($1)", params![MIGRATION_LOCK_KEY]).await?;
    tx.batch(sql!("create_migrations")).await?;
    let applied = tx.query_one(sql!(shared "last_migration"), &[]).await?.int("number")?;
    for migration in pending(MIGRATIONS, applied)? {
        tx.batch(migration.sql).await?;
        let params = params![migration.number, migration.name];
        tx.execute(sql!("record_migration"), params).await?;
        tracing::info!(migration = migration.name, "migrated the store's schema");
    }
    Ok(())
}

/// Whether no migration is pending. Then the role needs no privilege to create tables, and no lock is
/// taken that another role could block.
async fn is_current(tx: &Transaction) -> Result<bool> {
    if !tx.query_one(sql!("has_migrations"), &[]).await?.flag("made")? {
        return Ok(false);
    }
    let applied = tx.query_one(sql!(shared "last_migration"), &[]).await?.int("number")?;
    Ok(pending(MIGRATIONS, applied)?.next().is_none())
}
