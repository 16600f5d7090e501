//! A connection with replicas: what is only read is spread over them, everything else is the
//! primary's.
//!
//! What goes to a replica is written here by hand, method by method, so that a new one is the
//! primary's until somebody decides otherwise.

mod lag;
mod replica;
mod replicas;

pub use lag::Standing;
pub use replicas::Replicas;

use crate::{
    Batch, Bound, ChunkPage, Commit, Committed, Connection, DataError, DeferredItem, DeferredState,
    Emitted, FanIn, Fence, Ledger, LedgerRow, Outbox, Params, Parts, Preview, Result, Rows,
    ScanSegment, Scope, Source, Target, WriteItem,
};
use async_trait::async_trait;
use replica::Replica;
use replicas::Failed;
use std::sync::Arc;
use tokio::sync::mpsc::{self, Sender};
use windlass_core::{
    ChunkId, Column, FilterValue, JobId, Key, KeyRange, KeySet, Load, Table, Template, Value,
};
use windlass_drivers::{Class, Error};
#[cfg(feature = "export")]
use windlass_export::RecordBatch;

/// The connection and its replicas.
pub struct Replicated {
    /// Where everything is that replicas do not serve.
    pub primary: Arc<dyn Connection>,
    /// Those that serve the reads.
    pub replicas: Arc<Replicas>,
    /// Which reads they serve.
    pub reads: Reads,
}

/// What is read on replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// What parts are made of: `map` and `extract`.
    Parts,
    /// The records of a dry run too. Nothing that is read this way is ever written back.
    Samples,
}

/// Asks the replicas that are well one after the other, and at last the primary.
macro_rules! spread {
    ($replicated:expr, |$connection:ident| $read:expr) => {{
        for (replica, $connection) in $replicated.replicas.well().await {
            match $read.await {
                Ok(read) => return Ok(read),
                Err(error) => drop(tell(&replica, error)?),
            }
        }
        let $connection = &$replicated.primary;
        $read.await
    }};
}

/// Gives an error back that others would give as well; says what is this replica's own.
fn tell(replica: &Replica, error: DataError) -> Result<DataError> {
    match Failed::of(&error) {
        Failed::Everywhere => return Err(error),
        Failed::Away => replica.leave_out(&format!("is away: {error}")),
        Failed::Elsewhere => {
            tracing::warn!(%error, "replica {} did not serve a read; another does", replica.name);
        }
    }
    Ok(error)
}

/// Extracts from a replica; says also whether batches have gone out already.
#[cfg(feature = "export")]
async fn extract_from(
    connection: &dyn Connection,
    scope: &Scope,
    key_set: &KeySet,
    columns: &[Column],
    to: &Sender<RecordBatch>,
) -> (Result<()>, bool) {
    let (batches, mut arriving) = mpsc::channel(1);
    let mut begun = false;
    let forward = async {
        while let Some(batch) = arriving.recv().await {
            begun = true;
            if to.send(batch).await.is_err() {
                // Nobody takes them any more, which the reader notices by the closed channel.
                arriving.close();
            }
        }
    };
    let (extracted, ()) =
        tokio::join!(connection.extract(scope, key_set, columns, batches), forward);
    (extracted, begun)
}

/// Half of a part is of no use elsewhere. As for a connection that broke, the chunk begins anew
/// without having failed.
fn again(error: &DataError) -> DataError {
    Error::new(Class::Connection, format!("a replica broke off: {error}")).into()
}

#[async_trait]
impl Source for Replicated {
    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        self.primary.check_statement(job_type)
    }

    async fn tables(&self) -> Result<Vec<String>> {
        self.primary.tables().await
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        self.primary.describe(source).await
    }

    async fn check_keys(&self, scope: &Scope, most: Option<u64>) -> Result<()> {
        self.primary.check_keys(scope, most).await
    }

    async fn split(&self, scope: &Scope, segments: u32) -> Result<Vec<KeyRange>> {
        self.primary.split(scope, segments).await
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
        self.primary.cut(scope, within, range, items, most_chunks, most_items).await
    }

    async fn cut_values(
        &self,
        scope: &Scope,
        filter: &str,
        values: &[Value],
        items: u32,
    ) -> Result<Vec<Option<ChunkPage>>> {
        self.primary.cut_values(scope, filter, values, items).await
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
        self.primary.scan(scope, share, after, items, most_chunks, most_items).await
    }

    async fn read(
        &self,
        scope: &Scope,
        key_set: &KeySet,
        limit: u32,
        bytes: usize,
    ) -> Result<Batch> {
        if self.reads == Reads::Parts {
            return self.primary.read(scope, key_set, limit, bytes).await;
        }
        spread!(self, |connection| connection.read(scope, key_set, limit, bytes))
    }

    async fn measure(&self, sql: &str) -> Result<Option<f64>> {
        self.primary.measure(sql).await
    }

    async fn count(&self, scope: &Scope, key_set: &KeySet) -> Result<i64> {
        if self.reads == Reads::Parts {
            return self.primary.count(scope, key_set).await;
        }
        spread!(self, |connection| connection.count(scope, key_set))
    }

    async fn count_each(&self, scope: &Scope, key_sets: &[KeySet]) -> Result<Vec<i64>> {
        self.primary.count_each(scope, key_sets).await
    }

    async fn distinct(
        &self,
        scope: &Scope,
        columns: &[String],
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Value>>> {
        self.primary.distinct(scope, columns, rows).await
    }
}

#[async_trait]
impl Target for Replicated {
    async fn prepare(&self) -> Result<()> {
        self.primary.prepare().await
    }

    async fn check_ledger(&self) -> Result<()> {
        self.primary.check_ledger().await
    }

    fn ledger_ddl(&self) -> &'static str {
        self.primary.ledger_ddl()
    }

    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        self.primary.fence(fences).await
    }

    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed> {
        self.primary.commit(scope, ledger, commit).await
    }

    async fn mark(&self, scope: &Scope, ledger: &Ledger, key_set: &KeySet) -> Result<()> {
        self.primary.mark(scope, ledger, key_set).await
    }

    async fn held(
        &self,
        chunk: ChunkId,
        state: DeferredState,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<DeferredItem>> {
        self.primary.held(chunk, state, after, limit).await
    }

    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>> {
        self.primary.ledger_rows(job, after, limit).await
    }

    async fn emitted(
        &self,
        job: JobId,
        after: &(i64, String, i64),
        limit: u32,
    ) -> Result<Vec<Emitted>> {
        self.primary.emitted(job, after, limit).await
    }

    async fn discard(&self, job: JobId) -> Result<u64> {
        self.primary.discard(job).await
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        self.primary.prune(job).await
    }

    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
        self.primary.preview(scope, key_set).await
    }

    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        self.primary.try_write(scope, item).await
    }
}

#[async_trait]
impl FanIn for Replicated {
    async fn map_columns(&self, scope: &Scope) -> Result<Vec<Column>> {
        self.primary.map_columns(scope).await
    }

    async fn map(
        &self,
        scope: &Scope,
        columns: &[Column],
        key_set: &KeySet,
    ) -> Result<Vec<Vec<Value>>> {
        spread!(self, |connection| connection.map(scope, columns, key_set))
    }

    #[cfg(feature = "export")]
    async fn extract(
        &self,
        scope: &Scope,
        key_set: &KeySet,
        columns: &[Column],
        to: Sender<RecordBatch>,
    ) -> Result<()> {
        for (replica, connection) in self.replicas.well().await {
            let (error, begun) =
                match extract_from(connection.as_ref(), scope, key_set, columns, &to).await {
                    (Ok(()), _) => return Ok(()),
                    (Err(error), begun) => (error, begun),
                };
            match tell(&replica, error)? {
                error if begun => return Err(again(&error)),
                _ => {}
            }
        }
        self.primary.extract(scope, key_set, columns, to).await
    }

    async fn reduce(
        &self,
        columns: &[Column],
        parts: Parts<'_>,
        select: &Template,
        params: &Params,
    ) -> Result<Rows> {
        self.primary.reduce(columns, parts, select, params).await
    }

    async fn replace(
        &self,
        ledger: &Ledger,
        load: &Load,
        result: &Rows,
        params: &Params,
        bounds: &[Bound],
    ) -> Result<Ledger> {
        self.primary.replace(ledger, load, result, params, bounds).await
    }
}

impl Connection for Replicated {
    fn outbox(&self) -> &dyn Outbox {
        self.primary.outbox()
    }

    fn history(&self) -> &dyn crate::LedgerHistory {
        self.primary.history()
    }
}
