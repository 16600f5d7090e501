//! Cuts chunks: the pages of a scan segment, or of an index query for one filter value, become lists of
//! keys.

use super::DynamodbConnection;
use super::describe::{LookupIndex, with_table_name};
use super::expression::{Attributes, Bound, Condition, start_key};
use super::value::{from_attribute, to_typed};
use crate::{ChunkPage, CutLimits, Result, ScanSegment, Scope};
use windlass_core::problem::Code;
use windlass_core::{FilterValue, Key, KeySet, Keys, Problem, Value};
use windlass_drivers::dynamodb::sdk::types::Select;

/// What to read.
#[derive(Clone, Copy)]
pub(super) enum Walk<'a> {
    /// A segment of a scan of the whole table.
    Segment(ScanSegment),
    /// One value of a filter.
    Value(&'a FilterValue),
}

/// The most requests for one page of chunks, of at most a megabyte each. A crash repeats at most these.
const MAX_REQUESTS: u32 = 16;

/// Cuts the next chunks. Ends after [`MAX_REQUESTS`] even if it found fewer than the limits allow.
pub(super) async fn cut(
    data: &DynamodbConnection,
    scope: &Scope,
    walk: Walk<'_>,
    after: Option<&Key>,
    limits: CutLimits,
) -> Result<ChunkPage> {
    let items = limits.chunk_items.max(1) as usize;
    let full = items.saturating_mul(limits.max_chunks.max(1) as usize);
    let max = limits.max_items.map_or(full, |max| full.min(max as usize));
    let mut pages = Pages::new(data, scope, walk, after).await?;
    let (mut keys, mut requests) = (Vec::new(), 0);
    while !pages.ended && keys.len() < max && requests < MAX_REQUESTS {
        let page = pages.next(Some(max - keys.len())).await?;
        keys.extend(page.iter().map(|item| row(&pages.columns, item)));
        requests += 1;
    }
    let beyond = keys.len() > max;
    keys.truncate(max);
    let limited = limits.max_items.is_some_and(|max| keys.len() as u64 >= max);
    // A page may end at a record that was filtered out. Continue from there.
    let last = match &pages.start {
        Some(start) if !beyond => Some(row(&pages.columns, start)),
        _ => keys.last().cloned(),
    };
    let within = match walk {
        Walk::Segment(_) => None,
        Walk::Value(value) => Some(value.clone()),
    };
    let width = scope.key().len();
    let chunk = |keys: &[Key]| {
        let only_key = |key: &Key| Key(key.0.iter().take(width).cloned().collect());
        let part = Keys::List(keys.iter().map(only_key).collect());
        (KeySet::new(within.clone(), part), keys.len() as i64)
    };
    let chunks = keys.chunks(items).map(chunk).collect();
    Ok(ChunkPage { chunks, last, done: limited || pages.ended && !beyond })
}

/// Counts the records.
pub(super) async fn count(data: &DynamodbConnection, scope: &Scope, walk: Walk<'_>) -> Result<i64> {
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

/// Reads the pages of a scan or of a query.
pub(super) struct Pages<'a> {
    data: &'a DynamodbConnection,
    scope: &'a Scope,
    walk: Walk<'a>,
    lookup: Option<LookupIndex>,
    /// Conditions that the database checks.
    conditions: Vec<Condition>,
    /// Conditions that are checked here, since DynamoDB accepts no filter on key attributes.
    key_conditions: Vec<Condition>,
    /// The attributes to read.
    pub(super) columns: Vec<String>,
    /// The key after which the next page begins.
    pub(super) start: Option<Attributes>,
    pub(super) ended: bool,
}

impl<'a> Pages<'a> {
    pub(super) async fn new(
        data: &'a DynamodbConnection,
        scope: &'a Scope,
        walk: Walk<'a>,
        after: Option<&Key>,
    ) -> Result<Pages<'a>> {
        let (within, columns) = match walk {
            Walk::Segment(_) => (None, scope.key().to_vec()),
            Walk::Value(value) => (Some(value), scope.resume_columns(&value.filter)),
        };
        let lookup = match within {
            Some(value) => Some(lookup(data, scope, value).await?),
            None => None,
        };
        // Conditions on attributes that the index lacks are checked when the record is read.
        let mut conditions = Condition::of(scope, within)?;
        let projects = |column: &str| lookup.as_ref().is_none_or(|lookup| lookup.projects(column));
        conditions.retain(|condition| projects(&condition.column));
        let is_key = |condition: &Condition| {
            lookup.as_ref().is_some_and(|lookup| lookup.columns.contains(&condition.column))
        };
        let (key_conditions, conditions) = conditions.into_iter().partition(is_key);
        let start = after.map(|key| start_key(scope, &columns, key)).transpose()?;
        let ended = false;
        Ok(Pages { data, scope, walk, lookup, conditions, key_conditions, columns, start, ended })
    }

    /// The records of the next page, each with the attributes in `columns`.
    pub(super) async fn next(&mut self, limit: Option<usize>) -> Result<Vec<Attributes>> {
        Ok(self.page(limit, Fields::Columns).await?.0)
    }

    /// The same with all attributes. Not for an index, which may lack some of them.
    pub(super) async fn whole(&mut self, limit: usize) -> Result<Vec<Attributes>> {
        Ok(self.page(Some(limit), Fields::All).await?.0)
    }

    async fn count(&mut self) -> Result<i64> {
        // With a condition on the looked-up value alone, the count of the query is right.
        match self.key_conditions.len() {
            0 | 1 => Ok(self.page(None, Fields::Count).await?.1),
            _ => Ok(self.next(None).await?.len() as i64),
        }
    }

    async fn page(
        &mut self,
        limit: Option<usize>,
        fields: Fields,
    ) -> Result<(Vec<Attributes>, i64)> {
        let mut bound = Bound::default();
        let projection = (fields == Fields::Columns).then(|| bound.list(&self.columns));
        let select = (fields == Fields::Count).then_some(Select::Count);
        // A filter may exclude most records, so a small page could be empty.
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
                let page =
                    page.send().await.map_err(|error| with_table_name(table, error.into()))?;
                (page.items, page.count, page.last_evaluated_key)
            }
            (Walk::Segment(segment), _) => {
                let filter = bound.all(&self.conditions);
                let scan = self.data.client.scan().table_name(table);
                let page = scan
                    .segment(segment.number as i32)
                    .total_segments(segment.of.max(1) as i32)
                    .consistent_read(true)
                    .set_filter_expression(filter)
                    .set_projection_expression(projection)
                    .set_expression_attribute_names(bound.names())
                    .set_expression_attribute_values(bound.values())
                    .set_select(select)
                    .set_limit(limit)
                    .set_exclusive_start_key(self.start.take());
                let page =
                    page.send().await.map_err(|error| with_table_name(table, error.into()))?;
                (page.items, page.count, page.last_evaluated_key)
            }
            (Walk::Value(value), None) => return Err(no_index(self.scope, value).into()),
        };
        self.ended = last.is_none();
        self.start = last;
        let mut items = items.unwrap_or_default();
        items.retain(|item| self.key_conditions.iter().all(|condition| condition.matches(item)));
        Ok((items, i64::from(count)))
    }

    fn within(
        &self,
        lookup: &LookupIndex,
        value: &FilterValue,
        bound: &mut Bound,
    ) -> Result<String> {
        let column = lookup.columns.first().cloned().unwrap_or_default();
        let kind = self.scope.table.column(&column).map(|column| column.kind);
        let value = bound.value(to_typed(kind, &value.value)?);
        Ok(format!("{} = {value}", bound.name(&column)))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fields {
    Columns,
    All,
    Count,
}

/// The index of a filter, the same one that [`Scope::resume_columns`] uses.
async fn lookup(
    data: &DynamodbConnection,
    scope: &Scope,
    value: &FilterValue,
) -> Result<LookupIndex> {
    let schema = data.schema(&scope.table.name).await?;
    let column = scope.job_type.source.filters.get(&value.filter);
    let found = schema.indexes.iter().find(|index| index.columns.first() == column);
    Ok(found.cloned().ok_or_else(|| no_index(scope, value))?)
}

fn no_index(scope: &Scope, value: &FilterValue) -> Problem {
    let detail = format!(
        "no index of `{}` has the attribute of the filter `{}` as its partition key",
        scope.table.name, value.filter
    );
    Problem::field(Code::Source, "source.filters", detail)
}
