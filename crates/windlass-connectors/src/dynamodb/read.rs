//! Reads and counts records, and removes duplicate values.

use super::cut::{self, Pages, Walk};
use super::describe::with_table_name;
use super::expression::{Attributes, Condition, key_of};
use super::value::{from_attribute, to_typed};
use super::{DynamodbConnection, ThrottleBackoff};
use crate::{Batch, Item, Result, ScanSegment, Scope};
use futures::future::try_join_all;
use std::collections::{HashMap, HashSet};
use windlass_core::problem::Code;
use windlass_core::{Columns, FilterValue, Key, KeyRange, KeySet, Keys, Problem, Record, Value};
use windlass_drivers::dynamodb::sdk::types::KeysAndAttributes;

/// The most keys of one request.
const MAX_KEYS: usize = 100;
/// The number of scan segments that are counted concurrently.
const COUNT_SEGMENTS: u32 = 8;

/// Reads records of a key set, those of a list in its order, up to a number of records and of bytes.
pub(super) async fn read(
    data: &DynamodbConnection,
    scope: &Scope,
    key_set: &KeySet,
    limit: u32,
    bytes: usize,
) -> Result<Batch> {
    let mut reader = Reader { scope, columns: Columns::from([]), left: bytes, items: Vec::new() };
    let end = match &key_set.keys {
        Keys::List(keys) => {
            let conditions = Condition::of(scope, key_set.within.as_ref())?;
            read_keys(data, keys, &conditions, limit as usize, &mut reader).await?
        }
        Keys::Range(KeyRange { after: None, upto: None }) if key_set.within.is_none() => {
            first(data, limit as usize, &mut reader).await?
        }
        Keys::Range(_) => return Err(no_ranges().into()),
    };
    Ok(Batch { items: reader.items, end })
}

/// Counts the records of a key set.
pub(super) async fn count(
    data: &DynamodbConnection,
    scope: &Scope,
    key_set: &KeySet,
) -> Result<i64> {
    match (&key_set.keys, key_set.within.as_ref()) {
        (Keys::List(keys), _) => {
            let all = read(data, scope, key_set, keys.len() as u32, usize::MAX).await?;
            Ok(all.items.len() as i64)
        }
        (Keys::Range(KeyRange { after: None, upto: None }), Some(within)) => {
            cut::count(data, scope, Walk::Value(within)).await
        }
        (Keys::Range(KeyRange { after: None, upto: None }), None) => count_all(data, scope).await,
        (Keys::Range(_), _) => Err(no_ranges().into()),
    }
}

/// Counts all records of the job: value by value of the first filter, or by scan segments.
async fn count_all(data: &DynamodbConnection, scope: &Scope) -> Result<i64> {
    let counts = match scope.filters.first() {
        Some((filter, column, values)) => {
            let rows = values.iter().map(|value| vec![value.clone()]).collect();
            let rows = distinct(scope, std::slice::from_ref(column), rows)?;
            let value = |value| FilterValue { filter: filter.clone(), value };
            let values: Vec<FilterValue> = rows.into_iter().flatten().map(value).collect();
            let counts = values.iter().map(|value| cut::count(data, scope, Walk::Value(value)));
            try_join_all(counts).await?
        }
        None => {
            let segment = |number| Walk::Segment(ScanSegment { number, of: COUNT_SEGMENTS });
            try_join_all((0..COUNT_SEGMENTS).map(|n| cut::count(data, scope, segment(n)))).await?
        }
    };
    Ok(counts.into_iter().sum())
}

/// Removes duplicate rows, and returns the others as DynamoDB would return them.
pub(super) fn distinct(
    scope: &Scope,
    columns: &[String],
    rows: Vec<Vec<Value>>,
) -> Result<Vec<Vec<Value>>> {
    let mut seen = HashSet::new();
    let mut distinct = Vec::new();
    for row in rows {
        let value = |(value, column): (&Value, &String)| {
            let kind = scope.table.column(column).map(|column| column.kind);
            Ok(from_attribute(to_typed(kind, value)?))
        };
        let row: Vec<Value> = row.iter().zip(columns).map(value).collect::<Result<_>>()?;
        if seen.insert(Key(row.clone()).to_text()) {
            distinct.push(row);
        }
    }
    Ok(distinct)
}

/// Reads listed keys. Returns whether all of them were looked up. Leaves out records that no longer
/// match the conditions or no longer exist.
async fn read_keys(
    data: &DynamodbConnection,
    keys: &[Key],
    conditions: &[Condition],
    limit: usize,
    reader: &mut Reader<'_>,
) -> Result<bool> {
    for keys in keys.chunks(MAX_KEYS) {
        if reader.left == 0 {
            return Ok(false);
        }
        let mut found = get(data, reader.scope, keys).await?;
        for key in keys {
            let key = as_read(reader.scope, key)?.to_text();
            let Some(item) = found.remove(&key) else { continue };
            if !conditions.iter().all(|condition| condition.matches(&item)) {
                continue;
            }
            if reader.left == 0 || reader.items.len() >= limit {
                return Ok(false);
            }
            reader.take(item);
        }
    }
    Ok(true)
}

/// The records with these keys, in any order, whether or not they match the job's conditions.
pub(super) async fn existing(
    data: &DynamodbConnection,
    scope: &Scope,
    keys: &[Key],
) -> Result<Vec<Attributes>> {
    let mut found = Vec::with_capacity(keys.len());
    for keys in keys.chunks(MAX_KEYS) {
        found.extend(get(data, scope, keys).await?.into_values());
    }
    Ok(found)
}

/// Reads at most [`MAX_KEYS`] records by their keys, with consistent reads.
async fn get(
    data: &DynamodbConnection,
    scope: &Scope,
    keys: &[Key],
) -> Result<HashMap<String, Attributes>> {
    let mut asked = Vec::with_capacity(keys.len());
    let mut seen = HashSet::new();
    for key in keys {
        if seen.insert(as_read(scope, key)?.to_text()) {
            asked.push(key_of(scope, key)?);
        }
    }
    let mut found = HashMap::new();
    for item in batch_get(data, &scope.table.name, asked).await? {
        let value = |name: &String| item.get(name).cloned().map(from_attribute);
        let key = scope.key().iter().map(|name| value(name).unwrap_or(Value::Null));
        found.insert(Key(key.collect()).to_text(), item);
    }
    Ok(found)
}

/// Reads at most [`MAX_KEYS`] items of a table, with consistent reads. The keys must be distinct.
pub(super) async fn batch_get(
    data: &DynamodbConnection,
    table: &str,
    mut asked: Vec<Attributes>,
) -> Result<Vec<Attributes>> {
    let mut found = Vec::with_capacity(asked.len());
    let mut backoff = ThrottleBackoff::default();
    while !asked.is_empty() {
        let wanted = KeysAndAttributes::builder().set_keys(Some(asked)).consistent_read(true);
        let wanted = wanted.build().map_err(|error| super::invalid_request(&error))?;
        let answer = data.client.batch_get_item().request_items(table, wanted).send().await;
        let answer = answer.map_err(|error| with_table_name(table, error.into()))?;
        let items = answer.responses.unwrap_or_default().remove(table).unwrap_or_default();
        let any = !items.is_empty();
        found.extend(items);
        let left = answer.unprocessed_keys.unwrap_or_default().remove(table);
        asked = left.map(|left| left.keys).unwrap_or_default();
        if any {
            backoff = ThrottleBackoff::default();
        } else if !asked.is_empty() {
            backoff.wait().await.map_err(|()| super::throttled())?;
        }
    }
    Ok(found)
}

/// A key as DynamoDB returns it, in whichever notation the request had it.
fn as_read(scope: &Scope, key: &Key) -> Result<Key> {
    let mut rows = distinct(scope, scope.key(), vec![key.0.clone()])?;
    Ok(Key(rows.pop().unwrap_or_default()))
}

/// Reads the first records of the whole source, for a dry run. Returns whether that was all.
async fn first(data: &DynamodbConnection, limit: usize, reader: &mut Reader<'_>) -> Result<bool> {
    let (scope, values) = (reader.scope, reader.scope.filters.first());
    let Some((filter, column, values)) = values else {
        let segment = ScanSegment { number: 0, of: 1 };
        let mut pages = Pages::new(data, scope, Walk::Segment(segment), None).await?;
        while !pages.ended {
            // One more than the limit shows whether there are more.
            for item in pages.whole(limit + 1 - reader.items.len()).await? {
                if reader.left == 0 || reader.items.len() >= limit {
                    return Ok(false);
                }
                reader.take(item);
            }
        }
        return Ok(true);
    };
    // An index may lack attributes, so its keys are read first and then the records.
    let rows = values.iter().map(|value| vec![value.clone()]).collect();
    for value in distinct(scope, std::slice::from_ref(column), rows)?.into_iter().flatten() {
        let within = FilterValue { filter: filter.clone(), value };
        let conditions = Condition::of(scope, Some(&within))?;
        let mut pages = Pages::new(data, scope, Walk::Value(&within), None).await?;
        while !pages.ended {
            let page = pages.next(Some(limit + 1)).await?;
            let key = |item: &Attributes| {
                let value = |name| item.get(name).cloned().map_or(Value::Null, from_attribute);
                Key(scope.key().iter().map(value).collect())
            };
            let keys: Vec<Key> = page.iter().map(key).collect();
            if !read_keys(data, &keys, &conditions, limit, reader).await? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Collects items up to a limit of bytes.
struct Reader<'a> {
    scope: &'a Scope,
    /// Records with the same attributes share one list of columns.
    columns: Columns,
    left: usize,
    items: Vec<Item>,
}

impl Reader<'_> {
    fn take(&mut self, item: Attributes) {
        let item = to_item(self.scope, item, &mut self.columns);
        self.left = self.left.saturating_sub(item.record.size());
        self.items.push(item);
    }
}

/// Converts an item: its key attributes first, then the others by name.
pub(super) fn to_item(scope: &Scope, item: Attributes, columns: &mut Columns) -> Item {
    let key_position =
        |name: &str| scope.key().iter().position(|key| key == name).unwrap_or(usize::MAX);
    let mut fields: Vec<(String, Value)> =
        item.into_iter().map(|(name, value)| (name, from_attribute(value))).collect();
    fields.sort_by(|(left, _), (right, _)| {
        (key_position(left), left).cmp(&(key_position(right), right))
    });
    if !columns.iter().eq(fields.iter().map(|(name, _)| name)) {
        *columns = fields.iter().map(|(name, _)| name.clone()).collect();
    }
    let values = fields.into_iter().map(|(_, value)| value).collect();
    let record = Record::new(columns.clone(), values);
    let value = |name: &String| record.get(name).cloned().unwrap_or(Value::Null);
    let key = Key(scope.key().iter().map(value).collect());
    let guard = scope.job_type.step.version.as_ref().map_or(Value::Null, value);
    Item { key, guard, record }
}

fn no_ranges() -> Problem {
    Problem::new(Code::Source, "key ranges are not supported, since DynamoDB's keys have no order")
}
