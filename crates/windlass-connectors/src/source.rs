//! Reading records: the traits of a source, and what they return.

use crate::{Result, Scope};
use async_trait::async_trait;
use windlass_core::problem::{Code, Problem};
use windlass_core::{BlockRange, FilterValue, Key, KeyRange, KeySet, Record, Value};

/// Reads and counts records.
#[async_trait]
pub trait RecordReader: Send + Sync {
    /// Reads the records of a key set in key order, up to the limits.
    async fn read(&self, scope: &Scope, key_set: &KeySet, limits: ReadLimits) -> Result<Batch>;
    /// Counts the records of a key set.
    async fn count(&self, scope: &Scope, key_set: &KeySet) -> Result<i64>;
}

/// Plans chunks and reads them.
#[async_trait]
pub trait Source: RecordReader {
    /// Refuses a source in which a record has no key, or in which two records share a key although
    /// the step needs unique keys. Reads rows only where the schema does not guarantee it: the first
    /// `max_rows`, or all rows that the job can reach.
    async fn check_keys(&self, scope: &Scope, max_rows: Option<u64>) -> Result<()>;
    /// Splits the source into at most `segments` ranges of similar size, without a full sort. The
    /// ranges cover everything up to the greatest key at this moment. Returns no range when there
    /// are no records. Where keys have no order, returns [`KeyRange::ALL`] once per segment;
    /// [`Source::scan`] then takes each segment by its number.
    async fn split(&self, scope: &Scope, segments: u32) -> Result<Vec<KeyRange>>;
    /// Cuts the next chunks out of a range, inside the server. The chunks cover the range without
    /// gaps as far as they reach.
    async fn cut(&self, scope: &Scope, range: CutRange<'_>, limits: CutLimits)
    -> Result<ChunkPage>;
    /// The blocks of the source's table, if its records can be read by blocks. `None` otherwise: the database does
    /// not number them, the source is no plain table, or its conditions select so few records that an index is
    /// better.
    async fn blocks(&self, scope: &Scope) -> Result<Option<BlockCount>> {
        let _ = scope;
        Ok(None)
    }
    /// Looks up many values of a filter at once. Each value gets a page with its one chunk, or an
    /// empty page when it has no records. `None` means that the value has more records than one
    /// chunk and needs [`Source::cut`].
    async fn cut_values(&self, scope: &Scope, values: FilterValues<'_>) -> Result<ValuePages> {
        let _ = scope;
        Ok(vec![None; values.values.len()])
    }
    /// Cuts the next chunks out of a numbered segment, where keys have no order and
    /// [`Source::split`] returned [`KeyRange::ALL`]. The chunks are lists of keys greater than `after`.
    async fn scan(
        &self,
        scope: &Scope,
        segment: ScanSegment,
        after: Option<&Key>,
        limits: CutLimits,
    ) -> Result<ChunkPage> {
        let _ = (scope, segment, after, limits);
        Err(Problem::new(Code::Source, "this database is cut by key ranges, not by scan segments")
            .into())
    }
    /// Counts the records of several key sets, on one snapshot where the database has snapshots.
    async fn count_each(&self, scope: &Scope, key_sets: &[KeySet]) -> Result<Vec<i64>> {
        let mut counts = Vec::with_capacity(key_sets.len());
        for key_set in key_sets {
            counts.push(self.count(scope, key_set).await?);
        }
        Ok(counts)
    }
    /// Removes the rows that the database considers equal to an earlier one, and returns each
    /// remaining row as the database writes it. Used for `ids` and filter values.
    async fn distinct(&self, scope: &Scope, columns: &[String], rows: RowSet) -> Result<RowSet>;
}

/// Rows of values.
pub type RowSet = Vec<Vec<Value>>;

/// The pages of [`Source::cut_values`], one for each value.
pub type ValuePages = Vec<Option<ChunkPage>>;

/// How much one call of [`RecordReader::read`] may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Records at most.
    pub items: u32,
    /// No further record is read once this many bytes are.
    pub bytes: usize,
}

impl ReadLimits {
    /// At most `items` records and about `bytes`.
    pub fn new(items: u32, bytes: usize) -> ReadLimits {
        ReadLimits { items, bytes }
    }
}

/// The range to cut, within one value of a filter if there is one.
#[derive(Clone, Copy, Debug)]
pub struct CutRange<'a> {
    /// The value of a filter.
    pub within: Option<&'a FilterValue>,
    /// The range of keys.
    pub range: &'a KeyRange,
    /// The blocks that the records are in, if the range was cut by blocks before.
    pub blocks: Option<BlockRange>,
}

impl<'a> CutRange<'a> {
    /// A range within one value of a filter, if there is one.
    pub fn new(within: Option<&'a FilterValue>, range: &'a KeyRange) -> CutRange<'a> {
        CutRange { within, range, blocks: None }
    }
}

/// Values of a filter to look up, with the size of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct FilterValues<'a> {
    /// The name of the filter.
    pub filter: &'a str,
    /// Its values.
    pub values: &'a [Value],
    /// Records in a full chunk.
    pub chunk_items: u32,
}

/// How much one call of [`Source::cut`] or [`Source::scan`] may cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutLimits {
    /// Records in a full chunk.
    pub chunk_items: u32,
    /// Chunks to return at most.
    pub max_chunks: u32,
    /// Records in all chunks together at most.
    pub max_items: Option<u64>,
}

impl CutLimits {
    /// At most `max_chunks` chunks of `chunk_items` records, with at most `max_items` records in all.
    pub fn new(chunk_items: u32, max_chunks: u32, max_items: Option<u64>) -> CutLimits {
        CutLimits { chunk_items, max_chunks, max_items }
    }
}

/// The size of a table that can be read by blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCount {
    /// Its blocks now. Later records may be in further blocks.
    pub blocks: u64,
    /// Its rows, by the estimate of the database.
    pub rows: u64,
    /// Those that match the conditions of the job, by the estimate of the database.
    pub items: u64,
}

/// Chunks cut out of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkPage {
    /// Each chunk with the number of its records.
    pub chunks: Vec<(KeySet, i64)>,
    /// The last key of the last chunk. `None` when nothing was cut.
    pub last: Option<Key>,
    /// Whether the range is used up, or the limit of records is reached.
    pub done: bool,
}

/// One of the segments into which a database divides a scan by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanSegment {
    /// The number of the segment, counted from zero.
    pub number: u32,
    /// The number of segments.
    pub of: u32,
}

/// One record with its key and its guard.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its key.
    pub key: Key,
    /// What an update of the record compares: its version, or what identifies the state of its row. Null
    /// when the job updates no records.
    pub guard: Value,
    /// The record.
    pub record: Record,
}

/// Records that were read together.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The records, in key order.
    pub items: Vec<Item>,
    /// Whether the key set has no further records.
    pub end: bool,
}

impl Batch {
    /// Makes a batch of items that were read with a limit of `limit + 1`. The extra record shows
    /// whether there are more, so that the last batch of a chunk costs no second query. `complete`
    /// is false when the byte limit ended the reading.
    pub(crate) fn new(mut items: Vec<Item>, complete: bool, limit: u32) -> Batch {
        let end = complete && items.len() <= limit as usize;
        items.truncate(limit as usize);
        Batch { items, end }
    }
}

/// A record before and after a statement that was rolled back.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// Its key.
    pub key: Key,
    /// The current record.
    pub before: Record,
    /// The record after the statement. `None` when the statement deletes it.
    pub after: Option<Record>,
}

impl Preview {
    /// Pairs each record with its later state, by key.
    pub(crate) fn pair(before: Vec<Item>, mut after: Vec<Item>) -> Vec<Preview> {
        let pair = |item: Item| {
            let index = after.iter().position(|after| after.key == item.key);
            let after = index.map(|index| after.swap_remove(index).record);
            Preview { key: item.key, before: item.record, after }
        };
        before.into_iter().map(pair).collect()
    }

    /// The number of records in a preview.
    pub(crate) const MAX_RECORDS: u64 = 20;
}
