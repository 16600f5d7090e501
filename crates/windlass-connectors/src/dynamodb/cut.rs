//! Cutting: pages of a scan's segment, or of an index within one value, become lists of keys.

use super::DynamodbData;
use super::describe::{Lookup, named};
use super::expression::{Attributes, Bound, Condition, place};
use super::value::{from_attribute, to_typed};
use crate::{ChunkPage, Result, ScanSegment, Scope};
use windlass_core::problem::Code;
use windlass_core::{FilterValue, Key, KeySet, Keys, Problem, Value};
use windlass_drivers::dynamodb::sdk::types::Select;

/// How much is to be cut.
pub(super) struct Measure {
    pub(super) items: u32,
    pub(super) most_chunks: u32,
    pub(super) most_items: Option<u64>,
}

/// What is walked through.
#[derive(Clone, Copy)]
pub(super) enum Walk<'a> {
    /// A part of the whole table, by DynamoDB's own numbers.
    ScanSegment(ScanSegment),
    /// One value of a filter.
    Value(&'a FilterValue),
}

/// Requests of at most a megabyte each that make a page: what a crash can make a loader do again.
const REQUESTS: u32 = 16;

/// ChunkPage the next chunks. A page ends after some requests, whatever was found by then.
pub(super) async fn cut(
    data: &DynamodbData,
    scope: &Scope,
    walk: Walk<'_>,
    after: Option<&Key>,
    measure: Measure,
) -> Result<ChunkPage> {
    let items = measure.items.max(1) as usize;
    let full = items.saturating_mul(measure.most_chunks.max(1) as usize);
    let most = measure.most_items.map_or(full, |most| full.min(most as usize));
    let mut pages = Pages::new(data, scope, walk, after).await?;
    let (mut keys, mut requests) = (Vec::new(), 0);
    while !pages.ended && keys.len() < most && requests < REQUESTS {
        let page = pages.next(Some(most - keys.len())).await?;
        keys.extend(page.iter().map(|item| row(&pages.columns, item)));
        requests += 1;
    }
    let beyond = keys.len() > most;
    keys.truncate(most);
    let limited = measure.most_items.is_some_and(|most| keys.len() as u64 >= most);
    // A page may end at any record, with that as the place to go on from.
    let last = match &pages.start {
        Some(start) if !beyond => Some(row(&pages.columns, start)),
        _ => keys.last().cloned(),
    };
    let within = match walk {
        Walk::ScanSegment(_) => None,
        Walk::Value(value) => Some(value.clone()),
    };
    let width = scope.key().len();
    let chunk = |keys: &[Key]| {
        let only_key = |key: &Key| Key(key.0.iter().take(width).cloned().collect());
        let part = Keys::List(keys.iter().map(only_key).collect());
        (KeySet { within: within.clone(), keys: part }, keys.len() as i64)
    };
    let chunks = keys.chunks(items).map(chunk).collect();
    Ok(ChunkPage { chunks, last, done: limited || pages.ended && !beyond })
}

/// How many records a walk finds.
pub(super) async fn count(data: &DynamodbData, scope: &Scope, walk: Walk<'_>) -> Result<i64> {
    let mut pages = Pages::new(data, scope, walk, None).await?;
    let mut count = 0;
    while !pages.ended {
        count += pages.count().await?;
    }
    Ok(count)
}

fn row(columns: &[String], item: &Attributes) -> Key {
    let value = |column: &String| item.get(column).cloned().map_or(Value::Null, from_attribute);
    Key(columns.iter().map(value).collect())
}

/// Page after page of one walk.
pub(super) struct Pages<'a> {
    data: &'a DynamodbData,
    scope: &'a Scope,
    walk: Walk<'a>,
    lookup: Option<Lookup>,
    /// What the database checks.
    conditions: Vec<Condition>,
    /// What is checked here: DynamoDB takes no condition on the key of what it looks up by.
    checked: Vec<Condition>,
    /// What is read of each record.
    pub(super) columns: Vec<String>,
    /// Where the next page begins.
    pub(super) start: Option<Attributes>,
    pub(super) ended: bool,
}

impl<'a> Pages<'a> {
    pub(super) async fn new(
        data: &'a DynamodbData,
        scope: &'a Scope,
        walk: Walk<'a>,
        after: Option<&Key>,
    ) -> Result<Pages<'a>> {
        let (within, columns) = match walk {
            Walk::ScanSegment(_) => (None, scope.key().to_vec()),
            Walk::Value(value) => (Some(value), scope.place_columns(&value.filter)),
        };
        let lookup = match within {
            Some(value) => Some(lookup(data, scope, value).await?),
            None => None,
        };
        // What an index does not carry is checked when the record itself is read.
        let mut conditions = Condition::of(scope, within)?;
        let carries = |column: &str| lookup.as_ref().is_none_or(|lookup| lookup.carries(column));
        conditions.retain(|condition| carries(&condition.column));
        let is_key = |condition: &Condition| {
            lookup.as_ref().is_some_and(|lookup| lookup.columns.contains(&condition.column))
        };
        let (checked, conditions) = conditions.into_iter().partition(is_key);
        let start = after.map(|key| place(scope, &columns, key)).transpose()?;
        let ended = false;
        Ok(Pages { data, scope, walk, lookup, conditions, checked, columns, start, ended })
    }

    /// The records of the next page, of each what the walk needs, or all of it.
    pub(super) async fn next(&mut self, limit: Option<usize>) -> Result<Vec<Attributes>> {
        Ok(self.page(limit, Take::Columns).await?.0)
    }

    /// The same with all attributes. Not for a walk by an index, which may not carry them.
    pub(super) async fn whole(&mut self, limit: usize) -> Result<Vec<Attributes>> {
        Ok(self.page(Some(limit), Take::All).await?.0)
    }

    async fn count(&mut self) -> Result<i64> {
        // By the value alone, it is enough to be told how many there are.
        match self.checked.len() {
            0 | 1 => Ok(self.page(None, Take::Count).await?.1),
            _ => Ok(self.next(None).await?.len() as i64),
        }
    }

    async fn page(&mut self, limit: Option<usize>, take: Take) -> Result<(Vec<Attributes>, i64)> {
        let mut bound = Bound::default();
        let projection = (take == Take::Columns).then(|| bound.list(&self.columns));
        let select = (take == Take::Count).then_some(Select::Count);
        // With a condition most records may be passed over, so that a small page would find nothing.
        let limit = limit.filter(|_| self.conditions.is_empty());
        let limit = limit.map(|limit| limit.clamp(1, 100_000) as i32);
        let table = &self.scope.table.name;
        let (items, count, last) = match (self.walk, &self.lookup) {
            (Walk::Value(value), Some(lookup)) => {
                let condition = self.within(lookup, value, &mut bound)?;
                let filter = bound.all(&self.conditions);
                let query = self.data.client.query().table_name(table);
                let page = query
                    .set_index_name(lookup.name.clone())
                    .consistent_read(lookup.name.is_none())
                    .key_condition_expression(condition)
                    .set_filter_expression(filter)
                    .set_projection_expression(projection)
                    .set_expression_attribute_names(bound.names())
                    .set_expression_attribute_values(bound.values())
                    .set_select(select)
                    .set_limit(limit)
                    .set_exclusive_start_key(self.start.take());
                let page = page.send().await.map_err(|error| named(table, error.into()))?;
                (page.items, page.count, page.last_evaluated_key)
            }
            (Walk::ScanSegment(share), _) => {
                let filter = bound.all(&self.conditions);
                let scan = self.data.client.scan().table_name(table);
                let page = scan
                    .segment(share.number as i32)
                    .total_segments(share.of.max(1) as i32)
                    .consistent_read(true)
                    .set_filter_expression(filter)
                    .set_projection_expression(projection)
                    .set_expression_attribute_names(bound.names())
                    .set_expression_attribute_values(bound.values())
                    .set_select(select)
                    .set_limit(limit)
                    .set_exclusive_start_key(self.start.take());
                let page = page.send().await.map_err(|error| named(table, error.into()))?;
                (page.items, page.count, page.last_evaluated_key)
            }
            (Walk::Value(value), None) => return Err(no_index(self.scope, value).into()),
        };
        self.ended = last.is_none();
        self.start = last;
        let mut items = items.unwrap_or_default();
        items.retain(|item| self.checked.iter().all(|condition| condition.holds(item)));
        Ok((items, i64::from(count)))
    }

    fn within(&self, lookup: &Lookup, value: &FilterValue, bound: &mut Bound) -> Result<String> {
        let column = lookup.columns.first().cloned().unwrap_or_default();
        let kind = self.scope.table.column(&column).map(|column| column.kind);
        let value = bound.value(to_typed(kind, &value.value)?);
        Ok(format!("{} = {value}", bound.name(&column)))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Take {
    Columns,
    All,
    Count,
}

/// The index of a filter, the same that [`Scope::place_columns`] takes.
async fn lookup(data: &DynamodbData, scope: &Scope, value: &FilterValue) -> Result<Lookup> {
    let shape = data.shape(&scope.table.name).await?;
    let column = scope.job_type.source.filters.get(&value.filter);
    let found = shape.indexes.iter().find(|index| index.columns.first() == column);
    Ok(found.cloned().ok_or_else(|| no_index(scope, value))?)
}

fn no_index(scope: &Scope, value: &FilterValue) -> Problem {
    let detail = format!(
        "no index of `{}` has the attribute of the filter `{}` as its partition key",
        scope.table.name, value.filter
    );
    Problem::field(Code::Source, "source.filters", detail)
}
