//! Planning chunks and reading records.

use super::{SqliteConnection, cut, read, split};
use crate::chunk_cutter::ChunkCutter;
use crate::{
    Batch, ChunkPage, CutLimits, CutRange, FilterValues, ReadLimits, RecordReader, Result, RowSet,
    Scope, Source, ValuePages,
};
use async_trait::async_trait;
use windlass_core::{KeyRange, KeySet};

#[async_trait]
impl RecordReader for SqliteConnection {
    async fn read(&self, scope: &Scope, key_set: &KeySet, limits: ReadLimits) -> Result<Batch> {
        let ReadLimits { items: limit, bytes } = limits;
        let (scope, key_set) = (scope.clone(), key_set.clone());
        self.read(move |connection| read::read(connection, &scope, &key_set, limit, bytes)).await
    }

    async fn count(&self, scope: &Scope, key_set: &KeySet) -> Result<i64> {
        let (scope, key_set) = (scope.clone(), key_set.clone());
        self.read(move |connection| read::count(connection, &scope, &key_set)).await
    }
}

#[async_trait]
impl Source for SqliteConnection {
    async fn check_keys(&self, scope: &Scope, max_rows: Option<u64>) -> Result<()> {
        let scope = scope.clone();
        self.read(move |connection| read::check_keys(connection, &scope, max_rows)).await
    }

    async fn split(&self, scope: &Scope, segments: u32) -> Result<Vec<KeyRange>> {
        let scope = scope.clone();
        self.read(move |connection| split::split(connection, &scope, segments)).await
    }

    async fn cut(&self, scope: &Scope, at: CutRange<'_>, limits: CutLimits) -> Result<ChunkPage> {
        let CutRange { within, range, .. } = at;
        let cutter = ChunkCutter::new(within, range, limits);
        let (scope, within) = (scope.clone(), within.cloned());
        self.read(move |connection| cut::cut(connection, &scope, within.as_ref(), cutter)).await
    }

    async fn cut_values(&self, scope: &Scope, values: FilterValues<'_>) -> Result<ValuePages> {
        let FilterValues { filter, values, chunk_items } = values;
        let (scope, filter, values) = (scope.clone(), filter.to_owned(), values.to_vec());
        self.read(move |connection| {
            cut::cut_values(connection, &scope, &filter, &values, chunk_items)
        })
        .await
    }

    async fn count_each(&self, scope: &Scope, key_sets: &[KeySet]) -> Result<Vec<i64>> {
        let (scope, key_sets) = (scope.clone(), key_sets.to_vec());
        self.read(move |connection| read::count_each(connection, &scope, &key_sets)).await
    }

    async fn distinct(&self, scope: &Scope, columns: &[String], rows: RowSet) -> Result<RowSet> {
        let (scope, columns) = (scope.clone(), columns.to_vec());
        self.read(move |connection| read::distinct(connection, &scope, &columns, rows)).await
    }
}
