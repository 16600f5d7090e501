//! The first load of every job: into which segments it is split.

use crate::Result;
use crate::job_context::JobContext;
use windlass_core::request::DEFAULT_SEGMENTS;
use windlass_core::{Key, KeyRange, KeySet, PaginationState, Table, Value};
use windlass_store::{NewChunk, NewSegment};

/// What a plan found: segments to load, or the chunks themselves where the keys were given.
pub(crate) struct Plan {
    pub(crate) segments: Vec<NewSegment>,
    pub(crate) chunks: Vec<NewChunk>,
}

/// Splits a job. Keys given by the request become chunks at once; a filter becomes look-ups by
/// value; otherwise the table is cut into ranges.
pub(crate) async fn plan(job: &JobContext) -> Result<Plan> {
    if let Some(ids) = &job.snapshot.request.ids {
        return Ok(Plan { segments: Vec::new(), chunks: key_lists(job, ids).await? });
    }
    // Whatever was checked at submit, the rows may be others now.
    job.source.check_keys(&job.scope, None).await?;
    let segments = match job.scope.filters.first() {
        Some((filter, column, values)) => by_value(job, filter, column, values).await?,
        None => by_range(job).await?,
    };
    Ok(Plan { segments, chunks: Vec::new() })
}

async fn key_lists(job: &JobContext, ids: &[serde_json::Value]) -> Result<Vec<NewChunk>> {
    let is_items = job.definition().source.items;
    // The key of an item is as the item has it; a table's is of its columns' types; a dead letter's
    // is as it was read, by which the letter is found again.
    let key = |id: serde_json::Value| match is_items || job.is_redrive() {
        true => Key::from_id(id).0,
        false => typed(&job.scope.table, job.scope.key(), id),
    };
    let mut keys: Vec<Vec<Value>> = ids.iter().cloned().map(key).collect();
    if is_items || !job.is_redrive() {
        keys = job.source.distinct(&job.scope, job.scope.key(), keys).await?;
    }
    let items = job.definition().chunk_items() as usize;
    let chunk = |keys: &[Vec<Value>]| NewChunk {
        items: keys.len() as i64,
        key_set: KeySet::keys(keys.iter().cloned().map(Key).collect()),
    };
    Ok(keys.chunks(items).map(chunk).collect())
}

/// An id with each part read as its column's type, so that `"7"` and `7` are one key.
fn typed(table: &Table, columns: &[String], id: serde_json::Value) -> Vec<Value> {
    let Key(parts) = Key::from_id(id);
    let read = |(part, column): (Value, &String)| match table.column(column) {
        Some(_) => table.read_key(column, &part.to_json()).unwrap_or(part),
        None => part,
    };
    parts.into_iter().zip(columns).map(read).collect()
}

/// One look-up per value, side by side; more values than segments share segments.
async fn by_value(
    job: &JobContext,
    filter: &str,
    column: &str,
    values: &[Value],
) -> Result<Vec<NewSegment>> {
    let rows = values.iter().map(|value| vec![value.clone()]).collect();
    let rows = job.source.distinct(&job.scope, &[column.to_owned()], rows).await?;
    let values: Vec<Value> = rows.into_iter().flatten().collect();
    let wanted = job.snapshot.request.parallel_segments.unwrap_or(DEFAULT_SEGMENTS) as usize;
    let groups = wanted.min(values.len());
    let segment = |group: usize| NewSegment {
        range: KeyRange::ALL,
        state: PaginationState::IndexQuery {
            filter: filter.to_owned(),
            remaining_values: values.iter().skip(group).step_by(groups).cloned().collect(),
            last_evaluated_key: None,
            items_enqueued: 0,
        },
    };
    Ok((0..groups).map(segment).collect())
}

async fn by_range(job: &JobContext) -> Result<Vec<NewSegment>> {
    let wanted = match job.snapshot.request.parallel_segments {
        Some(segments) => segments,
        None => segments_for(job.scope.table.estimated_rows, job.definition().chunk_items()),
    };
    let ranges = job.source.split(&job.scope, wanted).await?;
    let total_segments = ranges.len() as u32;
    let segment = |(segment, range)| NewSegment {
        range,
        state: PaginationState::TableScan {
            segment,
            total_segments,
            last_evaluated_key: None,
            items_enqueued: 0,
        },
    };
    Ok((0..).zip(ranges).map(segment).collect())
}

/// A segment should have several chunks to be worth a load of its own.
fn segments_for(rows: u64, items: u32) -> u32 {
    let chunks = rows / u64::from(items.max(1));
    (chunks / 4).clamp(1, u64::from(DEFAULT_SEGMENTS)) as u32
}
