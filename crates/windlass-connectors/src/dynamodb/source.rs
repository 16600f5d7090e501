//! Planning chunks and reading records.

use super::cut::{self, Walk};
use super::{DynamodbConnection, read};
use crate::ScanSegment;
use crate::{
    Batch, ChunkPage, CutLimits, CutRange, ReadLimits, RecordReader, Result, RowSet, Scope, Source,
};
use async_trait::async_trait;
use windlass_core::Key;
use windlass_core::{KeyRange, KeySet};

#[async_trait]
impl RecordReader for DynamodbConnection {
    async fn read(&self, scope: &Scope, key_set: &KeySet, limits: ReadLimits) -> Result<Batch> {
        let ReadLimits { items: limit, bytes } = limits;
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

    async fn cut(&self, scope: &Scope, at: CutRange<'_>, limits: CutLimits) -> Result<ChunkPage> {
        let CutRange { within, range, .. } = at;
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

    async fn distinct(&self, scope: &Scope, columns: &[String], rows: RowSet) -> Result<RowSet> {
        read::distinct(scope, columns, rows)
    }
}
