//! DynamoDB: scans and key lists instead of ranges, transactions of a hundred actions.

mod cancel;
mod commit;
mod cut;
mod deferred;
mod describe;
mod expression;
mod fan_in;
mod fence;
mod history;
mod outbox;
mod read;
mod records;
mod rows;
pub mod value;
mod write;

pub use records::{JOBS, Records, Remembering, Written};

use crate::{
    Batch, ChunkPage, Commit, Committed, Connection, DataError, DeferredItem, DeferredState,
    Emitted, Fence, Ledger, LedgerRow, Outbox, Preview, Result, ScanSegment, Scope, Source, Target,
    WriteItem,
};
use async_trait::async_trait;
use cut::{Measure, Walk};
use describe::Shape;
use rand::Rng as _;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use windlass_core::problem::Code;
use windlass_core::{
    ChunkId, Columns, FilterValue, JobId, Key, KeyRange, KeySet, Problem, Record, Table, Value,
};
use windlass_drivers::dynamodb::sdk::config::retry::RetryConfig;
use windlass_drivers::dynamodb::sdk::{Client, config};
use windlass_drivers::dynamodb::{self, SdkConfig};
use windlass_drivers::{Class, Error};

/// The ledger's table.
const LEDGER: &str = "windlass_ledger";

/// The tables of one account and region.
pub(crate) struct DynamodbData {
    /// Tries again by itself what may be repeated.
    client: Client,
    /// Sends everything once.
    once: Client,
    shapes: Mutex<HashMap<String, Arc<Shape>>>,
}

impl DynamodbData {
    pub(crate) async fn open(url: &str) -> Result<DynamodbData> {
        Ok(DynamodbData::new(&dynamodb::settings(url).await?))
    }

    fn new(settings: &SdkConfig) -> DynamodbData {
        let once = config::Builder::from(settings).retry_config(RetryConfig::disabled()).build();
        let (client, once) = (Client::new(settings), Client::from_conf(once));
        DynamodbData { client, once, shapes: Mutex::default() }
    }

    /// A table's keys and indexes as they were last seen.
    async fn shape(&self, table: &str) -> Result<Arc<Shape>> {
        let known = self.shapes.lock().unwrap_or_else(PoisonError::into_inner).get(table).cloned();
        match known {
            Some(shape) => Ok(shape),
            None => Ok(self.learn(table, describe::shape(&describe::look(self, table).await?))),
        }
    }

    fn learn(&self, table: &str, shape: Shape) -> Arc<Shape> {
        let shape = Arc::new(shape);
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        shapes.insert(table.to_owned(), shape.clone());
        shape
    }
}

/// Rests between tries, each about twice as long as the one before.
#[derive(Default)]
struct Patience {
    tries: u32,
}

impl Patience {
    /// All rests together take about a quarter of a minute; then whoever holds the chunk hands it back,
    /// and it is tried again later for as long as it takes.
    const MOST: u32 = 11;
    const FIRST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(3);

    /// Rests, or says that it was enough.
    async fn wait(&mut self) -> std::result::Result<(), ()> {
        if self.tries == Patience::MOST {
            return Err(());
        }
        let rest = (Patience::FIRST * 2u32.pow(self.tries)).min(Patience::LONGEST);
        self.tries += 1;
        // By chance, so that those who met do not meet again.
        let rest = rest.mul_f64(rand::rng().random_range(0.5..1.0));
        tokio::time::sleep(rest).await;
        Ok(())
    }
}

fn throttled() -> Error {
    Error::new(Class::Busy, "DynamoDB is busy: its capacity is used up, or others write the same")
}

/// A request of ours that lacks something, which only a mistake here can make.
fn unbuilt(error: &dyn std::error::Error) -> Error {
    Error::new(Class::Other, format!("a request cannot be made: {error}"))
}

#[async_trait]
impl Source for DynamodbData {
    async fn tables(&self) -> Result<Vec<String>> {
        describe::tables(self).await
    }

    async fn measure(&self, _: &str) -> Result<Option<f64>> {
        Err(Problem::field(Code::Source, "health", "DynamoDB runs no statements").into())
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        describe::describe(self, source).await
    }

    /// The database has no record without a key, and no two of one.
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
        items: u32,
        most_chunks: u32,
        most_items: Option<u64>,
    ) -> Result<ChunkPage> {
        let whole = ScanSegment { number: 0, of: 1 };
        let walk = within.map_or(Walk::ScanSegment(whole), Walk::Value);
        let measure = Measure { items, most_chunks, most_items };
        cut::cut(self, scope, walk, range.after.as_ref(), measure).await
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
        let measure = Measure { items, most_chunks, most_items };
        cut::cut(self, scope, Walk::ScanSegment(share), after, measure).await
    }

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

    async fn distinct(
        &self,
        scope: &Scope,
        columns: &[String],
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Value>>> {
        read::distinct(scope, columns, rows)
    }
}

#[async_trait]
impl Target for DynamodbData {
    async fn prepare(&self) -> Result<()> {
        fence::prepare(self).await
    }

    async fn check_ledger(&self) -> Result<()> {
        fence::check(self).await
    }

    fn ledger_ddl(&self) -> &'static str {
        fence::DDL
    }

    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        fence::fence(self, fences).await
    }

    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed> {
        commit::commit(self, scope, ledger, commit).await
    }

    fn most_items(&self) -> u32 {
        // One action is the ledger's.
        commit::ACTIONS as u32 - 1
    }

    async fn mark(&self, _: &Scope, _: &Ledger, _: &KeySet) -> Result<()> {
        Err(no_marks())
    }

    async fn held(
        &self,
        chunk: ChunkId,
        state: DeferredState,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<DeferredItem>> {
        deferred::held(self, chunk, state, after, limit).await
    }

    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>> {
        deferred::ledger_rows(self, job, after, limit).await
    }

    async fn emitted(
        &self,
        job: JobId,
        after: &(i64, String, i64),
        limit: u32,
    ) -> Result<Vec<Emitted>> {
        deferred::emitted(self, job, after, limit).await
    }

    async fn discard(&self, job: JobId) -> Result<u64> {
        deferred::discard(self, job).await
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        deferred::prune(self, job).await
    }

    /// Nothing can be written and taken back here, so what a refresh would do is computed.
    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
        let version = write::version(scope)?;
        let batch = self.read(scope, key_set, Preview::SHOWN as u32, usize::MAX).await?;
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

    /// Nothing can be written and taken back here: what can be known without the database is.
    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        let chunk = ChunkId { job: JobId::nil(), number: 0 };
        write::actions(self, scope, chunk, 0, &item).await.map(drop)
    }
}

impl Connection for DynamodbData {
    fn outbox(&self) -> &dyn Outbox {
        self
    }

    fn history(&self) -> &dyn crate::LedgerHistory {
        self
    }
}

fn no_marks() -> DataError {
    Problem::field(Code::Source, "step.mark", "goes with step.sql, which DynamoDB has not").into()
}
