//! Tables and server state.

use super::{
    CATALOG_TIMEOUT, MEASURE_TIMEOUT, MysqlConnection, describe, durability, in_read_tx, read,
    release, replication,
};
use crate::sql::inner;
use crate::{Catalog, Replication, Result};
use async_trait::async_trait;
use windlass_core::Table;

#[async_trait]
impl Catalog for MysqlConnection {
    async fn tables(&self) -> Result<Vec<String>> {
        in_read_tx!(self, CATALOG_TIMEOUT, |transaction| describe::tables(transaction))
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        in_read_tx!(self, CATALOG_TIMEOUT, |transaction| describe::describe(transaction, source))
    }

    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        Ok(crate::chunk_binding::check(crate::sql::Dialect::Mysql, job_type)?)
    }

    async fn measure(&self, sql: &str) -> Result<Option<f64>> {
        let sql = format!("SELECT CAST((\n{}\n) AS DOUBLE)", inner(sql));
        in_read_tx!(self, MEASURE_TIMEOUT, |transaction| read::measure(transaction, &sql))
    }

    async fn durability_risk(&self) -> Result<Option<String>> {
        durability::risk(self).await
    }

    async fn replication(&self) -> Result<Replication> {
        replication::replication(self).await
    }
}
