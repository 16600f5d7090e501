//! Committing effects under the ledger.

use super::{PostgresConnection, commit, deferred, fence, preview, release, write};
use crate::{
    Commit, Committed, DeferredItem, DeferredState, Emitted, EmittedCursor, Fence, Ledger,
    LedgerRow, LedgerSchema, Preview, Result, Scope, Target, WriteItem,
};
use async_trait::async_trait;
use windlass_core::{ChunkId, JobId, KeySet};

#[async_trait]
impl Target for PostgresConnection {
    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        fence::fence(self, fences).await
    }

    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed> {
        commit::commit(self, scope, ledger, commit).await
    }

    async fn mark(&self, scope: &Scope, ledger: &Ledger, key_set: &KeySet) -> Result<()> {
        commit::mark(self, scope, ledger, key_set).await
    }

    async fn deferred(
        &self,
        chunk: ChunkId,
        state: DeferredState,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<DeferredItem>> {
        deferred::items(self, chunk, state, after, limit).await
    }

    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>> {
        fence::rows(self, job, after, limit).await
    }

    async fn emitted(&self, job: JobId, after: &EmittedCursor, limit: u32) -> Result<Vec<Emitted>> {
        deferred::emitted(self, job, after, limit).await
    }

    async fn discard_emitted(&self, job: JobId) -> Result<u64> {
        deferred::discard_emitted(self, job).await
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        deferred::prune(self, job).await
    }

    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        let transaction = self.write_tx(scope).await?;
        let outcome = write::write(self, &transaction, scope, vec![item]).await;
        release(transaction, outcome.map(drop)).await
    }

    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
        preview::preview(self, scope, key_set).await
    }
}

#[async_trait]
impl LedgerSchema for PostgresConnection {
    async fn prepare(&self) -> Result<()> {
        fence::prepare(self).await
    }

    async fn check_ledger(&self) -> Result<()> {
        fence::check(self).await
    }

    fn ledger_ddl(&self) -> &'static str {
        fence::LEDGER
    }
}
