//! The roles that Redshift does not serve for: reading records, committing batches, an outbox. `check` refuses such a
//! configuration; this is what a caller of the library gets.

use super::{RedshiftConnection, only_loads};
#[cfg(feature = "export")]
use crate::Extraction;
use crate::outbox::{Outbox, OutboxType, Relayed, Submitter, Waiting};
use crate::source::RowSet;
use crate::{
    Batch, ChunkPage, Commit, Committed, Committing, CutLimits, CutRange, DeferredItem,
    DeferredItems, DeferredPage, DryRun, Emitted, EmittedCursor, FanIn, Ledger, Mapped, Marked,
    Preview, ReadLimits, RecordReader, Result, Scope, Source, WriteItem,
};
use async_trait::async_trait;
use std::time::Duration;
use windlass_core::{ChunkId, Column, JobId, KeyRange, KeySet};

#[async_trait]
impl RecordReader for RedshiftConnection {
    async fn read(&self, _: &Scope, _: &KeySet, _: ReadLimits) -> Result<Batch> {
        Err(only_loads())
    }

    async fn count(&self, _: &Scope, _: &KeySet) -> Result<i64> {
        Err(only_loads())
    }
}

#[async_trait]
impl Source for RedshiftConnection {
    async fn check_keys(&self, _: &Scope, _: Option<u64>) -> Result<()> {
        Err(only_loads())
    }

    async fn split(&self, _: &Scope, _: u32) -> Result<Vec<KeyRange>> {
        Err(only_loads())
    }

    async fn cut(&self, _: &Scope, _: CutRange<'_>, _: CutLimits) -> Result<ChunkPage> {
        Err(only_loads())
    }

    async fn distinct(&self, _: &Scope, _: &[String], _: RowSet) -> Result<RowSet> {
        Err(only_loads())
    }
}

#[async_trait]
impl Committing for RedshiftConnection {
    async fn commit(&self, _: &Scope, _: &Ledger, _: Commit) -> Result<Committed> {
        Err(only_loads())
    }

    async fn mark(&self, _: &Scope, _: &Ledger, _: &KeySet) -> Result<Marked> {
        Err(only_loads())
    }
}

/// A load defers and emits nothing, but its ledger row is pruned.
#[async_trait]
impl DeferredItems for RedshiftConnection {
    async fn deferred(&self, _: ChunkId, _: DeferredPage<'_>) -> Result<Vec<DeferredItem>> {
        Ok(Vec::new())
    }

    async fn emitted(&self, _: JobId, _: &EmittedCursor, _: u32) -> Result<Vec<Emitted>> {
        Ok(Vec::new())
    }

    async fn discard_emitted(&self, _: JobId) -> Result<u64> {
        Ok(0)
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        self.prune_rows(job).await
    }
}

#[async_trait]
impl DryRun for RedshiftConnection {
    async fn preview(&self, _: &Scope, _: &KeySet) -> Result<Vec<Preview>> {
        Err(only_loads())
    }

    async fn try_write(&self, _: &Scope, _: WriteItem) -> Result<()> {
        Err(only_loads())
    }
}

#[async_trait]
impl FanIn for RedshiftConnection {
    async fn map_columns(&self, _: &Scope) -> Result<Vec<Column>> {
        Err(only_loads())
    }

    async fn map(&self, _: &Scope, _: &[Column], _: &KeySet) -> Result<Mapped> {
        Err(only_loads())
    }

    #[cfg(feature = "export")]
    async fn extract(&self, _: &Scope, _: Extraction<'_>) -> Result<()> {
        Err(only_loads())
    }
}

#[async_trait]
impl Outbox for RedshiftConnection {
    async fn prepare(&self, _: &[OutboxType]) -> Result<()> {
        Err(only_loads())
    }

    fn ddl(&self) -> &'static str {
        ""
    }

    async fn relay(&self, _: &dyn Submitter) -> Result<Relayed> {
        Err(only_loads())
    }

    async fn waiting(&self, _: u32) -> Result<Option<Vec<Waiting>>> {
        Ok(None)
    }

    async fn changed(&self, timeout: Duration) {
        tokio::time::sleep(timeout).await;
    }
}
