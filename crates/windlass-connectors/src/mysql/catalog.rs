//! Tables and server state.

use super::{
    CATALOG_TIMEOUT, MEASURE_TIMEOUT, MysqlConnection, describe, durability, in_read_tx, preview,
    read, release, replication, write,
};
use crate::row_count::{MAX_COUNTED_ROWS, count_some, counted, select_all};
use crate::sql::{Dialect, inner};
use crate::{Catalog, Replication, Result, RowCount, Scope};
use async_trait::async_trait;
use windlass_core::{KeySet, Table};
use windlass_drivers::ErrorClass;

#[async_trait]
impl Catalog for MysqlConnection {
    async fn tables(&self) -> Result<Vec<String>> {
        in_read_tx!(self, CATALOG_TIMEOUT, |transaction| describe::tables(transaction))
    }

    async fn base_tables(&self) -> Result<Vec<String>> {
        in_read_tx!(self, CATALOG_TIMEOUT, |transaction| describe::base_tables(transaction))
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        in_read_tx!(self, CATALOG_TIMEOUT, |transaction| describe::describe(transaction, source))
    }

    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        Ok(crate::chunk_binding::check(crate::sql::Dialect::Mysql, job_type)?)
    }

    async fn prepare_statements(&self, scope: &Scope) -> Result<()> {
        let mut transaction = self.write_tx(scope).await?;
        let prepared = preview::prepare(&mut transaction, scope).await;
        release(transaction, prepared).await
    }

    async fn prepare_update(&self, scope: &Scope, columns: &[String]) -> Result<()> {
        let mut transaction = self.write_tx(scope).await?;
        let prepared = write::prepare_update(&mut transaction, scope, columns).await;
        release(transaction, prepared).await
    }

    async fn row_count(&self, scope: &Scope) -> Result<RowCount> {
        let estimated =
            in_read_tx!(self, CATALOG_TIMEOUT, |transaction| describe::estimated_matches(
                transaction,
                scope
            ))?;
        if estimated > 10 * MAX_COUNTED_ROWS {
            return Ok(RowCount::Estimated(estimated));
        }
        let all = KeySet::range(None, None);
        let count = count_some(&select_all(Dialect::Mysql, scope, &all).text);
        let sql = as_number(&count);
        match in_read_tx!(self, MEASURE_TIMEOUT, |transaction| read::measure(transaction, &sql)) {
            Ok(found) => Ok(counted(found.unwrap_or_default() as u64, Some(estimated))),
            // Counting took too long.
            Err(error) if error.class() == Some(ErrorClass::Retry) => {
                Ok(RowCount::Estimated(estimated))
            }
            Err(error) => Err(error),
        }
    }

    async fn measure(&self, sql: &str) -> Result<Option<f64>> {
        let sql = as_number(inner(sql));
        in_read_tx!(self, MEASURE_TIMEOUT, |transaction| read::measure(transaction, &sql))
    }

    async fn durability_risk(&self) -> Result<Option<String>> {
        durability::risk(self).await
    }

    async fn replication(&self) -> Result<Replication> {
        replication::replication(self).await
    }
}

/// A SELECT of one number, as a float.
fn as_number(select: &str) -> String {
    format!("SELECT CAST((\n{select}\n) AS DOUBLE)")
}
