//! A page of keys: what *start* asks DynamoDB, and the messages that come of it.

use crate::message::{JOB_ID, PARAMS};
use crate::tables::{Described, Tables, table_of};
use crate::{Error, Invocation, Message, Result, State};
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use windlass_core::pagination::LastKey;
use windlass_core::problem::Code;
use windlass_core::{
    ColumnType, Config, Identity, JobType, Key, PaginationState, Problem, StepKind, Value,
};
use windlass_data::dynamodb::value::{from_attribute, to_attribute};
use windlass_db::dynamodb::sdk::Client;
use windlass_db::dynamodb::sdk::types::AttributeValue;

/// A job to load, with everything resolved.
pub(super) struct Load {
    pub(super) job_type: JobType,
    /// What every message of it carries.
    pub(super) attributes: BTreeMap<String, String>,
    /// A part stops after so many items.
    pub(super) most: Option<u64>,
    /// The request's filters: the attribute and its values.
    filters: BTreeMap<String, (String, Vec<AttributeValue>)>,
    described: Arc<Described>,
    client: Client,
    table: String,
}

/// Some keys, and where the next page begins; nowhere at the end.
pub(super) struct Page {
    pub(super) keys: Vec<Key>,
    pub(super) last: Option<LastKey>,
}

/// What a message of several items may have, well below the most that a call takes.
const MOST_BYTES: usize = 192 << 10;

impl Load {
    pub(super) async fn new(
        config: &Config,
        tables: &Tables,
        job_type: &JobType,
        asked: &Invocation,
    ) -> Result<Load> {
        let by_item = matches!(
            job_type.step.kind,
            StepKind::Refresh | StepKind::Handler(_) | StepKind::Command(_) | StepKind::Http(_)
        );
        if !by_item {
            let detail = "is not worked item by item, and so needs a store";
            return Err(job_type.problem(job_type.step.kind.field(), detail).into());
        }
        if job_type.source.condition.is_some() {
            let detail = "is SQL, which DynamoDB does not speak; filter by attributes instead";
            return Err(job_type.problem("source.where", detail).into());
        }
        let job_type = tables.resolved(config, job_type).await?;
        let described = tables.describe(config, &job_type).await?;
        let request = &asked.request;
        request.check(&job_type, &Identity::default(), &described.table)?;
        let mut attributes = BTreeMap::from([(JOB_ID.to_owned(), asked.job.to_string())]);
        if !request.params.is_empty() {
            let params = serde_json::to_string(&request.params).unwrap_or_default();
            attributes.insert(PARAMS.to_owned(), params);
        }
        let mut filters = BTreeMap::new();
        for (name, values) in request.filters() {
            let column = job_type.source.filters.get(name).cloned().unwrap_or_default();
            let kind = described.table.column(&column).map(|column| column.kind);
            let typed: std::result::Result<Vec<_>, String> =
                values.iter().map(|value| typed(kind, value)).collect();
            let typed = typed.map_err(|detail| {
                Problem::field(Code::Request, format!("filter.{name}"), detail)
            })?;
            filters.insert(name.to_owned(), (column, typed));
        }
        let client = tables.client(config, &job_type).await?;
        let table = table_of(&job_type)?.to_owned();
        let most = request.max_items_per_segment;
        Ok(Load { attributes, most, filters, described, client, table, job_type })
    }

    /// Whether the values of a filter can be looked up.
    pub(super) fn is_indexed(&self, filter: &str) -> bool {
        self.filters.get(filter).is_some_and(|(column, _)| self.index(column).is_some())
    }

    /// The keys that a request gives itself, each once.
    pub(super) fn ids(&self, ids: &[Json]) -> Result<Vec<Key>> {
        let mut keys: Vec<Key> = Vec::with_capacity(ids.len());
        let mut known = std::collections::HashSet::new();
        for (place, id) in ids.iter().enumerate() {
            let parts = match id {
                Json::Array(parts) => parts.as_slice(),
                single => std::slice::from_ref(single),
            };
            let part = |(column, part): (&String, &Json)| {
                let kind = self.described.table.column(column).map(|column| column.kind);
                typed(kind, part).map(from_attribute)
            };
            let key: std::result::Result<Vec<Value>, String> =
                self.job_type.source.key.iter().zip(parts).map(part).collect();
            let key = Key(key.map_err(|detail| {
                Problem::field(Code::Request, format!("ids[{place}]"), detail)
            })?);
            if known.insert(key.to_text()) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// The messages for some keys: as many of them in each as the job type says, and fewer where
    /// they are long.
    pub(super) fn bodies(&self, keys: &[Key]) -> Vec<String> {
        let most = self.job_type.queue.items_per_message as usize;
        let mut bodies = Vec::with_capacity(keys.len().div_ceil(most));
        let mut rest = keys;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |key: &&Key| {
                bytes += key.to_text().len() + 1;
                bytes <= MOST_BYTES
            };
            let count = rest.iter().take(most).take_while(fits).count().max(1);
            let (these, others) = rest.split_at(count);
            bodies.push(Message::body(&self.job_type, these));
            rest = others;
        }
        bodies
    }

    /// The next page of a part.
    pub(super) async fn page(&self, state: &State) -> Result<Page> {
        let limit = u64::from(self.job_type.chunk_items());
        let left = self.most.map_or(u64::MAX, |most| most.saturating_sub(state.items_enqueued()));
        let mut names = HashMap::new();
        let key = &self.job_type.source.key;
        for (place, column) in key.iter().enumerate() {
            names.insert(format!("#k{place}"), column.clone());
        }
        let projection = (0..key.len()).map(|place| format!("#k{place}"));
        let projection = projection.collect::<Vec<_>>().join(", ");
        let mut values = HashMap::new();
        let queried = match &state.0 {
            PaginationState::IndexQuery { filter, .. } => Some(filter),
            _ => None,
        };
        let mut conditions = Vec::new();
        for (place, (name, (column, wanted))) in self.filters.iter().enumerate() {
            if Some(name) == queried {
                continue;
            }
            names.insert(format!("#f{place}"), column.clone());
            let some = wanted.iter().enumerate().map(|(n, value)| {
                values.insert(format!(":f{place}_{n}"), value.clone());
                format!(":f{place}_{n}")
            });
            conditions.push(format!("#f{place} IN ({})", some.collect::<Vec<_>>().join(", ")));
        }
        let condition = (!conditions.is_empty()).then(|| conditions.join(" AND "));
        // With a condition the limit counts what is looked at, and not what is found.
        let limit = if condition.is_some() { limit } else { limit.min(left) };
        let doing = || format!("reading keys of `{}`", self.table);
        let (items, last) = match &state.0 {
            PaginationState::TableScan { segment, total_segments, last_evaluated_key, .. } => {
                let call = self
                    .client
                    .scan()
                    .table_name(&self.table)
                    .segment(*segment as i32)
                    .total_segments(*total_segments as i32)
                    .limit(limit as i32)
                    .projection_expression(projection)
                    .set_filter_expression(condition)
                    .set_expression_attribute_names(Some(names))
                    .set_expression_attribute_values((!values.is_empty()).then_some(values))
                    .set_exclusive_start_key(start_key(last_evaluated_key)?);
                let answer = call.send().await.map_err(Error::aws(doing()))?;
                (answer.items, answer.last_evaluated_key)
            }
            PaginationState::IndexQuery {
                filter, remaining_values, last_evaluated_key, ..
            } => {
                let (column, value) = self.queried(filter, remaining_values)?;
                let index = self.index(&column).flatten();
                names.insert("#p".to_owned(), column);
                values.insert(":p".to_owned(), value);
                let call = self
                    .client
                    .query()
                    .table_name(&self.table)
                    .set_index_name(index)
                    .key_condition_expression("#p = :p")
                    .limit(limit as i32)
                    .projection_expression(projection)
                    .set_filter_expression(condition)
                    .set_expression_attribute_names(Some(names))
                    .set_expression_attribute_values(Some(values))
                    .set_exclusive_start_key(start_key(last_evaluated_key)?);
                let answer = call.send().await.map_err(Error::aws(doing()))?;
                (answer.items, answer.last_evaluated_key)
            }
            PaginationState::Plan | PaginationState::Merge => (None, None),
        };
        let key_of = |item: HashMap<String, AttributeValue>| self.key_of(item);
        let mut keys: Vec<Key> = items.unwrap_or_default().into_iter().map(key_of).collect();
        keys.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        Ok(Page { keys, last: last.map(last_key) })
    }

    /// The attribute and the value that a look-up is at.
    fn queried(&self, filter: &str, remaining: &[Value]) -> Result<(String, AttributeValue)> {
        let wrong = |detail: &str| Problem::field(Code::Request, "paginationState", detail);
        let column = self.job_type.source.filters.get(filter);
        let column =
            column.ok_or_else(|| wrong("names a filter that the job type does not have"))?;
        let value = remaining.first().ok_or_else(|| wrong("has no value left to look up"))?;
        let kind = self.described.table.column(column).map(|column| column.kind);
        let value = typed(kind, &value.to_json()).map_err(|detail| wrong(&detail))?;
        Ok((column.clone(), value))
    }

    /// The index that an attribute is looked up in; the table itself where it is its partition key.
    fn index(&self, column: &str) -> Option<Option<String>> {
        if self.described.table.primary_key.first().is_some_and(|first| first == column) {
            return Some(None);
        }
        self.described.indexes.get(column).map(|name| Some(name.clone()))
    }

    fn key_of(&self, mut item: HashMap<String, AttributeValue>) -> Key {
        let column = |name: &String| item.remove(name).map_or(Value::Null, from_attribute);
        Key(self.job_type.source.key.iter().map(column).collect())
    }
}

/// A value as an attribute of that kind; as it looks where the kind is not known.
fn typed(kind: Option<ColumnType>, json: &Json) -> std::result::Result<AttributeValue, String> {
    let value = match kind {
        Some(ColumnType::Numeric) => {
            let number = ColumnType::Numeric.read(json)?;
            return Ok(AttributeValue::N(number.to_string()));
        }
        Some(kind) => kind.read(json)?,
        None => Value::from_json(json.clone()),
    };
    to_attribute(&value).map_err(|error| error.to_string())
}

fn last_key(last: HashMap<String, AttributeValue>) -> LastKey {
    last.into_iter().map(|(name, value)| (name, from_attribute(value).to_json())).collect()
}

fn start_key(last: &Option<LastKey>) -> Result<Option<HashMap<String, AttributeValue>>> {
    let Some(last) = last else { return Ok(None) };
    let attribute = |(name, json): (&String, &Json)| {
        let value = to_attribute(&Value::from_json(json.clone()));
        let wrong = |error: windlass_data::DataError| {
            let field = format!("paginationState.lastEvaluatedKey.{name}");
            Problem::field(Code::Request, field, error.to_string())
        };
        Ok((name.clone(), value.map_err(wrong)?))
    };
    last.iter().map(attribute).collect::<Result<_>>().map(Some)
}
