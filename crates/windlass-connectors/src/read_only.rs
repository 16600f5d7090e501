//! A connection whose records are only read: what is done with a chunk is in its part, and the store
//! alone says whether it is done. So there is no ledger, and the source may be read-only.

use crate::{
    Batch, Bound, ChunkPage, Commit, Committed, Connection, DataError, DeferredItem, DeferredState,
    Emitted, FanIn, Fence, Ledger, LedgerRow, Outbox, Params, Parts, Preview, Result, Rows,
    ScanSegment, Scope, Source, Target, WriteItem,
};
use async_trait::async_trait;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
use windlass_core::problem::{Code, Problem};
use windlass_core::{
    ChunkId, Column, Counts, Cursor, FilterValue, JobId, Key, KeyRange, KeySet, Load, Table,
    Template, Value,
};
#[cfg(feature = "export")]
use windlass_export::RecordBatch;

/// The connection without its ledger.
pub struct ReadOnly(pub Arc<dyn Connection>);

#[async_trait]
impl Source for ReadOnly {
    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        self.0.check_statement(job_type)
    }

    async fn tables(&self) -> Result<Vec<String>> {
        self.0.tables().await
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        self.0.describe(source).await
    }

    async fn check_keys(&self, scope: &Scope, most: Option<u64>) -> Result<()> {
        self.0.check_keys(scope, most).await
    }

    async fn split(&self, scope: &Scope, segments: u32) -> Result<Vec<KeyRange>> {
        self.0.split(scope, segments).await
    }

    async fn cut(
        &self,
        scope: &Scope,
        within: Option<&FilterValue>,
        range: &KeyRange,
        items: u32,
        most_chunks: u32,
        most_items: Option<u64>,
    ) -> Result<ChunkPage> {
        self.0.cut(scope, within, range, items, most_chunks, most_items).await
    }

    async fn cut_values(
        &self,
        scope: &Scope,
        filter: &str,
        values: &[Value],
        items: u32,
    ) -> Result<Vec<Option<ChunkPage>>> {
        self.0.cut_values(scope, filter, values, items).await
    }

    async fn scan(
        &self,
        scope: &Scope,
        share: ScanSegment,
        after: Option<&Key>,
        items: u32,
        most_chunks: u32,
        most_items: Option<u64>,
    ) -> Result<ChunkPage> {
        self.0.scan(scope, share, after, items, most_chunks, most_items).await
    }

    async fn read(
        &self,
        scope: &Scope,
        key_set: &KeySet,
        limit: u32,
        bytes: usize,
    ) -> Result<Batch> {
        self.0.read(scope, key_set, limit, bytes).await
    }

    async fn measure(&self, sql: &str) -> Result<Option<f64>> {
        self.0.measure(sql).await
    }

    async fn count(&self, scope: &Scope, key_set: &KeySet) -> Result<i64> {
        self.0.count(scope, key_set).await
    }

    async fn count_each(&self, scope: &Scope, key_sets: &[KeySet]) -> Result<Vec<i64>> {
        self.0.count_each(scope, key_sets).await
    }

    async fn distinct(
        &self,
        scope: &Scope,
        columns: &[String],
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Value>>> {
        self.0.distinct(scope, columns, rows).await
    }
}

#[async_trait]
impl Target for ReadOnly {
    async fn prepare(&self) -> Result<()> {
        Ok(())
    }

    async fn check_ledger(&self) -> Result<()> {
        Ok(())
    }

    fn ledger_ddl(&self) -> &'static str {
        ""
    }

    /// Every claim begins anew: a part is made whole or not at all.
    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        let fresh = |fence: &Fence| {
            Some(Ledger {
                chunk: fence.chunk,
                epoch: fence.epoch,
                nonce: fence.nonce,
                commits: 0,
                cursor: Cursor::Start,
                counts: Counts::default(),
                stalls: 0,
            })
        };
        Ok(fences.iter().map(fresh).collect())
    }

    async fn commit(&self, _: &Scope, _: &Ledger, _: Commit) -> Result<Committed> {
        Err(only_read())
    }

    async fn mark(&self, _: &Scope, _: &Ledger, _: &KeySet) -> Result<()> {
        Err(only_read())
    }

    async fn held(
        &self,
        _: ChunkId,
        _: DeferredState,
        _: Option<&str>,
        _: u32,
    ) -> Result<Vec<DeferredItem>> {
        Ok(Vec::new())
    }

    async fn ledger_rows(&self, _: JobId, _: i64, _: u32) -> Result<Vec<LedgerRow>> {
        Ok(Vec::new())
    }

    async fn emitted(&self, _: JobId, _: &(i64, String, i64), _: u32) -> Result<Vec<Emitted>> {
        Ok(Vec::new())
    }

    async fn discard(&self, _: JobId) -> Result<u64> {
        Ok(0)
    }

    async fn prune(&self, _: JobId) -> Result<u64> {
        Ok(0)
    }

    async fn preview(&self, _: &Scope, _: &KeySet) -> Result<Vec<Preview>> {
        Err(only_read())
    }

    async fn try_write(&self, _: &Scope, _: WriteItem) -> Result<()> {
        Err(only_read())
    }
}

#[async_trait]
impl FanIn for ReadOnly {
    async fn map_columns(&self, scope: &Scope) -> Result<Vec<Column>> {
        self.0.map_columns(scope).await
    }

    async fn map(
        &self,
        scope: &Scope,
        columns: &[Column],
        key_set: &KeySet,
    ) -> Result<Vec<Vec<Value>>> {
        self.0.map(scope, columns, key_set).await
    }

    #[cfg(feature = "export")]
    async fn extract(
        &self,
        scope: &Scope,
        key_set: &KeySet,
        columns: &[Column],
        to: Sender<RecordBatch>,
    ) -> Result<()> {
        self.0.extract(scope, key_set, columns, to).await
    }

    async fn reduce(
        &self,
        columns: &[Column],
        parts: Parts<'_>,
        select: &Template,
        params: &Params,
    ) -> Result<Rows> {
        self.0.reduce(columns, parts, select, params).await
    }

    async fn replace(
        &self,
        ledger: &Ledger,
        load: &Load,
        result: &Rows,
        params: &Params,
        bounds: &[Bound],
    ) -> Result<Ledger> {
        self.0.replace(ledger, load, result, params, bounds).await
    }
}

impl Connection for ReadOnly {
    fn outbox(&self) -> &dyn Outbox {
        self.0.outbox()
    }

    fn history(&self) -> &dyn crate::LedgerHistory {
        self.0.history()
    }
}

fn only_read() -> DataError {
    Problem::new(Code::Source, "the step only reads the source").into()
}
