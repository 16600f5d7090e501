//! The rows next to the ledger: deferred items and emitted rows, and pruning a job.

use super::expression::{Attributes, Bound};
use super::rows::{self, Row};
use super::{DynamodbConnection, LEDGER, ThrottleBackoff, invalid_request, throttled};
use crate::{
    DeferredItem, DeferredItems, DeferredPage, DeferredState, Emitted, EmittedCursor, LedgerRow,
    Result,
};
use async_trait::async_trait;
use std::collections::BTreeMap;
use windlass_core::{ChunkId, JobId};
use windlass_drivers::Error;
use windlass_drivers::dynamodb::sdk::types::{AttributeValue, DeleteRequest, WriteRequest};

/// The most rows that one request may delete.
const MAX_DELETES: usize = 25;

#[async_trait]
impl DeferredItems for DynamodbConnection {
    async fn deferred(&self, chunk: ChunkId, page: DeferredPage<'_>) -> Result<Vec<DeferredItem>> {
        let DeferredPage { state, after, limit } = page;
        let first = Row::Deferred(chunk, "").sort();
        let from = after.map_or_else(|| first.clone(), |key| Row::Deferred(chunk, key).sort());
        let mut rows = Rows { job: chunk.job, from, upto: end(&first), state: Some(state) };
        let mut found = Vec::new();
        while found.len() < limit as usize {
            let (page, more) = rows.next(self, limit as i32).await?;
            for item in &page {
                found.push(rows::to_deferred(item)?);
            }
            if !more {
                break;
            }
        }
        found.truncate(limit as usize);
        Ok(found)
    }

    async fn emitted(&self, job: JobId, after: &EmittedCursor, limit: u32) -> Result<Vec<Emitted>> {
        let from = Row::Emitted(job, after).sort();
        let mut rows = Rows { job, from, upto: end(EMITTED), state: None };
        let mut found = Vec::new();
        while found.len() < limit as usize {
            let (page, more) = rows.next(self, limit as i32).await?;
            for item in &page {
                found.push(rows::to_emitted(item)?);
            }
            if !more {
                break;
            }
        }
        found.truncate(limit as usize);
        Ok(found)
    }

    async fn discard_emitted(&self, job: JobId) -> Result<u64> {
        delete(self, Rows { job, from: EMITTED.to_owned(), upto: end(EMITTED), state: None }).await
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        let mut deleted = 0;
        for kind in [EMITTED, DEFERRED, LEDGER_ROWS] {
            let rows = Rows { job, from: kind.to_owned(), upto: end(kind), state: None };
            deleted += delete(self, rows).await?;
        }
        Ok(deleted)
    }
}

/// The ledger rows of a job's chunks after this one. The rows next to them are counted by reading
/// them.
pub(super) async fn ledger_rows(
    data: &DynamodbConnection,
    job: JobId,
    after: i64,
    limit: u32,
) -> Result<Vec<LedgerRow>> {
    let from = Row::Ledger(ChunkId { job, number: after }).sort();
    let mut rows = Rows { job, from, upto: end(LEDGER_ROWS), state: None };
    let mut found: BTreeMap<i64, LedgerRow> = BTreeMap::new();
    let mut more = true;
    while more && found.len() < limit as usize {
        let (page, next) = rows.next(data, limit as i32).await?;
        for item in &page {
            let number = rows::chunk_of(item)?;
            let (ledger, _) = rows::ledger(ChunkId { job, number }, item)?;
            let emitted = rows::emitted_count(item);
            let row = LedgerRow { ledger, deferred: 0, dead: 0, emitted, emitted_rows: 0 };
            found.insert(number, row);
        }
        more = next;
    }
    while found.len() > limit as usize {
        found.pop_last();
    }
    let Some(last) = found.keys().next_back().copied() else { return Ok(Vec::new()) };
    for kind in [DEFERRED, EMITTED] {
        // From after the rows of the chunk `after` to the end of the rows of the last chunk.
        let bound = |number| end(&format!("{kind}{}#", rows::digits(number)));
        let mut rows = Rows { job, from: bound(after), upto: bound(last), state: None };
        let mut more = true;
        while more {
            let (page, next) = rows.next(data, 1000).await?;
            for item in &page {
                let Some(row) = found.get_mut(&rows::chunk_of(item)?) else { continue };
                match rows::state_of(item) {
                    _ if kind == EMITTED => row.emitted_rows += 1,
                    Some("dead") => row.dead += 1,
                    _ => row.deferred += 1,
                }
            }
            more = next;
        }
    }
    Ok(found.into_values().collect())
}

/// The prefixes of sort keys.
const LEDGER_ROWS: &str = "ledger#";
const DEFERRED: &str = "deferred#";
const EMITTED: &str = "emitted#";

async fn delete(data: &DynamodbConnection, mut rows: Rows) -> Result<u64> {
    let mut deleted = 0;
    loop {
        let (page, more) = rows.next(data, 1000).await?;
        for batch in page.chunks(MAX_DELETES) {
            let mut requests = Vec::with_capacity(batch.len());
            for item in batch {
                let is_key = |name: &String| name == "job" || name == "row";
                let key = item.iter().filter(|(name, _)| is_key(name));
                let key: Attributes = key.map(|(n, v)| (n.clone(), v.clone())).collect();
                let delete = DeleteRequest::builder().set_key(Some(key)).build();
                let delete = delete.map_err(|error| invalid_request(&error))?;
                requests.push(WriteRequest::builder().delete_request(delete).build());
            }
            write(data, requests).await?;
            deleted += batch.len() as u64;
        }
        if !more {
            return Ok(deleted);
        }
    }
}

async fn write(data: &DynamodbConnection, mut requests: Vec<WriteRequest>) -> Result<()> {
    let mut backoff = ThrottleBackoff::default();
    while !requests.is_empty() {
        let sent = data.client.batch_write_item().request_items(LEDGER, requests).send().await;
        let left = sent.map_err(Error::from)?.unprocessed_items.unwrap_or_default();
        requests = left.into_values().flatten().collect();
        if !requests.is_empty() {
            backoff.wait().await.map_err(|()| throttled())?;
        }
    }
    Ok(())
}

/// Reads the rows of a job whose sort keys lie after `from` and before `upto`.
struct Rows {
    job: JobId,
    from: String,
    upto: String,
    state: Option<DeferredState>,
}

impl Rows {
    /// The next rows, and whether there may be more.
    async fn next(
        &mut self,
        data: &DynamodbConnection,
        limit: i32,
    ) -> Result<(Vec<Attributes>, bool)> {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let mut bound = Bound::default();
        let (job, row) = (bound.name("job"), bound.name("row"));
        let condition = format!(
            "{job} = {} AND {row} BETWEEN {} AND {}",
            bound.value(text(&self.job.to_string())),
            // No text lies between a text and the same text with a zero byte after it.
            bound.value(text(&format!("{}\u{0}", self.from))),
            bound.value(text(&self.upto)),
        );
        let filter = self.state.map(|state| {
            format!("{} = {}", bound.name("state"), bound.value(text(state.as_str())))
        });
        let query = data
            .client
            .query()
            .table_name(LEDGER)
            .consistent_read(true)
            .key_condition_expression(condition)
            .set_filter_expression(filter)
            .set_expression_attribute_names(bound.names())
            .set_expression_attribute_values(bound.values())
            .limit(limit.max(1));
        let page = query.send().await.map_err(Error::from)?;
        let last = page.last_evaluated_key.as_ref().and_then(|key| key.get("row"));
        let last = last.and_then(|row| row.as_s().ok()).cloned();
        let more = last.is_some();
        if let Some(last) = last {
            self.from = last;
        }
        Ok((page.items.unwrap_or_default(), more))
    }
}

/// Sorts after every text with this prefix.
fn end(text: &str) -> String {
    format!("{text}\u{10ffff}")
}
