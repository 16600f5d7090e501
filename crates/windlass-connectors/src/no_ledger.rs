//! The target of a job that only reads its source. Its parts are files, and the store alone records
//! which chunks are completed. The source needs no ledger and may be read-only.

use crate::{
    Commit, Committed, Committing, ConnectorError, DeferredItem, DeferredItems, DeferredPage,
    DryRun, Emitted, EmittedCursor, Fence, Fencing, Ledger, LedgerRow, Marked, Preview, Result,
    Scope, WriteItem,
};
use async_trait::async_trait;
use windlass_core::problem::{Code, Problem};
use windlass_core::{ChunkId, Counts, Cursor, JobId, KeySet};

/// A target without a ledger: fencing always succeeds, and committing is refused.
#[derive(Clone, Copy, Debug)]
pub struct NoLedger;

#[async_trait]
impl Fencing for NoLedger {
    /// Every lease starts from the beginning, since a part is written whole or not at all.
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

    async fn fence_again(&self, ledger: &Ledger) -> Result<Option<Ledger>> {
        Ok(Some(ledger.clone()))
    }

    async fn ledger_rows(&self, _: JobId, _: i64, _: u32) -> Result<Vec<LedgerRow>> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Committing for NoLedger {
    async fn commit(&self, _: &Scope, _: &Ledger, _: Commit) -> Result<Committed> {
        Err(read_only())
    }

    async fn mark(&self, _: &Scope, _: &Ledger, _: &KeySet) -> Result<Marked> {
        Err(read_only())
    }
}

#[async_trait]
impl DeferredItems for NoLedger {
    async fn deferred(&self, _: ChunkId, _: DeferredPage<'_>) -> Result<Vec<DeferredItem>> {
        Ok(Vec::new())
    }

    async fn emitted(&self, _: JobId, _: &EmittedCursor, _: u32) -> Result<Vec<Emitted>> {
        Ok(Vec::new())
    }

    async fn discard_emitted(&self, _: JobId) -> Result<u64> {
        Ok(0)
    }

    async fn prune(&self, _: JobId) -> Result<u64> {
        Ok(0)
    }
}

#[async_trait]
impl DryRun for NoLedger {
    async fn preview(&self, _: &Scope, _: &KeySet) -> Result<Vec<Preview>> {
        Err(read_only())
    }

    async fn try_write(&self, _: &Scope, _: WriteItem) -> Result<()> {
        Err(read_only())
    }
}

fn read_only() -> ConnectorError {
    Problem::new(Code::Source, "the step only reads the source").into()
}
