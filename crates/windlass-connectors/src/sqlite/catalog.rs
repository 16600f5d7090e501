//! Tables and server state.

use super::{SqliteConnection, describe, failed, preview, write};
use crate::row_count::{count_some, counted, select_all};
use crate::sql::{Dialect, inner};
use crate::{Catalog, Result, RowCount, Scope};
use async_trait::async_trait;
use windlass_core::{KeySet, Table};

#[async_trait]
impl Catalog for SqliteConnection {
    async fn tables(&self) -> Result<Vec<String>> {
        self.read(describe::tables).await
    }

    async fn base_tables(&self) -> Result<Vec<String>> {
        self.read(describe::base_tables).await
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        let source = source.clone();
        self.read(move |connection| describe::describe(connection, &source)).await
    }

    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        Ok(crate::chunk_binding::check(crate::sql::Dialect::Sqlite, job_type)?)
    }

    async fn prepare_statements(&self, scope: &Scope) -> Result<()> {
        let scope = scope.clone();
        self.read(move |connection| preview::prepare(connection, &scope)).await
    }

    async fn prepare_update(&self, scope: &Scope, columns: &[String]) -> Result<()> {
        let (scope, columns) = (scope.clone(), columns.to_vec());
        self.read(move |connection| write::prepare_update(connection, &scope, &columns)).await
    }

    async fn row_count(&self, scope: &Scope) -> Result<RowCount> {
        let scope = scope.clone();
        self.read(move |connection| {
            let all = KeySet::range(None, None);
            let sql = count_some(&select_all(Dialect::Sqlite, &scope, &all).text);
            let found: i64 = connection.query_row(&sql, [], |row| row.get(0)).map_err(failed)?;
            let table = &scope.job_type.source;
            let whole = table.table.is_some() && table.condition.is_none();
            let estimated = whole.then_some(scope.table.estimated_rows);
            Ok(counted(found.unsigned_abs(), estimated))
        })
        .await
    }

    async fn measure(&self, sql: &str) -> Result<Option<f64>> {
        let sql = format!("SELECT CAST((\n{}\n) AS REAL)", inner(sql));
        self.read(move |connection| {
            connection.query_row(&sql, [], |row| row.get(0)).map_err(failed)
        })
        .await
    }
}
