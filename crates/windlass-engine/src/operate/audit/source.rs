//! The source as it is now against what was planned and read, chunk by chunk.
//!
//! Numbers of rows are compared for each chunk by itself, so that a row that moved from a chunk not
//! yet worked to one already worked is seen: it is missing in the first, and too many in the second.

use super::verdict::{Drift, Notes};
use crate::engine::Engine;
use crate::job_context::JobContext;
use std::collections::BTreeMap;
use windlass_core::{
    Counts, FilterValue, Key, KeyRange, KeySet, Keys, PaginationState, StepKind, Value,
};
use windlass_store::{ChunkRow, JobSnapshot, SegmentRow};

/// What is known of the source while the chunks go by.
pub(super) struct SourceCheck {
    job: JobContext,
    rest: Rest,
    /// The last key planned of each filter value.
    last: BTreeMap<String, Key>,
    /// Rows that the chunks have now.
    now: i64,
    /// Between planning and reading.
    before: Change,
    /// Since reading, where processed rows stay in the source.
    since: Change,
    /// Since reading, where processed rows leave it.
    since_leaving: Change,
    processed: i64,
    dead: i64,
}

/// Where rows may be that no chunk has.
enum Rest {
    /// Nowhere: the request names its rows, or stops before the end.
    Nowhere,
    /// Behind the greatest planned key.
    Behind(KeyRange),
    /// Behind the last planned key of each value of the first filter, or between the listed keys.
    OfFilter,
    /// Anywhere: keys have no order.
    Anywhere,
}

/// Rows more and fewer than expected, and the first chunks with such.
#[derive(Debug, Default)]
struct Change {
    drift: Drift,
    chunks: Vec<i64>,
    more_chunks: bool,
}

/// Chunks that a line names.
const NAMED: usize = 5;

impl SourceCheck {
    /// None where the source cannot be reached, which is noted.
    pub(super) async fn open(
        engine: &Engine,
        snapshot: JobSnapshot,
        segments: &[SegmentRow],
        notes: &mut Notes,
    ) -> Option<SourceCheck> {
        let request = &snapshot.request;
        let rest = if request.ids.is_some() || request.max_items_per_segment.is_some() {
            Rest::Nowhere
        } else {
            Rest::of(segments)
        };
        match engine.resolve_to_look(snapshot).await {
            Ok(job) => Some(SourceCheck {
                job,
                rest,
                last: BTreeMap::new(),
                now: 0,
                before: Change::default(),
                since: Change::default(),
                since_leaving: Change::default(),
                processed: 0,
                dead: 0,
            }),
            Err(error) => {
                unread(&error, notes);
                None
            }
        }
    }

    /// Counts the rows that some chunks have now. False where the source cannot be read.
    pub(super) async fn page(&mut self, chunks: &[ChunkRow], notes: &mut Notes) -> bool {
        let key_sets: Vec<KeySet> = chunks.iter().map(|chunk| chunk.key_set.clone()).collect();
        match self.job.source.count_each(&self.job.scope, &key_sets).await {
            Ok(counts) => {
                for (chunk, now) in chunks.iter().zip(counts) {
                    self.chunk(chunk, now);
                }
                true
            }
            Err(error) => {
                unread(&error, notes);
                false
            }
        }
    }

    fn chunk(&mut self, chunk: &ChunkRow, now: i64) {
        let Counts { read, processed, skipped, dead, .. } = chunk.counts;
        let number = chunk.chunk;
        self.now += now;
        self.processed += processed;
        self.dead += dead;
        self.before.add(number, read, chunk.items..=chunk.items);
        let (stays, leaves) = match &chunk.key_set.keys {
            Keys::Range(_) => (read..=read, skipped..=skipped + dead),
            // Keys of a filter's index, each of which had its row when it was listed.
            Keys::List(keys) if chunk.segment > 0 => {
                let listed = keys.len() as i64;
                (listed..=listed, skipped..=skipped + dead)
            }
            // Keys that were asked for: those without a row count as skipped.
            Keys::List(_) => (processed + dead..=read, 0..=skipped + dead),
        };
        self.since.add(number, now, stays);
        self.since_leaving.add(number, now, leaves);
        let last = match &chunk.key_set.keys {
            Keys::Range(range) => range.upto.clone(),
            Keys::List(keys) => keys.last().cloned(),
        };
        if let (Some(within), Some(last)) = (&chunk.key_set.within, last) {
            self.last.insert(within.value.to_string(), last);
        }
    }

    /// After the last chunk: rows that no chunk has, and what all of it comes to. The drift, and how
    /// many rows left the source as they were processed.
    pub(super) async fn end(mut self, notes: &mut Notes) -> (Option<Drift>, i64) {
        let (behind, between) = match self.outside().await {
            Ok(outside) => outside,
            Err(error) => {
                unread(&error, notes);
                return (None, 0);
            }
        };
        let definition = self.job.definition();
        let by_items = definition.changes_source().unwrap_or(false);
        if !by_items {
            notes.not_judged(
                "the step's statement changes another table than the source, so that the rows it \
                 affects do not tell which items it processed",
            );
        }
        if !self.before.is_none() {
            let shared = match self.shares_keys() && self.dead > 0 {
                true => {
                    "; rows of one key that fail count as one item, since the key is not unique"
                }
                false => "",
            };
            notes.not_judged(format!(
                "rows were inserted, deleted or moved while the job ran: it read {}{shared}",
                self.before.describe("than were planned")
            ));
        }
        // Rows that were processed may leave the source by that.
        let leaves = self.may_leave() && !self.since.is_none() && self.since_leaving.is_none();
        let since = if leaves { &mut self.since_leaving } else { &mut self.since };
        since.drift.appeared += between;
        if !since.is_none() {
            let why = match self.job.definition().source.condition {
                Some(_) => ", or do or do not match `source.where` any more",
                None => "",
            };
            notes.not_judged(format!(
                "rows were inserted, deleted or moved{why} since the job read them: the source has \
                 {}; whether a row moved where the job had been before it was read, the source does \
                 not tell",
                since.describe("than were read")
            ));
        }
        let drift = Drift {
            appeared: self.before.drift.appeared + since.drift.appeared + behind,
            disappeared: self.before.drift.disappeared + since.drift.disappeared,
        };
        (Some(drift), if leaves { self.processed } else { 0 })
    }

    /// Rows that no chunk has: behind the last planned key, where new ones come in order, and between
    /// the planned ones.
    async fn outside(&self) -> crate::Result<(i64, i64)> {
        let (source, scope) = (&self.job.source, &self.job.scope);
        let count = async |range: KeyRange| {
            source.count(scope, &KeySet { within: None, keys: Keys::Range(range) }).await
        };
        Ok(match &self.rest {
            Rest::Nowhere => (0, 0),
            Rest::Behind(range) => (count(range.clone()).await?, 0),
            Rest::Anywhere => (0, (count(KeyRange::ALL).await? - self.now).max(0)),
            Rest::OfFilter => {
                let all = count(KeyRange::ALL).await?;
                let behind = if scope.table.open { 0 } else { self.behind_values().await? };
                (behind, (all - self.now - behind).max(0))
            }
        })
    }

    /// Rows behind the last planned key of each value of the filter that the job was planned by.
    async fn behind_values(&self) -> crate::Result<i64> {
        let (source, scope) = (&self.job.source, &self.job.scope);
        let Some((filter, column, values)) = scope.filters.first() else { return Ok(0) };
        let rows: Vec<Vec<Value>> = values.iter().map(|value| vec![value.clone()]).collect();
        let values = source.distinct(scope, std::slice::from_ref(column), rows).await?;
        let behind = |value: Value| {
            let after = self.last.get(&value.to_string()).cloned();
            let within = Some(FilterValue { filter: filter.clone(), value });
            KeySet { within, keys: Keys::Range(KeyRange { after, upto: None }) }
        };
        let key_sets: Vec<KeySet> = values.into_iter().flatten().map(behind).collect();
        Ok(source.count_each(scope, &key_sets).await?.into_iter().sum())
    }

    /// Whether the step may take rows out of the source by processing them.
    fn may_leave(&self) -> bool {
        let definition = self.job.definition();
        let statement = definition.statement().ok().flatten();
        let deletes = matches!(definition.step.kind, StepKind::Sql(_))
            && statement.is_some_and(|statement| statement.deletes());
        deletes || definition.source.condition.is_some() || definition.source.query.is_some()
    }

    fn shares_keys(&self) -> bool {
        let key: Vec<&str> = self.job.scope.key().iter().map(String::as_str).collect();
        let table = &self.job.scope.table;
        table.index_on(&key).is_some() && !table.is_unique(&key)
    }
}

impl Rest {
    fn of(segments: &[SegmentRow]) -> Rest {
        let is_filter = |row: &SegmentRow| matches!(row.state, PaginationState::IndexQuery { .. });
        let is_scan = |row: &&SegmentRow| {
            row.segment > 0 && matches!(row.state, PaginationState::TableScan { .. })
        };
        match segments.iter().rfind(is_scan) {
            _ if segments.iter().any(is_filter) => Rest::OfFilter,
            Some(last) if last.range == KeyRange::ALL => Rest::Anywhere,
            Some(last) => Rest::Behind(KeyRange { after: last.range.upto.clone(), upto: None }),
            // There were no rows.
            None => Rest::Behind(KeyRange::ALL),
        }
    }
}

impl Change {
    fn add(&mut self, chunk: i64, found: i64, expected: std::ops::RangeInclusive<i64>) {
        let more = (found - expected.end()).max(0);
        let fewer = (expected.start() - found).max(0);
        self.drift.appeared += more;
        self.drift.disappeared += fewer;
        if more + fewer > 0 {
            match self.chunks.len() < NAMED {
                true => self.chunks.push(chunk),
                false => self.more_chunks = true,
            }
        }
    }

    fn is_none(&self) -> bool {
        self.drift == Drift::default()
    }

    /// `3 rows more and 1 fewer than were planned (chunks 2, 7)`
    fn describe(&self, than: &str) -> String {
        let Drift { appeared, disappeared } = self.drift;
        let chunks: Vec<String> = self.chunks.iter().map(i64::to_string).collect();
        let chunks = match (chunks.is_empty(), self.more_chunks) {
            (true, _) => String::new(),
            (false, more) => {
                format!(" (chunks {}{})", chunks.join(", "), if more { ", …" } else { "" })
            }
        };
        format!("{appeared} more and {disappeared} fewer {than}{chunks}")
    }
}

fn unread(error: &dyn std::fmt::Display, notes: &mut Notes) {
    notes.not_judged(format!("the source could not be read: {error}"));
}
