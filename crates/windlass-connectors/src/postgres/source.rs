//! Planning chunks and reading records.

use super::{
    PostgresConnection, chunk_read_settings, cut, in_catalog_tx, read, release, snapshot, split,
};
use crate::chunk_cutter::ChunkCutter;
use crate::key_check::key_checks;
use crate::sql::Dialect;
use crate::{
    Batch, BlockCount, ChunkPage, CutLimits, CutRange, FilterValues, ReadLimits, RecordReader,
    Result, RowSet, Scope, Source, ValuePages,
};
use async_trait::async_trait;
use windlass_core::{KeyRange, KeySet};

#[async_trait]
impl RecordReader for PostgresConnection {
    async fn read(&self, scope: &Scope, key_set: &KeySet, limits: ReadLimits) -> Result<Batch> {
        let ReadLimits { items: limit, bytes } = limits;
        if scope.read_snapshot.is_some() {
            let transaction = self.chunk_read_tx(scope).await?;
            let batch = read::read_in(&transaction, scope, key_set, limit, bytes).await;
            return release(transaction, batch).await;
        }
        let settings = chunk_read_settings(scope);
        read::read(&self.db, &settings, scope, key_set, limit, bytes).await
    }

    async fn count(&self, scope: &Scope, key_set: &KeySet) -> Result<i64> {
        in_catalog_tx!(self, scope, |transaction| read::count(&transaction, scope, key_set))
    }
}

#[async_trait]
impl Source for PostgresConnection {
    async fn check_keys(&self, scope: &Scope, max_rows: Option<u64>) -> Result<()> {
        let checks = key_checks(Dialect::Postgres, scope, max_rows);
        if checks.is_empty() {
            return Ok(());
        }
        in_catalog_tx!(self, scope, |transaction| read::check_keys(&transaction, scope, checks))
    }

    async fn split(&self, scope: &Scope, segments: u32) -> Result<Vec<KeyRange>> {
        in_catalog_tx!(self, scope, |transaction| split::split(&transaction, scope, segments))
    }

    async fn cut(&self, scope: &Scope, at: CutRange<'_>, limits: CutLimits) -> Result<ChunkPage> {
        let cutter = ChunkCutter::new(at.within, at.range, limits);
        in_catalog_tx!(self, scope, |transaction| cut::cut(&transaction, scope, at, cutter))
    }

    async fn blocks(&self, scope: &Scope) -> Result<Option<BlockCount>> {
        in_catalog_tx!(self, scope, |transaction| snapshot::blocks(&transaction, scope))
    }

    async fn cut_values(&self, scope: &Scope, values: FilterValues<'_>) -> Result<ValuePages> {
        let FilterValues { filter, values, chunk_items } = values;
        in_catalog_tx!(self, scope, |transaction| cut::cut_values(
            &transaction,
            scope,
            filter,
            values,
            chunk_items
        ))
    }

    async fn count_each(&self, scope: &Scope, key_sets: &[KeySet]) -> Result<Vec<i64>> {
        in_catalog_tx!(self, scope, |transaction| read::count_each(&transaction, scope, key_sets))
    }

    async fn distinct(&self, scope: &Scope, columns: &[String], rows: RowSet) -> Result<RowSet> {
        in_catalog_tx!(self, scope, |transaction| read::distinct(
            &transaction,
            scope,
            columns,
            &rows
        ))
    }
}
