//! Records that came with the request: read from memory, while their effects are committed on the
//! connection like any other's.

use crate::chunk_cutter::{Next, Page};
use crate::{
    Batch, Bound, ChunkPage, Commit, Committed, Connection, DataError, DeferredItem, DeferredState,
    Emitted, FanIn, Fence, Item, Ledger, LedgerRow, Outbox, Params, Parts, Preview, Result, Rows,
    Scope, Source, Target, WriteItem,
};
use async_trait::async_trait;
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
use windlass_core::inline_items::key_of;
use windlass_core::{
    ChunkId, Column, ColumnType, Columns, FilterValue, Index, JobId, Key, KeyRange, KeySet, Keys,
    Load, Problem, Record, Table, Template, Value, problem::Code,
};
#[cfg(feature = "export")]
use windlass_export::RecordBatch;

/// The items of one request as a source, and the connection that their effects go to.
pub struct Items {
    /// In the order of their keys.
    items: Vec<Item>,
    /// The place of each item by its key's text.
    places: HashMap<String, usize>,
    connection: Arc<dyn Connection>,
}

impl Items {
    /// The items of a request, which has passed [`windlass_core::Request::check`].
    pub fn new(items: Vec<Json>, key: &[String], connection: Arc<dyn Connection>) -> Result<Items> {
        let mut columns = Columns::from([]);
        let read = items.into_iter().map(|item| {
            let key = key_of(&item, key).map_err(|(field, why)| {
                Problem::field(Code::Request, format!("items{field}"), why)
            })?;
            Ok(Item { key, version: Value::Null, record: record(item, &mut columns) })
        });
        let mut items = read.collect::<Result<Vec<Item>>>()?;
        items.sort_by(|one, other| compare(&one.key, &other.key));
        let places = items.iter().enumerate().map(|(n, item)| (item.key.to_text(), n)).collect();
        Ok(Items { items, places, connection })
    }

    /// What stands for the table of a source whose records come with the request.
    pub fn table(source: &windlass_core::Source, rows: usize) -> Table {
        let column = |name: &String| Column {
            name: name.clone(),
            kind: ColumnType::Other,
            sql_type: String::new(),
            nullable: false,
        };
        Table {
            name: "items".to_owned(),
            columns: source.key.iter().map(column).collect(),
            primary_key: source.key.clone(),
            indexes: vec![Index { columns: source.key.clone(), unique: true }],
            estimated_rows: rows as u64,
            ..Table::default()
        }
    }

    /// About how many bytes of memory the items take.
    pub fn size(&self) -> usize {
        self.items.iter().map(|item| item.record.size()).sum()
    }

    /// The items of a range.
    fn within(&self, range: &KeyRange) -> &[Item] {
        let upto = |bound: &Key| {
            self.items.partition_point(|item| compare(&item.key, bound) != Ordering::Greater)
        };
        let begin = range.after.as_ref().map_or(0, upto);
        let end = range.upto.as_ref().map_or(self.items.len(), upto);
        self.items.get(begin..end).unwrap_or_default()
    }

    /// The items of an key_set, in the order of their keys.
    fn of(&self, key_set: &KeySet) -> Vec<&Item> {
        match &key_set.keys {
            Keys::Range(range) => self.within(range).iter().collect(),
            Keys::List(keys) => {
                let mut places: Vec<usize> = keys
                    .iter()
                    .filter_map(|key| self.places.get(&key.to_text()).copied())
                    .collect();
                places.sort_unstable();
                places.dedup();
                places.into_iter().filter_map(|place| self.items.get(place)).collect()
            }
        }
    }
}

/// An item as a record. Items of one shape share their columns.
fn record(item: Json, columns: &mut Columns) -> Record {
    let Json::Object(fields) = item else { return Record::new(Columns::from([]), Vec::new()) };
    if !columns.iter().eq(fields.keys()) {
        *columns = fields.keys().cloned().collect();
    }
    // A number that fits no value of ours stays as it was written.
    let value = |json: Json| match &json {
        Json::Number(number) if number.is_u64() && !number.is_i64() => Value::Json(json),
        _ => Value::from_json(json),
    };
    Record::new(columns.clone(), fields.into_iter().map(|(_, json)| value(json)).collect())
}

/// The order of keys: whole numbers before text. Which order it is does not matter, as long as it is
/// the same in every process.
fn compare(one: &Key, other: &Key) -> Ordering {
    let parts = one.0.iter().zip(&other.0).map(|pair| match pair {
        (Value::Int(one), Value::Int(other)) => one.cmp(other),
        (Value::Text(one), Value::Text(other)) => one.cmp(other),
        (Value::Int(_), _) => Ordering::Less,
        (_, Value::Int(_)) => Ordering::Greater,
        (one, other) => one.to_text().cmp(&other.to_text()),
    });
    parts.fold(Ordering::Equal, Ordering::then).then(one.0.len().cmp(&other.0.len()))
}

#[async_trait]
impl Source for Items {
    async fn tables(&self) -> Result<Vec<String>> {
        self.connection.tables().await
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        Ok(Items::table(source, self.items.len()))
    }

    /// A request with two items of one key, or with one that has none, was refused.
    async fn check_keys(&self, _: &Scope, _: Option<u64>) -> Result<()> {
        Ok(())
    }

    async fn split(&self, _: &Scope, segments: u32) -> Result<Vec<KeyRange>> {
        let Some(greatest) = self.items.last() else { return Ok(Vec::new()) };
        let whole = KeyRange { after: None, upto: Some(greatest.key.clone()) };
        let each = self.items.len().div_ceil(segments.max(1) as usize);
        let ends = self.items.chunks(each).filter_map(<[Item]>::last);
        Ok(whole.cut(ends.map(|item| item.key.clone())))
    }

    async fn cut(
        &self,
        _: &Scope,
        within: Option<&FilterValue>,
        range: &KeyRange,
        items: u32,
        most_chunks: u32,
        most_items: Option<u64>,
    ) -> Result<ChunkPage> {
        let mut page = Page::new(within, range, items, most_chunks, most_items);
        let (size, jumps) = (page.items() as usize, page.jumps() as usize);
        for chunk in self.within(range).chunks_exact(size).take(jumps) {
            if let Some(last) = chunk.last() {
                page.push(last.key.clone(), chunk.len() as i64);
            }
        }
        let limit = match page.next() {
            Next::Finish { done } => return Ok(page.finish(done)),
            Next::Tail(limit) => limit.map_or(usize::MAX, |limit| limit as usize),
        };
        let left = self.within(&page.rest());
        match left.get(limit.wrapping_sub(1)) {
            Some(last) => page.push(last.key.clone(), limit as i64),
            None => page.end(left.len() as i64, left.last().map(|last| last.key.clone())),
        }
        Ok(page.finish(true))
    }

    async fn read(&self, _: &Scope, key_set: &KeySet, limit: u32, bytes: usize) -> Result<Batch> {
        let all = self.of(key_set);
        let (mut read, mut size) = (Vec::new(), 0);
        for item in all.iter().take(limit as usize) {
            // One item at least, however large it is.
            if size >= bytes {
                break;
            }
            size += item.record.size();
            read.push(Item::clone(item));
        }
        let end = read.len() == all.len();
        Ok(Batch { items: read, end })
    }

    async fn measure(&self, sql: &str) -> Result<Option<f64>> {
        self.connection.measure(sql).await
    }

    async fn count(&self, _: &Scope, key_set: &KeySet) -> Result<i64> {
        Ok(self.of(key_set).len() as i64)
    }

    async fn distinct(
        &self,
        _: &Scope,
        _: &[String],
        mut rows: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Value>>> {
        let mut seen = HashSet::new();
        rows.retain(|row| seen.insert(Key(row.clone()).to_text()));
        // Nothing removes an item, so a key that none has is a mistake, and not to be passed over.
        let unknown =
            rows.iter().find(|row| !self.places.contains_key(&Key((*row).clone()).to_text()));
        match unknown {
            None => Ok(rows),
            Some(row) => {
                let key = Key(row.clone());
                let detail = format!("no item of the request has the key {key}; has it changed?");
                Err(Problem::field(Code::Request, "ids", detail).into())
            }
        }
    }
}

#[async_trait]
impl Target for Items {
    async fn prepare(&self) -> Result<()> {
        self.connection.prepare().await
    }

    async fn check_ledger(&self) -> Result<()> {
        self.connection.check_ledger().await
    }

    fn ledger_ddl(&self) -> &'static str {
        self.connection.ledger_ddl()
    }

    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        self.connection.fence(fences).await
    }

    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed> {
        self.connection.commit(scope, ledger, commit).await
    }

    fn most_items(&self) -> u32 {
        self.connection.most_items()
    }

    async fn mark(&self, _: &Scope, _: &Ledger, _: &KeySet) -> Result<()> {
        Err(no_table())
    }

    async fn held(
        &self,
        chunk: ChunkId,
        state: DeferredState,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<DeferredItem>> {
        self.connection.held(chunk, state, after, limit).await
    }

    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>> {
        self.connection.ledger_rows(job, after, limit).await
    }

    async fn emitted(
        &self,
        job: JobId,
        after: &(i64, String, i64),
        limit: u32,
    ) -> Result<Vec<Emitted>> {
        self.connection.emitted(job, after, limit).await
    }

    async fn discard(&self, job: JobId) -> Result<u64> {
        self.connection.discard(job).await
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        self.connection.prune(job).await
    }

    async fn preview(&self, _: &Scope, _: &KeySet) -> Result<Vec<Preview>> {
        Err(no_table())
    }

    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        self.connection.try_write(scope, item).await
    }
}

#[async_trait]
impl FanIn for Items {
    async fn map_columns(&self, _: &Scope) -> Result<Vec<Column>> {
        Err(no_table())
    }

    async fn map(&self, _: &Scope, _: &[Column], _: &KeySet) -> Result<Vec<Vec<Value>>> {
        Err(no_table())
    }

    #[cfg(feature = "export")]
    async fn extract(
        &self,
        _: &Scope,
        _: &KeySet,
        _: &[Column],
        _: Sender<RecordBatch>,
    ) -> Result<()> {
        Err(no_table())
    }

    async fn reduce(
        &self,
        columns: &[Column],
        parts: Parts<'_>,
        select: &Template,
        params: &Params,
    ) -> Result<Rows> {
        self.connection.reduce(columns, parts, select, params).await
    }

    async fn replace(
        &self,
        ledger: &Ledger,
        load: &Load,
        result: &Rows,
        params: &Params,
        bounds: &[Bound],
    ) -> Result<Ledger> {
        self.connection.replace(ledger, load, result, params, bounds).await
    }
}

impl Connection for Items {
    fn outbox(&self) -> &dyn Outbox {
        self.connection.outbox()
    }

    fn history(&self) -> &dyn crate::LedgerHistory {
        self.connection.history()
    }
}

/// Statements go with a table, and the definition refuses them beside `source.items`.
fn no_table() -> DataError {
    Problem::new(Code::Source, "the records come with the request; there is no table").into()
}
