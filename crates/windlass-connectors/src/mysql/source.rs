//! Planning chunks and reading records.

use super::{CATALOG_TIMEOUT, MysqlConnection, cut, in_read_tx, read, release, split};
use crate::chunk_cutter::ChunkCutter;
use crate::{
    Batch, ChunkPage, CutLimits, CutRange, FilterValues, ReadLimits, RecordReader, Result, RowSet,
    Scope, Source, ValuePages,
};
use async_trait::async_trait;
use windlass_core::{KeyRange, KeySet};

#[async_trait]
impl RecordReader for MysqlConnection {
    async fn read(&self, scope: &Scope, key_set: &KeySet, limits: ReadLimits) -> Result<Batch> {
        let ReadLimits { items: limit, bytes } = limits;
        let timeout = scope.job_type.chunk.timeout;
        in_read_tx!(self, timeout, |transaction| read::read(
            transaction,
            scope,
            key_set,
            limit,
            bytes
        ))
    }

    async fn count(&self, scope: &Scope, key_set: &KeySet) -> Result<i64> {
        in_read_tx!(self, CATALOG_TIMEOUT, |transaction| read::count(transaction, scope, key_set))
    }
}

#[async_trait]
impl Source for MysqlConnection {
    async fn check_keys(&self, scope: &Scope, max_rows: Option<u64>) -> Result<()> {
        in_read_tx!(self, CATALOG_TIMEOUT, |transaction| read::check_keys(
            transaction,
            scope,
            max_rows
        ))
    }

    async fn split(&self, scope: &Scope, segments: u32) -> Result<Vec<KeyRange>> {
        in_read_tx!(self, CATALOG_TIMEOUT, |transaction| split::split(transaction, scope, segments))
    }

    async fn cut(&self, scope: &Scope, at: CutRange<'_>, limits: CutLimits) -> Result<ChunkPage> {
        let CutRange { within, range, .. } = at;
        let cutter = ChunkCutter::new(within, range, limits);
        in_read_tx!(self, CATALOG_TIMEOUT, |transaction| cut::cut(
            transaction,
            scope,
            within,
            cutter
        ))
    }

    async fn cut_values(&self, scope: &Scope, values: FilterValues<'_>) -> Result<ValuePages> {
        let FilterValues { filter, values, chunk_items } = values;
        in_read_tx!(self, CATALOG_TIMEOUT, |transaction| cut::cut_values(
            transaction,
            scope,
            filter,
            values,
            chunk_items
        ))
    }

    async fn count_each(&self, scope: &Scope, key_sets: &[KeySet]) -> Result<Vec<i64>> {
        in_read_tx!(self, CATALOG_TIMEOUT, |transaction| read::count_each(
            transaction,
            scope,
            key_sets
        ))
    }

    async fn distinct(&self, scope: &Scope, columns: &[String], rows: RowSet) -> Result<RowSet> {
        in_read_tx!(self, CATALOG_TIMEOUT, |transaction| read::distinct(
            transaction,
            scope,
            columns,
            rows
        ))
    }
}
