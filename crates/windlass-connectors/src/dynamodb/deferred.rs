//! The rows beside the ledger: held items and emitted rows, and forgetting a job.

use super::expression::{Attributes, Bound};
use super::rows::{self, Row};
use super::{DynamodbData, LEDGER, Patience, throttled, unbuilt};
use crate::{DeferredItem, DeferredState, Emitted, LedgerRow, Result};
use std::collections::BTreeMap;
use windlass_core::{ChunkId, JobId};
use windlass_drivers::Error;
use windlass_drivers::dynamodb::sdk::types::{AttributeValue, DeleteRequest, WriteRequest};

/// Rows removed by one request.
const REMOVED: usize = 25;

/// DeferredItem items of a chunk in one state, in the order of their keys' texts.
pub(super) async fn held(
    data: &DynamodbData,
    chunk: ChunkId,
    state: DeferredState,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<DeferredItem>> {
    let first = Row::DeferredItem(chunk, "").sort();
    let from = after.map_or_else(|| first.clone(), |key| Row::DeferredItem(chunk, key).sort());
    let mut walk = Rows { job: chunk.job, from, upto: end(&first), state: Some(state) };
    let mut found = Vec::new();
    while found.len() < limit as usize {
        let (page, more) = walk.next(data, limit as i32).await?;
        for item in &page {
            found.push(rows::to_held(item)?);
        }
        if !more {
            break;
        }
    }
    found.truncate(limit as usize);
    Ok(found)
}

/// The rows that the items of a job emitted, in order after the given place.
pub(super) async fn emitted(
    data: &DynamodbData,
    job: JobId,
    after: &(i64, String, i64),
    limit: u32,
) -> Result<Vec<Emitted>> {
    let from = Row::Emitted(job, after).sort();
    let mut walk = Rows { job, from, upto: end(EMITTED), state: None };
    let mut found = Vec::new();
    while found.len() < limit as usize {
        let (page, more) = walk.next(data, limit as i32).await?;
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

/// The ledger rows of a job's chunks after this one. What is kept beside them is counted by walking
/// through it.
pub(super) async fn ledger_rows(
    data: &DynamodbData,
    job: JobId,
    after: i64,
    limit: u32,
) -> Result<Vec<LedgerRow>> {
    let from = Row::Ledger(ChunkId { job, number: after }).sort();
    let mut walk = Rows { job, from, upto: end("ledger#"), state: None };
    let mut found: BTreeMap<i64, LedgerRow> = BTreeMap::new();
    let mut more = true;
    while more && found.len() < limit as usize {
        let (page, next) = walk.next(data, limit as i32).await?;
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
    for kind in ["held#", EMITTED] {
        // From behind everything of the chunk before to behind everything of the last.
        let bound = |number| end(&format!("{kind}{}#", rows::digits(number)));
        let mut walk = Rows { job, from: bound(after), upto: bound(last), state: None };
        let mut more = true;
        while more {
            let (page, next) = walk.next(data, 1000).await?;
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

const EMITTED: &str = "emitted#";

/// Removes the rows that the items of a job emitted.
pub(super) async fn discard(data: &DynamodbData, job: JobId) -> Result<u64> {
    remove(data, Rows { job, from: EMITTED.to_owned(), upto: end(EMITTED), state: None }).await
}

/// Removes everything of a job: its ledger rows last, so that what is left after a crash is still
/// found by who prunes again.
pub(super) async fn prune(data: &DynamodbData, job: JobId) -> Result<u64> {
    let mut removed = 0;
    for kind in [EMITTED, "held#", "ledger#"] {
        let rows = Rows { job, from: kind.to_owned(), upto: end(kind), state: None };
        removed += remove(data, rows).await?;
    }
    Ok(removed)
}

async fn remove(data: &DynamodbData, mut walk: Rows) -> Result<u64> {
    let mut removed = 0;
    loop {
        let (page, more) = walk.next(data, 1000).await?;
        for some in page.chunks(REMOVED) {
            let mut requests = Vec::with_capacity(some.len());
            for item in some {
                let is_key = |name: &String| name == "job" || name == "row";
                let key = item.iter().filter(|(name, _)| is_key(name));
                let key: Attributes = key.map(|(n, v)| (n.clone(), v.clone())).collect();
                let delete = DeleteRequest::builder().set_key(Some(key)).build();
                let delete = delete.map_err(|error| unbuilt(&error))?;
                requests.push(WriteRequest::builder().delete_request(delete).build());
            }
            write(data, requests).await?;
            removed += some.len() as u64;
        }
        if !more {
            return Ok(removed);
        }
    }
}

async fn write(data: &DynamodbData, mut requests: Vec<WriteRequest>) -> Result<()> {
    let mut patience = Patience::default();
    while !requests.is_empty() {
        let sent = data.client.batch_write_item().request_items(LEDGER, requests).send().await;
        let left = sent.map_err(Error::from)?.unprocessed_items.unwrap_or_default();
        requests = left.into_values().flatten().collect();
        if !requests.is_empty() {
            patience.wait().await.map_err(|()| throttled())?;
        }
    }
    Ok(())
}

/// A walk through rows of a job whose sort keys are after one text and before another.
struct Rows {
    job: JobId,
    from: String,
    upto: String,
    state: Option<DeferredState>,
}

impl Rows {
    /// The next rows, and whether there may be more.
    async fn next(&mut self, data: &DynamodbData, limit: i32) -> Result<(Vec<Attributes>, bool)> {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let mut bound = Bound::default();
        let (job, row) = (bound.name("job"), bound.name("row"));
        let condition = format!(
            "{job} = {} AND {row} BETWEEN {} AND {}",
            bound.value(text(&self.job.to_string())),
            // Right after it: no text lies between one and itself with a zero.
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

/// Behind everything that begins with a text.
fn end(text: &str) -> String {
    format!("{text}\u{10ffff}")
}
