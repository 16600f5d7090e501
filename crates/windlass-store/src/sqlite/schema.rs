//! Applies migrations.

use async_trait::async_trait;
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::fields::Fields;
use crate::migrations::{migrations, pending};
use crate::{Result, SchemaStore};

#[async_trait]
impl SchemaStore for SqliteStore {
    async fn migrate(&self) -> Result<()> {
        // BEGIN IMMEDIATE lets one process migrate. A second one waits and then has nothing to apply.
        self.write(apply).await
    }
}

const MIGRATIONS: &[(&str, &str)] = migrations!("sqlite": "0001_initial", "0002_read_snapshots");

fn apply(tx: &Transaction<'_>) -> Result<()> {
    tx.batch(sql!("create_migrations"))?;
    let applied = tx.query_one(sql!(shared "last_migration"), [], |row| row.int("number"))?;
    for migration in pending(MIGRATIONS, applied)? {
        tx.batch(migration.sql)?;
        tx.execute(sql!("record_migration"), params![migration.number, migration.name])?;
        tracing::info!(migration = migration.name, "migrated the store's schema");
    }
    Ok(())
}
