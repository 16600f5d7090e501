//! Committing effects under the ledger.

use super::{SqliteConnection, commit, deferred, fence, preview};
use crate::{
    Commit, Committed, DeferredItem, DeferredState, Emitted, EmittedCursor, Fence, Ledger,
    LedgerRow, LedgerSchema, Preview, Result, Scope, Target, WriteItem,
};
use async_trait::async_trait;
use windlass_core::{ChunkId, JobId, KeySet};

#[async_trait]
impl Target for SqliteConnection {
    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        let fences = fences.to_vec();
        self.write(move |transaction| fence::fence(transaction, &fences)).await
    }

    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed> {
        let (scope, ledger) = (scope.clone(), ledger.clone());
        self.write(move |transaction| commit::commit(transaction, &scope, &ledger, commit)).await
    }

    async fn mark(&self, scope: &Scope, ledger: &Ledger, key_set: &KeySet) -> Result<()> {
        let (scope, ledger, key_set) = (scope.clone(), ledger.clone(), key_set.clone());
        self.write(move |transaction| commit::mark(transaction, &scope, &ledger, &key_set)).await
    }

    async fn deferred(
        &self,
        chunk: ChunkId,
        state: DeferredState,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<DeferredItem>> {
        let after = after.unwrap_or_default().to_owned();
        self.read(move |connection| deferred::items(connection, chunk, state, &after, limit)).await
    }

    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>> {
        self.read(move |connection| fence::rows(connection, job, after, limit)).await
    }

    async fn emitted(&self, job: JobId, after: &EmittedCursor, limit: u32) -> Result<Vec<Emitted>> {
        let after = after.clone();
        self.read(move |connection| deferred::emitted(connection, job, &after, limit)).await
    }

    async fn discard_emitted(&self, job: JobId) -> Result<u64> {
        self.write(move |transaction| deferred::discard_emitted(transaction, job)).await
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        self.write(move |transaction| deferred::prune(transaction, job)).await
    }

    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        let scope = scope.clone();
        self.write(move |transaction| preview::try_write(transaction, &scope, item)).await
    }

    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
        let (scope, key_set) = (scope.clone(), key_set.clone());
        self.write(move |transaction| preview::preview(transaction, &scope, &key_set)).await
    }
}

#[async_trait]
impl LedgerSchema for SqliteConnection {
    async fn prepare(&self) -> Result<()> {
        fence::prepare(self).await
    }

    /// Whether a file can be written is known only by writing to it.
    async fn check_ledger(&self) -> Result<()> {
        Ok(())
    }

    fn ledger_ddl(&self) -> &'static str {
        fence::LEDGER
    }
}
