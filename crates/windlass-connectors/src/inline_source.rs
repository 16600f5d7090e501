//! Records that came with the request, read from memory. Their effects are committed on the connection
//! like those of any other record.

use crate::chunk_cutter::{ChunkCutter, NextCut};
use crate::{
    Batch, ChunkPage, CutLimits, CutRange, Item, ReadLimits, RecordReader, Result, RowSet, Scope,
    Source,
};
use async_trait::async_trait;
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use windlass_core::inline_items::key_of;
use windlass_core::{
    Column, ColumnType, Columns, Index, Key, KeyRange, KeySet, Keys, Problem, Record, Table, Value,
    problem::Code,
};

/// The items of one request as a source.
pub struct InlineSource {
    /// Ordered by key.
    items: Vec<Item>,
    /// The index of each item by the text of its key.
    index_by_key: HashMap<String, usize>,
}

impl InlineSource {
    /// Takes the items of a request that has passed [`windlass_core::Request::check`].
    pub fn new(items: Vec<Json>, key: &[String]) -> Result<InlineSource> {
        let mut columns = Columns::from([]);
        let read = items.into_iter().map(|item| {
            let key = key_of(&item, key).map_err(|(field, why)| {
                Problem::field(Code::Request, format!("items{field}"), why)
            })?;
            Ok(Item { key, guard: Value::Null, record: record(item, &mut columns) })
        });
        let mut items = read.collect::<Result<Vec<Item>>>()?;
        items.sort_by(|left, right| compare(&left.key, &right.key));
        let index_by_key =
            items.iter().enumerate().map(|(index, item)| (item.key.to_text(), index)).collect();
        Ok(InlineSource { items, index_by_key })
    }

    /// The schema of a source whose records come with the request.
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

    /// The approximate memory of the items, in bytes.
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

    /// The items of a key set, in key order.
    fn of(&self, key_set: &KeySet) -> Vec<&Item> {
        match &key_set.keys {
            Keys::Range(range) => self.within(range).iter().collect(),
            Keys::List(keys) => {
                let mut indexes: Vec<usize> = keys
                    .iter()
                    .filter_map(|key| self.index_by_key.get(&key.to_text()).copied())
                    .collect();
                indexes.sort_unstable();
                indexes.dedup();
                indexes.into_iter().filter_map(|index| self.items.get(index)).collect()
            }
        }
    }
}

/// An item as a record. InlineSource of one shape share their columns.
fn record(item: Json, columns: &mut Columns) -> Record {
    let Json::Object(fields) = item else { return Record::new(Columns::from([]), Vec::new()) };
    if !columns.iter().eq(fields.keys()) {
        *columns = fields.keys().cloned().collect();
    }
    // A number above i64::MAX fits no numeric value, so it stays JSON.
    let value = |json: Json| match &json {
        Json::Number(number) if number.is_u64() && !number.is_i64() => Value::Json(json.into()),
        _ => Value::from_json(json),
    };
    Record::new(columns.clone(), fields.into_iter().map(|(_, json)| value(json)).collect())
}

/// Orders keys, integers before text. Any order serves that is the same in every process.
fn compare(left: &Key, right: &Key) -> Ordering {
    let parts = left.0.iter().zip(&right.0).map(|pair| match pair {
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::Text(left), Value::Text(right)) => left.cmp(right),
        (Value::Int(_), _) => Ordering::Less,
        (_, Value::Int(_)) => Ordering::Greater,
        (left, right) => left.to_text().cmp(&right.to_text()),
    });
    parts.fold(Ordering::Equal, Ordering::then).then(left.0.len().cmp(&right.0.len()))
}

#[async_trait]
impl RecordReader for InlineSource {
    async fn read(&self, _: &Scope, key_set: &KeySet, limits: ReadLimits) -> Result<Batch> {
        let ReadLimits { items: limit, bytes } = limits;
        let all = self.of(key_set);
        let (mut read, mut size) = (Vec::new(), 0);
        for item in all.iter().take(limit as usize) {
            // At least one item, of any size.
            if size >= bytes {
                break;
            }
            size += item.record.size();
            read.push(Item::clone(item));
        }
        let end = read.len() == all.len();
        Ok(Batch { items: read, end })
    }

    async fn count(&self, _: &Scope, key_set: &KeySet) -> Result<i64> {
        Ok(self.of(key_set).len() as i64)
    }
}

#[async_trait]
impl Source for InlineSource {
    /// Submitting refuses a request with a missing or a repeated key.
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

    async fn cut(&self, _: &Scope, at: CutRange<'_>, limits: CutLimits) -> Result<ChunkPage> {
        let CutRange { within, range, .. } = at;
        let mut cutter = ChunkCutter::new(within, range, limits);
        let (size, max_full_chunks) =
            (cutter.chunk_items() as usize, cutter.max_full_chunks() as usize);
        for chunk in self.within(range).chunks_exact(size).take(max_full_chunks) {
            if let Some(last) = chunk.last() {
                cutter.push(last.key.clone(), chunk.len() as i64);
            }
        }
        let limit = match cutter.next() {
            NextCut::Finish { done } => return Ok(cutter.finish(done)),
            NextCut::Tail(limit) => limit.map_or(usize::MAX, |limit| limit as usize),
        };
        let left = self.within(&cutter.remaining());
        match left.get(limit.wrapping_sub(1)) {
            Some(last) => cutter.push(last.key.clone(), limit as i64),
            None => cutter.end(left.len() as i64, left.last().map(|last| last.key.clone())),
        }
        Ok(cutter.finish(true))
    }

    async fn distinct(&self, _: &Scope, _: &[String], mut rows: RowSet) -> Result<RowSet> {
        let mut seen = HashSet::new();
        rows.retain(|row| seen.insert(Key(row.clone()).to_text()));
        // Items are never deleted, so an unknown key is an error of the request.
        let unknown =
            rows.iter().find(|row| !self.index_by_key.contains_key(&Key((*row).clone()).to_text()));
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
