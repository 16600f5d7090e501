//! A page of keys and its messages.

use crate::message::{JOB_ID, PARAMS};
use crate::{Error, Message, Result, State};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_connectors::dynamodb::Records;
use windlass_connectors::{ChunkPage, CutLimits, CutRange, ScanSegment, Scope};
use windlass_core::pagination::{LastKey, name_key, unname_key};
use windlass_core::problem::Code;
use windlass_core::{FilterValue, JobId, Key, KeyRange, Keys, PaginationState, Problem, Request};

/// A request that is being enqueued, with its table and its scope.
pub(crate) struct EnqueuePlan {
    pub(crate) scope: Scope,
    /// The attributes of each of its messages.
    pub(crate) attributes: BTreeMap<String, String>,
    /// The most items of a segment.
    pub(crate) most: Option<u64>,
    /// The keys that the request lists, as the table has them.
    pub(crate) ids: Option<Vec<Json>>,
    pub(crate) records: Arc<Records>,
}

/// A page of keys, and where the next page begins; `None` at the end.
pub(crate) struct Page {
    pub(crate) keys: Vec<Key>,
    pub(crate) last: Option<LastKey>,
}

/// The most bytes of a message with several items, well below SQS's limit.
const MAX_BYTES: usize = 192 << 10;

impl EnqueuePlan {
    pub(crate) fn new(
        records: Arc<Records>,
        scope: Scope,
        job: JobId,
        request: Request,
    ) -> EnqueuePlan {
        let mut attributes = BTreeMap::from([(JOB_ID.to_owned(), job.to_string())]);
        if !scope.params.is_empty() {
            let params = serde_json::to_string(&scope.params).unwrap_or_default();
            attributes.insert(PARAMS.to_owned(), params);
        }
        let most = request.max_items_per_segment;
        EnqueuePlan { scope, attributes, most, ids: request.ids, records }
    }

    /// Whether an index covers the column of a filter.
    pub(crate) fn is_indexed(&self, filter: &str) -> bool {
        let column = self.scope.job_type.source.filters.get(filter);
        column.is_some_and(|column| self.scope.table.index_on(&[column]).is_some())
    }

    /// Listed keys without duplicates.
    pub(crate) async fn keys(&self, ids: &[Json]) -> Result<Vec<Key>> {
        let rows = ids.iter().map(|id| Key::from_id(id.clone()).0).collect();
        let rows = self.records.connection().distinct(&self.scope, self.scope.key(), rows).await;
        Ok(rows.map_err(Error::data("ids"))?.into_iter().map(Key).collect())
    }

    /// The messages for these keys. Each has as many keys as the job type says, or fewer if they are
    /// long.
    pub(crate) fn bodies(&self, keys: &[Key]) -> Result<Vec<String>> {
        let most = self.scope.job_type.queue.items_per_message as usize;
        let mut bodies = Vec::with_capacity(keys.len().div_ceil(most));
        let mut rest = keys;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |key: &&Key| {
                bytes += key.to_text().len() + 1;
                bytes <= MAX_BYTES
            };
            let count = rest.iter().take(most).take_while(fits).count().max(1);
            let (these, others) = rest.split_at(count);
            bodies.push(Message::body(&self.scope.job_type, these)?);
            rest = others;
        }
        Ok(bodies)
    }

    /// The next page of a segment.
    pub(crate) async fn page(&self, state: &State) -> Result<Page> {
        let items = self.scope.job_type.listed_items();
        let left = self.most.map(|most| most.saturating_sub(state.items_enqueued()));
        let source = self.records.connection();
        let (cuts, columns) = match &state.0 {
            PaginationState::TableScan { segment, total_segments, last_evaluated_key, .. } => {
                let share = ScanSegment { number: *segment, of: *total_segments };
                let columns = self.scope.key().to_vec();
                let after = last_evaluated_key.as_ref().map(|last| unname_key(&columns, last));
                let cuts =
                    source.scan(&self.scope, share, after.as_ref(), CutLimits::new(items, 1, left));
                (cuts.await, columns)
            }
            PaginationState::IndexQuery {
                filter, remaining_values, last_evaluated_key, ..
            } => {
                let value = remaining_values.first().cloned().ok_or_else(|| {
                    let detail = "has no value left to look up";
                    Problem::field(Code::Request, "paginationState", detail)
                })?;
                let within = FilterValue { filter: filter.clone(), value };
                let columns = self.scope.resume_columns(filter);
                let after = last_evaluated_key.as_ref().map(|last| unname_key(&columns, last));
                let range = KeyRange { after, upto: None };
                let cuts = source.cut(
                    &self.scope,
                    CutRange::new(Some(&within), &range),
                    CutLimits::new(items, 1, left),
                );
                (cuts.await, columns)
            }
            PaginationState::Plan | PaginationState::Merge => {
                return Ok(Page { keys: Vec::new(), last: None });
            }
        };
        let doing = || format!("reading keys of `{}`", self.scope.table.name);
        let ChunkPage { chunks, last, done } = cuts.map_err(Error::data(doing()))?;
        let keys = chunks.into_iter().flat_map(|(key_set, _)| match key_set.keys {
            Keys::List(keys) => keys,
            Keys::Range(_) => Vec::new(),
        });
        let last = last.filter(|_| !done).map(|last| name_key(&columns, &last));
        Ok(Page { keys: keys.collect(), last })
    }
}
