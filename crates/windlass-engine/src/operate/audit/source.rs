//! Compares the source as it is now with what was planned and read, chunk by chunk.
//!
//! Row counts are compared per chunk. This detects a row that moved from a chunk before it was read to a
//! chunk after it was read: the first has a row too few, the second one too many.

use super::verdict::{Drift, Findings};
use crate::engine::Engine;
use crate::job_context::JobContext;
use std::collections::BTreeMap;
use windlass_core::{
    Counts, FilterValue, Key, KeyRange, KeySet, Keys, PaginationState, StepKind, Value,
};
use windlass_store::{ChunkRow, JobSnapshot, SegmentRow};

/// State of the check, updated chunk by chunk.
pub(super) struct SourceCheck {
    job: JobContext,
    unplanned: UnplannedRows,
    /// The last planned key of each filter value.
    last: BTreeMap<String, Key>,
    /// Rows that are now in the chunks.
    now: i64,
    /// Difference between planning and reading.
    before: RowDifference,
    /// Difference since reading, if processed rows stay in the source.
    since: RowDifference,
    /// Difference since reading, if processed rows leave the source.
    since_leaving: RowDifference,
    processed: i64,
    dead: i64,
    /// Whether all chunks were read at one instant, so that no row could move out of one that was not read yet into
    /// one that was.
    at_one_instant: bool,
    /// Rows that were read by blocks. A row that is updated moves to another block, so they are compared in all.
    read_by_blocks: Option<i64>,
}

/// Where the source may have rows that are in no chunk.
enum UnplannedRows {
    /// Not checked: the request names its rows, or stops before the end.
    NotChecked,
    /// After the greatest planned key.
    After(KeyRange),
    /// After the last planned key of each value of the first filter, or between the listed keys.
    PerFilterValue,
    /// Anywhere: keys have no order.
    Anywhere,
}

/// Rows more and fewer than expected, and the first chunks that differ.
#[derive(Debug, Default)]
struct RowDifference {
    drift: Drift,
    chunks: Vec<i64>,
    more_chunks: bool,
}

/// Chunks named in a finding.
const MAX_CHUNKS_NAMED: usize = 5;

impl SourceCheck {
    /// Opens the source; `None` if it cannot be reached, which is recorded.
    pub(super) async fn open(
        engine: &Engine,
        snapshot: JobSnapshot,
        segments: &[SegmentRow],
        findings: &mut Findings,
    ) -> Option<SourceCheck> {
        let request = &snapshot.request;
        let unplanned = if request.ids.is_some() || request.max_items_per_segment.is_some() {
            UnplannedRows::NotChecked
        } else {
            UnplannedRows::of(segments)
        };
        match engine.resolve_read_only(snapshot).await {
            Ok(job) => Some(SourceCheck {
                job,
                unplanned,
                last: BTreeMap::new(),
                now: 0,
                before: RowDifference::default(),
                since: RowDifference::default(),
                since_leaving: RowDifference::default(),
                processed: 0,
                dead: 0,
                at_one_instant: true,
                read_by_blocks: None,
            }),
            Err(error) => {
                source_unreadable(&error, findings);
                None
            }
        }
    }

    /// Counts the rows that are now in a page of chunks. Returns false if the source cannot be read.
    pub(super) async fn page(&mut self, chunks: &[ChunkRow], findings: &mut Findings) -> bool {
        let is_at_one_instant =
            |chunk: &ChunkRow| chunk.key_set.snapshot.is_some() || chunk.key_set.blocks.is_some();
        self.at_one_instant &= chunks.iter().all(is_at_one_instant);
        if chunks.iter().any(|chunk| chunk.key_set.blocks.is_some()) {
            let read: i64 = chunks.iter().map(|chunk| chunk.counts.read).sum();
            *self.read_by_blocks.get_or_insert_default() += read;
            return true;
        }
        let key_sets: Vec<KeySet> = chunks.iter().map(|chunk| chunk.key_set.clone()).collect();
        match self.job.source.count_each(&self.job.scope, &key_sets).await {
            Ok(counts) => {
                for (chunk, now) in chunks.iter().zip(counts) {
                    self.chunk(chunk, now);
                }
                true
            }
            Err(error) => {
                source_unreadable(&error, findings);
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
            // Keys listed from the index of a filter: each had a row when it was planned.
            Keys::List(keys) if chunk.segment > 0 => {
                let listed = keys.len() as i64;
                (listed..=listed, skipped..=skipped + dead)
            }
            // Keys named by the request: those without a row count as skipped.
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

    /// After the last chunk: counts rows that are in no chunk and records the findings. Returns the drift,
    /// and how many rows left the source because they were processed.
    pub(super) async fn end(mut self, findings: &mut Findings) -> (Option<Drift>, i64) {
        if let Some(read) = self.read_by_blocks {
            return match self.job.source.count(&self.job.scope, &KeySet::range(None, None)).await {
                Ok(now) => {
                    let (appeared, disappeared) = ((now - read).max(0), (read - now).max(0));
                    (Some(Drift { appeared, disappeared }), 0)
                }
                Err(error) => {
                    source_unreadable(&error, findings);
                    (None, 0)
                }
            };
        }
        let (behind, between) = match self.count_unplanned().await {
            Ok(counts) => counts,
            Err(error) => {
                source_unreadable(&error, findings);
                return (None, 0);
            }
        };
        let definition = self.job.definition();
        let by_items = definition.changes_source().unwrap_or(false);
        if !by_items {
            findings.not_judged(
                "the step's statement changes another table than the source, or names it in another \
                 way than `source.table`, so its affected rows do not show which items were processed",
            );
        }
        if !self.before.is_none() && self.at_one_instant {
            findings.not_judged(format!(
                "the chunks were planned and read at one instant, but {}; the source depends on the time of the \
                 read, or a table behind it was rewritten meanwhile (TRUNCATE, ALTER TABLE)",
                self.before.describe("between planning and reading")
            ));
        } else if !self.before.is_none() {
            let shared = match self.shares_keys() && self.dead > 0 {
                true => {
                    "; failed rows with the same key count as one item, since the key is not unique"
                }
                false => "",
            };
            findings.not_judged(format!(
                "rows were inserted, deleted or moved while the job ran: {}{shared}",
                self.before.describe("between planning and reading")
            ));
        }
        // Processing may remove rows from the source.
        let leaves = self.may_leave() && !self.since.is_none() && self.since_leaving.is_none();
        let since = if leaves { &mut self.since_leaving } else { &mut self.since };
        since.drift.appeared += between;
        if !since.is_none() && !self.at_one_instant {
            let why = match self.job.definition().source.condition {
                Some(_) => ", or started or stopped matching `source.where`,",
                None => "",
            };
            findings.not_judged(format!(
                "rows were inserted, deleted or moved{why} since the job read them: \
                 {}; a row may have moved into a chunk that was already read, so that the job missed \
                 it",
                since.describe("since")
            ));
        }
        let drift = Drift {
            appeared: self.before.drift.appeared + since.drift.appeared + behind,
            disappeared: self.before.drift.disappeared + since.drift.disappeared,
        };
        (Some(drift), if leaves { self.processed } else { 0 })
    }

    /// Counts rows that are in no chunk: after the last planned key, where rows with ascending keys are
    /// added, and between the planned keys.
    async fn count_unplanned(&self) -> crate::Result<(i64, i64)> {
        let (source, scope) = (&self.job.source, &self.job.scope);
        let count = async |range: KeyRange| {
            source.count(scope, &KeySet::new(None, Keys::Range(range))).await
        };
        Ok(match &self.unplanned {
            UnplannedRows::NotChecked => (0, 0),
            UnplannedRows::After(range) => (count(range.clone()).await?, 0),
            UnplannedRows::Anywhere => (0, (count(KeyRange::ALL).await? - self.now).max(0)),
            UnplannedRows::PerFilterValue => {
                let all = count(KeyRange::ALL).await?;
                let behind = if scope.table.open { 0 } else { self.count_after_values().await? };
                (behind, (all - self.now - behind).max(0))
            }
        })
    }

    /// Counts rows after the last planned key of each value of the filter that the job was planned by.
    async fn count_after_values(&self) -> crate::Result<i64> {
        let (source, scope) = (&self.job.source, &self.job.scope);
        let Some((filter, column, values)) = scope.filters.first() else { return Ok(0) };
        let rows: Vec<Vec<Value>> = values.iter().map(|value| vec![value.clone()]).collect();
        let values = source.distinct(scope, std::slice::from_ref(column), rows).await?;
        let behind = |value: Value| {
            let after = self.last.get(&value.to_string()).cloned();
            let within = Some(FilterValue { filter: filter.clone(), value });
            KeySet::new(within, Keys::Range(KeyRange { after, upto: None }))
        };
        let key_sets: Vec<KeySet> = values.into_iter().flatten().map(behind).collect();
        Ok(source.count_each(scope, &key_sets).await?.into_iter().sum())
    }

    /// Whether processing a row may remove it from the source.
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

impl UnplannedRows {
    fn of(segments: &[SegmentRow]) -> UnplannedRows {
        let is_filter = |row: &SegmentRow| matches!(row.state, PaginationState::IndexQuery { .. });
        let is_scan = |row: &&SegmentRow| {
            row.segment > 0 && matches!(row.state, PaginationState::TableScan { .. })
        };
        match segments.iter().rfind(is_scan) {
            _ if segments.iter().any(is_filter) => UnplannedRows::PerFilterValue,
            Some(last) if last.range == KeyRange::ALL => UnplannedRows::Anywhere,
            Some(last) => {
                UnplannedRows::After(KeyRange { after: last.range.upto.clone(), upto: None })
            }
            // The source was empty when the job was planned.
            None => UnplannedRows::After(KeyRange::ALL),
        }
    }
}

impl RowDifference {
    fn add(&mut self, chunk: i64, found: i64, expected: std::ops::RangeInclusive<i64>) {
        let more = (found - expected.end()).max(0);
        let fewer = (expected.start() - found).max(0);
        self.drift.appeared += more;
        self.drift.disappeared += fewer;
        if more + fewer > 0 {
            match self.chunks.len() < MAX_CHUNKS_NAMED {
                true => self.chunks.push(chunk),
                false => self.more_chunks = true,
            }
        }
    }

    fn is_none(&self) -> bool {
        self.drift == Drift::default()
    }

    /// `3 rows more and 1 fewer than were planned (chunks 2, 7)`
    fn describe(&self, when: &str) -> String {
        let Drift { appeared, disappeared } = self.drift;
        let chunks: Vec<String> = self.chunks.iter().map(i64::to_string).collect();
        let chunks = match (chunks.is_empty(), self.more_chunks) {
            (true, _) => String::new(),
            (false, more) => {
                format!(" (chunks {}{})", chunks.join(", "), if more { ", …" } else { "" })
            }
        };
        format!("{appeared} appeared and {disappeared} disappeared {when}{chunks}")
    }
}

fn source_unreadable(error: &dyn std::fmt::Display, findings: &mut Findings) {
    findings.not_judged(format!("the source could not be read: {error}"));
}
