//! Applies migrations.

use async_trait::async_trait;
use windlass_core::config::Dialect;
use windlass_drivers::{Error, ErrorClass};

use super::{PostgresStore, Transaction, params, sql};
use crate::fields::Fields;
use crate::migrations::{migrations, pending};
use crate::{Result, SchemaStore, StoreError};

#[async_trait]
impl SchemaStore for PostgresStore {
    async fn migrate(&self) -> Result<()> {
        let current = || async {
            let tx = self.begin().await?;
            let current = is_current(&tx).await;
            tx.finish(current).await
        };
        if self.repeat(current).await? {
            return Ok(());
        }
        let apply = || async {
            if self.dialect == Dialect::Strict {
                self.create_migrations().await?;
            }
            let tx = self.begin().await?;
            let applied = apply(&tx, self.dialect).await;
            tx.finish(applied).await
        };
        let applied = self.repeat(apply).await.map_err(|error| match error {
            StoreError::Database(denied) if denied.class == ErrorClass::Permission => {
                let message = format!(
                    "its schema is not up to date and this role may not change it ({}); run \
                     `windlass migrate` as the role that owns the store's tables",
                    denied.message
                );
                Error { message, ..denied }.into()
            }
            error => error,
        })?;
        for migration in applied {
            tracing::info!(migration, "migrated the store's schema");
        }
        Ok(())
    }
}

impl PostgresStore {
    /// Creates the table of migrations in a transaction of its own, for the dialect without locks.
    ///
    /// When another process creates it at the same time, servers report one of several errors, depending on how far the
    /// other process is. So what counts is whether the table exists afterwards.
    async fn create_migrations(&self) -> Result<()> {
        let tx = self.begin().await?;
        let created = tx.batch(sql!("create_migrations")).await.map_err(StoreError::from);
        let created = tx.finish(created).await;
        if created.is_err() {
            let tx = self.begin().await?;
            let made = has_migrations(&tx).await;
            if tx.finish(made).await? {
                return Ok(());
            }
        }
        created
    }
}

const MIGRATIONS: &[(&str, &str)] = migrations!("postgres": "0001_initial", "0002_read_snapshots");

/// The key of the advisory lock. The letters make a collision with other applications unlikely.
const MIGRATION_LOCK_KEY: i64 = i64::from_be_bytes(*b"windlass");

/// Applies the pending migrations and returns their names.
///
/// In the dialect `strict` a second process waits where it records the same migration. It fails when the first one
/// has committed, is repeated, and then has nothing to apply.
async fn apply(tx: &Transaction, dialect: Dialect) -> Result<Vec<&'static str>> {
    if dialect != Dialect::Strict {
        // The lock lasts until the transaction ends, so it also works behind a connection pooler. A
        // second process waits here and then has nothing to apply.
        tx.query("SELECT pg_advisory_xact_lock($1)", params![MIGRATION_LOCK_KEY]).await?;
        tx.batch(sql!("create_migrations")).await?;
    }
    let applied = tx.query_one(sql!(shared "last_migration"), &[]).await?.int("number")?;
    let mut names = Vec::new();
    for migration in pending(MIGRATIONS, applied)? {
        let params = params![migration.number, migration.name];
        tx.execute(sql!("record_migration"), params).await?;
        tx.batch(migration.sql).await?;
        names.push(migration.name);
    }
    Ok(names)
}

/// Whether no migration is pending. Then the role needs no privilege to create tables, and no lock is
/// taken that another role could block.
async fn is_current(tx: &Transaction) -> Result<bool> {
    if !has_migrations(tx).await? {
        return Ok(false);
    }
    let applied = tx.query_one(sql!(shared "last_migration"), &[]).await?.int("number")?;
    Ok(pending(MIGRATIONS, applied)?.next().is_none())
}

async fn has_migrations(tx: &Transaction) -> Result<bool> {
    tx.query_one(sql!("has_migrations"), &[]).await?.flag("made")
}
