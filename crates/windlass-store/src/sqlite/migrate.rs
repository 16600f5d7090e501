//! Brings the schema up to date.

use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::Result;
use crate::fields::Fields;
use crate::migrations::{migrations, pending};

const MIGRATIONS: &[(&str, &str)] = migrations!("sqlite": "0001_jobs", "0002_controls", "0003_retention", "0005_schedules", "0006_dependencies", "0007_alerts", "0008_submitters", "0009_discard", "0010_parts", "0011_redrives", "0012_listing", "0013_patterns", "0014_statuses", "0017_restores", "0019_reserved_at", "0020_summaries");

pub(super) async fn migrate(store: &SqliteStore) -> Result<()> {
    // BEGIN IMMEDIATE lets one process do it; whoever comes second then finds nothing to do.
    let work = |tx: &Transaction<'_>| {
        tx.batch(sql!("migrations"))?;
        let applied = tx.query_one(sql!("migrated"), [], |row| row.int("number"))?;
        for migration in pending(MIGRATIONS, applied)? {
            tx.batch(migration.sql)?;
            let params = params![migration.number, migration.name];
            tx.execute(sql!("record_migration"), params)?;
            tracing::info!(migration = migration.name, "the store's schema was changed");
        }
        Ok(())
    };
    store.write(work).await
}
