//! Splits a new job into segments, or directly into chunks when the request names its keys.

use crate::Result;
use crate::job_context::JobContext;
use windlass_core::request::DEFAULT_SEGMENTS;
use windlass_core::{Key, KeyRange, KeySet, PaginationState, Table, Value};
use windlass_store::{NewChunk, NewSegment};

/// The plan of a job: segments to cut, or the chunks themselves if the request names its keys.
pub(crate) struct Plan {
    pub(crate) segments: Vec<NewSegment>,
    pub(crate) chunks: Vec<NewChunk>,
}

/// Plans a job. Keys named by the request become chunks at once. A filter becomes index look-ups by
/// value. Otherwise the table is split into key ranges.
pub(crate) async fn plan(job: &JobContext) -> Result<Plan> {
    if let Some(ids) = &job.snapshot.request.ids {
        return Ok(Plan { segments: Vec::new(), chunks: key_lists(job, ids).await? });
    }
    // Checked again: rows may have changed since the job was submitted.
    job.source.check_keys(&job.scope, None).await?;
    let segments = match job.scope.filters.first() {
        Some((filter, column, values)) => by_value(job, filter, column, values).await?,
        None => by_range(job).await?,
    };
    Ok(Plan { segments, chunks: Vec::new() })
}

async fn key_lists(job: &JobContext, ids: &[serde_json::Value]) -> Result<Vec<NewChunk>> {
    let is_items = job.definition().source.items;
    // An inline item's key is taken as it is. A table's key is converted to the types of its columns.
    // A dead letter's key stays as it was read, because the letter is found by it.
    let key = |id: serde_json::Value| match is_items || job.is_redrive() {
        true => Key::from_id(id).0,
        false => typed_key(&job.scope.table, job.scope.key(), id),
    };
    let mut keys: Vec<Vec<Value>> = ids.iter().cloned().map(key).collect();
    if is_items || !job.is_redrive() {
        keys = job.source.distinct(&job.scope, job.scope.key(), keys).await?;
    }
    let items = job.definition().listed_items() as usize;
    let chunk = |keys: &[Vec<Value>]| NewChunk {
        items: keys.len() as i64,
        key_set: KeySet::keys(keys.iter().cloned().map(Key).collect()),
    };
    Ok(keys.chunks(items).map(chunk).collect())
}

/// An id with each part converted to its column's type, so that `"7"` and `7` are the same key.
fn typed_key(table: &Table, columns: &[String], id: serde_json::Value) -> Vec<Value> {
    let Key(parts) = Key::from_id(id);
    let read = |(part, column): (Value, &String)| match table.column(column) {
        Some(_) => table.read_key(column, &part.to_json()).unwrap_or(part),
        None => part,
    };
    parts.into_iter().zip(columns).map(read).collect()
}

/// Distributes the filter values over the segments, which are planned in parallel.
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
        None => default_segments(job.scope.table.estimated_rows, job.definition().chunk_items()),
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

/// The number of segments if the request names none: each should have at least four chunks.
fn default_segments(rows: u64, items: u32) -> u32 {
    let chunks = rows / u64::from(items.max(1));
    (chunks / 4).clamp(1, u64::from(DEFAULT_SEGMENTS)) as u32
}
