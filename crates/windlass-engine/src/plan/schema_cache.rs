//! What was lately learned of the user's databases, so that a small job does not begin with the
//! same questions three times.

use crate::engine::Engine;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use windlass_connectors::{InlineSource, Scope};
use windlass_core::{JobType, Source, Table};

/// How long a description is believed. A table that changes sooner than this after a submit is
/// found out by the first statement that fails.
const FRESH: Duration = Duration::from_secs(2);

/// How many rows of a query are looked at before a job of it is submitted, so that this stays cheap.
/// Planning looks at all of them.
const CHECKED_ROWS: u64 = 100_000;

/// The ledgers that are there, and the tables as they were a moment ago.
#[derive(Default)]
pub(crate) struct SchemaCache {
    prepared: Mutex<HashSet<String>>,
    described: Mutex<HashMap<String, (Instant, Table)>>,
    /// The job types whose keys were found right, and when.
    keys: Mutex<HashMap<String, Instant>>,
}

impl Engine {
    /// What the database says of a source, now or a moment ago.
    pub(crate) async fn describe(&self, source: &Source) -> crate::Result<Table> {
        if source.items {
            return Ok(InlineSource::table(source, 0));
        }
        let described = &self.shared.schema_cache.described;
        let name = format!("{:?}", (&source.connection, &source.table, &source.query));
        if let Some((at, table)) = locked(described).get(&name)
            && at.elapsed() < FRESH
        {
            return Ok(table.clone());
        }
        let table = self.connection(&source.connection)?.describe(source).await?;
        let mut known = locked(described);
        known.retain(|_, (at, _)| at.elapsed() < FRESH);
        known.insert(name, (Instant::now(), table.clone()));
        Ok(table)
    }

    /// Refuses a query among whose first rows one has no key, or two have the same where the step
    /// needs it unique. A table has passed by its schema.
    pub(crate) async fn check_keys(
        &self,
        definition: &JobType,
        table: &Table,
    ) -> crate::Result<()> {
        let source = &definition.source;
        if source.query.is_none() {
            return Ok(());
        }
        let checked = &self.shared.schema_cache.keys;
        let name = format!("{:?}", (source, &definition.step.kind));
        if locked(checked).get(&name).is_some_and(|at| at.elapsed() < FRESH) {
            return Ok(());
        }
        let scope = Scope::of_all(definition.clone(), table.clone());
        self.connection(&source.connection)?.check_keys(&scope, Some(CHECKED_ROWS)).await?;
        let mut known = locked(checked);
        known.retain(|_, at| at.elapsed() < FRESH);
        known.insert(name, Instant::now());
        Ok(())
    }

    /// Whether a connection has its ledger or can have it; changes nothing.
    pub(crate) async fn check_ledger(&self, connection: &str) -> crate::Result<()> {
        if !locked(&self.shared.schema_cache.prepared).contains(connection) {
            self.connection(connection)?.check_ledger().await?;
        }
        Ok(())
    }

    /// Records on every ledger in use that the store has reached another generation, so that a store
    /// restored from a backup of before is detected even when no process was started since.
    pub(crate) async fn renew_generations(&self) {
        let prepared: Vec<String> =
            locked(&self.shared.schema_cache.prepared).iter().cloned().collect();
        for connection in prepared {
            if let Err(error) = self.record_generation(&connection).await {
                tracing::warn!(connection, %error, "the generation of the store was not recorded");
            }
        }
    }

    /// Makes sure, once, that a connection has its ledger, and that the store is not older than it.
    pub(crate) async fn prepare(&self, connection: &str) -> crate::Result<()> {
        let prepared = &self.shared.schema_cache.prepared;
        if !locked(prepared).contains(connection) {
            self.connection(connection)?.prepare().await?;
            self.record_generation(connection).await?;
            locked(prepared).insert(connection.to_owned());
        }
        Ok(())
    }
}

/// Plain values, which a panic elsewhere cannot leave half changed.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
