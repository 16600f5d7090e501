//! Planning chunks and reading records.

use super::cut::{self, Walk};
use super::{DynamodbConnection, read};
use crate::ScanSegment;
use crate::{Batch, ChunkPage, CutLimits, RecordReader, Result, Scope, Source};
use async_trait::async_trait;
use windlass_core::Key;
use windlass_core::{FilterValue, KeyRange, KeySet, Value};

#[async_trait]
impl RecordReader for DynamodbConnection {
    async fn read(
        &self,
        scope: &Scope,
        key_set: &KeySet,
        limit: u32,
        bytes: usize,
    ) -> Result<Batch> {
        read::read(self, scope, key_set, limit, bytes).await
    }

    async fn count(&self, scope: &Scope, key_set: &KeySet) -> Result<i64> {
        read::count(self, scope, key_set).await
    }
}

#[async_trait]
impl Source for DynamodbConnection {
    /// The database guarantees that every record has a unique key.
    async fn check_keys(&self, _: &Scope, _: Option<u64>) -> Result<()> {
        Ok(())
    }

    async fn split(&self, _: &Scope, segments: u32) -> Result<Vec<KeyRange>> {
        Ok(vec![KeyRange::ALL; segments.max(1) as usize])
    }

    async fn cut(
        &self,
        scope: &Scope,
        within: Option<&FilterValue>,
        range: &KeyRange,
        limits: CutLimits,
    ) -> Result<ChunkPage> {
        let whole = ScanSegment { number: 0, of: 1 };
        let walk = within.map_or(Walk::Segment(whole), Walk::Value);
        cut::cut(self, scope, walk, range.after.as_ref(), limits).await
    }

    async fn scan(
        &self,
        scope: &Scope,
        segment: ScanSegment,
        after: Option<&Key>,
        limits: CutLimits,
    ) -> Result<ChunkPage> {
        cut::cut(self, scope, Walk::Segment(segment), after, limits).await
    }

    async fn distinct(
        &self,
        scope: &Scope,
        columns: &[String],
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Value>>> {
        read::distinct(scope, columns, rows)
    }
}
