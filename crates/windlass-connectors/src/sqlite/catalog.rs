//! Tables and server state.

use super::{SqliteConnection, describe, failed};
use crate::sql::inner;
use crate::{Catalog, Result};
use async_trait::async_trait;
use windlass_core::Table;

#[async_trait]
impl Catalog for SqliteConnection {
    async fn tables(&self) -> Result<Vec<String>> {
        self.read(describe::tables).await
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        let source = source.clone();
        self.read(move |connection| describe::describe(connection, &source)).await
    }

    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        Ok(crate::chunk_binding::check(crate::sql::Dialect::Sqlite, job_type)?)
    }

    async fn measure(&self, sql: &str) -> Result<Option<f64>> {
        let sql = format!("SELECT CAST((\n{}\n) AS REAL)", inner(sql));
        self.read(move |connection| {
            connection.query_row(&sql, [], |row| row.get(0)).map_err(failed)
        })
        .await
    }
}
