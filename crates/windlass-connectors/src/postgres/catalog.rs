//! Tables and server state.

use super::{
    MEASURE_TIMEOUT, PostgresConnection, describe, in_catalog_tx, milliseconds, release,
    replication, row,
};
use crate::sql::inner;
use crate::{Catalog, Replication, Result};
use async_trait::async_trait;
use windlass_core::Table;

#[async_trait]
impl Catalog for PostgresConnection {
    async fn tables(&self) -> Result<Vec<String>> {
        in_catalog_tx!(self, |transaction| describe::tables(&transaction))
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        in_catalog_tx!(self, |transaction| describe::describe(&transaction, source))
    }

    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        Ok(crate::chunk_binding::check(crate::sql::Dialect::Postgres, job_type)?)
    }

    async fn measure(&self, sql: &str) -> Result<Option<f64>> {
        let sql = format!("SELECT (\n{}\n)::float8", inner(sql));
        let settings = format!(
            "SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = {}",
            milliseconds(MEASURE_TIMEOUT)
        );
        let rows = self.db.single(&settings, &sql, &[]).await?;
        rows.first().map_or(Ok(None), |row| row::get(row, 0))
    }

    async fn position(&self) -> Result<Option<i64>> {
        replication::position(self).await
    }

    async fn durability_risk(&self) -> Result<Option<String>> {
        replication::durability_risk(self).await
    }

    async fn replication(&self) -> Result<Replication> {
        replication::replication(self).await
    }
}
