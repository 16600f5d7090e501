//! Committing effects under the ledger.

use super::{DynamodbConnection, commit, deferred, fence, no_marks, write};
use crate::RecordReader as _;
use crate::{
    Commit, Committed, DeferredItem, DeferredState, Emitted, EmittedCursor, Fence, Ledger,
    LedgerRow, LedgerSchema, Preview, Result, Scope, Target, WriteItem,
};
use async_trait::async_trait;
use windlass_core::{ChunkId, JobId, KeySet};
use windlass_core::{Columns, Record, Value};

#[async_trait]
impl Target for DynamodbConnection {
    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        fence::fence(self, fences).await
    }

    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed> {
        commit::commit(self, scope, ledger, commit).await
    }

    fn max_commit_items(&self) -> u32 {
        // One action updates the ledger row.
        commit::MAX_ACTIONS as u32 - 1
    }

    async fn mark(&self, _: &Scope, _: &Ledger, _: &KeySet) -> Result<()> {
        Err(no_marks())
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
        deferred::ledger_rows(self, job, after, limit).await
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

    /// A write cannot be rolled back here, so the effect of a refresh is computed.
    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
        let version = write::version(scope)?;
        let batch = self.read(scope, key_set, Preview::MAX_RECORDS as u32, usize::MAX).await?;
        let raised = |(name, value): (&str, &Value)| match value {
            Value::Int(number) if name == version => Value::Int(number + 1),
            other => other.clone(),
        };
        let preview = |item: crate::Item| {
            let columns: Columns = item.record.iter().map(|(name, _)| name.to_owned()).collect();
            let after = Record::new(columns, item.record.iter().map(raised).collect());
            Preview { key: item.key, before: item.record, after: Some(after) }
        };
        Ok(batch.items.into_iter().map(preview).collect())
    }

    /// A write cannot be rolled back here, so only what needs no database is checked.
    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        let chunk = ChunkId { job: JobId::nil(), number: 0 };
        write::actions(self, scope, chunk, 0, &item).await.map(drop)
    }
}

#[async_trait]
impl LedgerSchema for DynamodbConnection {
    async fn prepare(&self) -> Result<()> {
        fence::prepare(self).await
    }

    async fn check_ledger(&self) -> Result<()> {
        fence::check(self).await
    }

    fn ledger_ddl(&self) -> &'static str {
        fence::DDL
    }
}
