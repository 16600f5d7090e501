//! Tables and server state.

use super::{
    MEASURE_TIMEOUT, PostgresConnection, describe, in_catalog_tx, milliseconds, preview, release,
    replication, row, snapshot, write,
};
use crate::row_count::{MAX_COUNTED_ROWS, count_some, counted, select_all};
use crate::sql::{Dialect, inner};
use crate::{Catalog, HeldSnapshot, Replication, Result, RowCount, Scope};
use async_trait::async_trait;
use windlass_core::{KeySet, Table};
use windlass_drivers::ErrorClass;

#[async_trait]
impl Catalog for PostgresConnection {
    async fn tables(&self) -> Result<Vec<String>> {
        in_catalog_tx!(self, |transaction| describe::tables(&transaction))
    }

    async fn base_tables(&self) -> Result<Vec<String>> {
        in_catalog_tx!(self, |transaction| describe::base_tables(&transaction))
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        in_catalog_tx!(self, |transaction| describe::describe(&transaction, source))
    }

    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        Ok(crate::chunk_binding::check(crate::sql::Dialect::Postgres, job_type)?)
    }

    async fn prepare_statements(&self, scope: &Scope) -> Result<()> {
        let transaction = self.write_tx(scope).await?;
        let prepared = preview::prepare(&transaction, scope).await;
        release(transaction, prepared).await
    }

    async fn prepare_update(&self, scope: &Scope, columns: &[String]) -> Result<()> {
        let transaction = self.write_tx(scope).await?;
        let prepared = write::prepare_update(&transaction, scope, columns).await;
        release(transaction, prepared).await
    }

    async fn row_count(&self, scope: &Scope) -> Result<RowCount> {
        let estimated =
            in_catalog_tx!(self, |transaction| describe::estimated_matches(&transaction, scope))?;
        if estimated > 10 * MAX_COUNTED_ROWS {
            return Ok(RowCount::Estimated(estimated));
        }
        let all = KeySet::range(None, None);
        let sql = count_some(&select_all(Dialect::Postgres, scope, &all).text);
        match self.db.single(&measure_settings(), &sql, &[]).await {
            Ok(rows) => {
                let found: i64 = rows.first().map_or(Ok(0), |row| row::get(row, 0))?;
                Ok(counted(found.unsigned_abs(), Some(estimated)))
            }
            // Counting took too long.
            Err(error) if error.class == ErrorClass::Retry => Ok(RowCount::Estimated(estimated)),
            Err(error) => Err(error.into()),
        }
    }

    async fn measure(&self, sql: &str) -> Result<Option<f64>> {
        let sql = format!("SELECT (\n{}\n)::float8", inner(sql));
        let rows = self.db.single(&measure_settings(), &sql, &[]).await?;
        rows.first().map_or(Ok(None), |row| row::get(row, 0))
    }

    async fn position(&self) -> Result<Option<i64>> {
        replication::position(self).await
    }

    async fn durability_risk(&self) -> Result<Option<String>> {
        replication::durability_risk(self).await
    }

    async fn check_snapshots(&self) -> Result<()> {
        snapshot::check(self).await
    }

    async fn hold_snapshot(&self, scope: &Scope) -> Result<Option<Box<dyn HeldSnapshot>>> {
        snapshot::hold(self, scope).await
    }

    async fn replication(&self) -> Result<Replication> {
        replication::replication(self).await
    }
}

/// The settings of a short statement that only reads.
fn measure_settings() -> String {
    let timeout = milliseconds(MEASURE_TIMEOUT);
    format!("SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = {timeout}")
}
