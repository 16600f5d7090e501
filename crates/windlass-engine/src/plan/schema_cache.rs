//! Caches what is known about the user's databases: table schemas, key checks and existing ledgers.
//!
//! Submitting, planning and executing a job all need the schema. The cache keeps a small job from
//! asking for it three times.

use crate::engine::Engine;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_connectors::{InlineSource, Scope};
use windlass_core::{JobType, Source, Table};

/// How long a cached schema is used. If a table changes within this time, the first statement that
/// does not match it fails.
const SCHEMA_CACHE_TTL: Duration = Duration::from_secs(2);

/// How long a caller waits for another one that reads the schema of the same source.
const MAX_DESCRIBE_WAIT: Duration = Duration::from_secs(1);

/// Rows of a source query whose keys are checked when a job is submitted. Bounded, so that submitting
/// stays cheap; planning checks all rows.
const MAX_KEY_CHECK_ROWS: u64 = 100_000;

/// What this process knows about its connections.
#[derive(Default)]
pub(crate) struct SchemaCache {
    /// Connections whose ledger exists.
    prepared: Mutex<HashSet<String>>,
    /// A lock per connection, taken while its ledger is created, so that concurrent submits do not all do it.
    preparing: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    tables: Mutex<HashMap<String, (Instant, Table)>>,
    /// A lock per source, taken while its schema is read, so that concurrent submits do not all read it.
    describing: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// Sources whose keys passed the check, and when.
    checked_keys: Mutex<HashMap<String, Instant>>,
}

impl Engine {
    /// The schema of a source, from the database or the cache.
    pub(crate) async fn describe(&self, source: &Source) -> crate::Result<Table> {
        if source.items {
            return Ok(InlineSource::table(source, 0));
        }
        let SchemaCache { tables, describing, .. } = &self.shared.schema_cache;
        let name = schema_name(source);
        let cached = || {
            let tables = tables.lock();
            let fresh = tables.get(&name).filter(|(at, _)| at.elapsed() < SCHEMA_CACHE_TTL);
            fresh.map(|(_, table)| table.clone())
        };
        if let Some(table) = cached() {
            return Ok(table);
        }
        let lock = describing.lock().entry(name.clone()).or_default().clone();
        // If the database does not answer, callers must not wait for each other's timeouts.
        let _describing = tokio::time::timeout(MAX_DESCRIBE_WAIT, lock.lock()).await;
        if let Some(table) = cached() {
            return Ok(table);
        }
        let table = self.connection(&source.connection)?.describe(source).await?;
        let mut tables = tables.lock();
        tables.retain(|_, (at, _)| at.elapsed() < SCHEMA_CACHE_TTL);
        tables.insert(name, (Instant::now(), table.clone()));
        Ok(table)
    }

    /// Removes a schema from the cache, so that the next [`Engine::describe`] reads it from the database. For moments
    /// at which the table may just have been repaired: after a job type did not match it, and before a redrive.
    pub(crate) fn forget_schema(&self, source: &Source) {
        self.shared.schema_cache.tables.lock().remove(&schema_name(source));
    }

    /// Rejects a source query if, among its first rows, a row has no key, or two rows have the same
    /// key although the step needs unique keys. A table is checked by its schema instead.
    pub(crate) async fn check_keys(
        &self,
        definition: &JobType,
        table: &Table,
    ) -> crate::Result<()> {
        let source = &definition.source;
        if source.query.is_none() {
            return Ok(());
        }
        let checked = &self.shared.schema_cache.checked_keys;
        let name = format!("{:?}", (source, &definition.step.kind));
        if checked.lock().get(&name).is_some_and(|at| at.elapsed() < SCHEMA_CACHE_TTL) {
            return Ok(());
        }
        let scope = Scope::of_all(definition.clone(), table.clone());
        self.connection(&source.connection)?.check_keys(&scope, Some(MAX_KEY_CHECK_ROWS)).await?;
        let mut checked = checked.lock();
        checked.retain(|_, at| at.elapsed() < SCHEMA_CACHE_TTL);
        checked.insert(name, Instant::now());
        Ok(())
    }

    /// Checks that a connection has its ledger or allows its creation. Changes nothing.
    pub(crate) async fn check_ledger(&self, connection: &str) -> crate::Result<()> {
        if !self.shared.schema_cache.prepared.lock().contains(connection) {
            self.connection(connection)?.check_ledger().await?;
        }
        Ok(())
    }

    /// Raises the store's generation and records it beside every ledger in use. A store restored from
    /// an older backup is then detected even if no process was started after the backup.
    pub(crate) async fn renew_generations(&self) {
        let prepared: Vec<String> =
            self.shared.schema_cache.prepared.lock().iter().cloned().collect();
        for connection in prepared {
            if let Err(error) = self.record_generation(&connection).await {
                tracing::warn!(connection, %error, "failed to record the store generation beside the ledger; retrying later");
            }
        }
    }

    /// Creates the ledger of a connection if needed, and checks that the store is not older than the
    /// ledger. Done once per connection.
    pub(crate) async fn prepare(&self, connection: &str) -> crate::Result<()> {
        let SchemaCache { prepared, preparing, .. } = &self.shared.schema_cache;
        let is_prepared = || prepared.lock().contains(connection);
        if is_prepared() {
            return Ok(());
        }
        let lock = preparing.lock().entry(connection.to_owned()).or_default().clone();
        let _preparing = lock.lock().await;
        if !is_prepared() {
            self.connection(connection)?.prepare().await?;
            self.record_generation(connection).await?;
            prepared.lock().insert(connection.to_owned());
        }
        Ok(())
    }
}

fn schema_name(source: &Source) -> String {
    format!("{:?}", (&source.connection, &source.table, &source.query))
}
