//! Plans a table by its blocks: the chunks are computed from its size, without reading a key.

use crate::Result;
use crate::job_context::JobContext;
use windlass_connectors::BlockCount;
use windlass_core::{KeySet, StepKind};
use windlass_store::NewChunk;

/// The most chunks of a job that is planned by blocks. They are committed in one transaction. The chunks of a larger
/// table have more blocks.
const MAX_CHUNKS: u64 = 50_000;

/// The blocks of a job's table, if the job can be read by blocks. Not if the request selects records by filters or
/// keys, which an index finds, or limits their number.
pub(super) async fn blocks_of(job: &JobContext) -> Result<Option<BlockCount>> {
    let request = &job.snapshot.request;
    let selects = request.ids.is_some()
        || request.max_items_per_segment.is_some()
        || !job.scope.filters.is_empty();
    if selects || !reads_source_alone(job) {
        return Ok(None);
    }
    let count = job.source.blocks(&job.scope).await?;
    Ok(count.filter(|count| count.blocks == 0 || blocks_per_chunk(*count, job) > 0))
}

/// Whether the place of a row in its table can restrict the step's statement.
fn reads_source_alone(job: &JobContext) -> bool {
    match &job.definition().step.kind {
        StepKind::Export(_) => true,
        StepKind::Map(_) => {
            let statement = job.definition().statement().ok().flatten();
            statement.is_some_and(|statement| statement.restricts_only_source())
        }
        _ => false,
    }
}

/// The blocks that have as many rows as a chunk should have; 0 if a block has more.
fn blocks_per_chunk(count: BlockCount, job: &JobContext) -> u64 {
    let items = u128::from(job.definition().chunk_items());
    let blocks = items * u128::from(count.blocks) / u128::from(count.rows.max(1));
    u64::try_from(blocks).unwrap_or(u64::MAX)
}

/// The chunks of a table. The last one has no end: a row of the snapshot can be in a block that was added after the
/// blocks were counted, but before the snapshot was taken.
pub(super) fn chunks(count: BlockCount, job: &JobContext) -> Vec<NewChunk> {
    let per_chunk = blocks_per_chunk(count, job).max(1);
    let chunks = count.blocks.div_ceil(per_chunk).min(MAX_CHUNKS);
    let per_chunk = count.blocks.div_ceil(chunks.max(1)).max(1);
    let chunks = count.blocks.div_ceil(per_chunk);
    let chunk = |number: u64| {
        let from = number * per_chunk;
        let before = (number + 1 < chunks).then_some(from + per_chunk);
        let items = count.items * (number + 1) / chunks - count.items * number / chunks;
        NewChunk { key_set: KeySet::blocks(from, before), items: items as i64 }
    };
    (0..chunks).map(chunk).collect()
}
