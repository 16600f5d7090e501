//! Cuts a range into chunks: a prepared statement finds the last key of one chunk after the other.

use super::{failed, row};
use crate::chunk_cutter::{ChunkCutter, NextCut};
use crate::key_check::check_null;
use crate::key_walk::{self, Step};
use crate::predicate::Bounds;
use crate::sql::{Dialect, Sql};
use crate::value_lookup::ValueLookup;
use crate::{ChunkPage, Result, Scope, statement};
use rusqlite::Connection;
use windlass_core::{FilterValue, Key, KeyRange, KeySet, Keys, Value};

/// Cuts the next page of chunks.
pub(super) fn cut(
    connection: &Connection,
    scope: &Scope,
    within: Option<&FilterValue>,
    mut cutter: ChunkCutter,
) -> Result<ChunkPage> {
    let queries = CutQueries { connection, scope, within };
    if !scope.walks_by_key(within) {
        if within.is_some() {
            let keys = queries.list(&cutter.remaining(), cutter.capacity())?;
            return Ok(cutter.finish_with_keys(keys));
        }
        for (key, items) in
            queries.number(&cutter.remaining(), cutter.chunk_items(), cutter.max_full_chunks())?
        {
            cutter.push(key, items);
        }
    } else {
        for _ in 0..cutter.max_full_chunks() {
            let Some(key) = queries.jump(&cutter.remaining(), cutter.chunk_items())? else { break };
            let items = queries.items(&cutter.remaining_upto(&key), cutter.chunk_items())?;
            cutter.push(key, items);
        }
    }
    let limit = match cutter.next() {
        NextCut::Finish { done } => return Ok(cutter.finish(done)),
        NextCut::Tail(limit) => limit,
    };
    let remaining = cutter.remaining();
    if let Some(limit) = limit
        && let Some(last) = queries.jump(&remaining, limit)?
    {
        let items = queries.items(&cutter.remaining_upto(&last), limit)?;
        cutter.push(last, items);
        return Ok(cutter.finish(true));
    }
    let left = queries.count(&remaining)?;
    let last = match remaining.upto {
        None if left > 0 => queries.select(&remaining, Bounds::All, " DESC", 1, 0)?.pop(),
        _ => None,
    };
    cutter.end(left, last);
    Ok(cutter.finish(true))
}

/// Looks up many values of a filter with two statements.
pub(super) fn cut_values(
    connection: &Connection,
    scope: &Scope,
    filter: &str,
    values: &[Value],
    chunk_items: u32,
) -> Result<Vec<Option<ChunkPage>>> {
    let mut lookup = ValueLookup::new(Dialect::Sqlite, scope, filter, values);
    let mut larger = Vec::new();
    row::each(connection, &lookup.larger_than(chunk_items), |row| {
        larger.push(row.get(0).map_err(failed)?);
        Ok(true)
    })?;
    lookup.remove(&larger);
    let (columns, mut found) = (scope.key().len(), Vec::new());
    row::each(connection, &lookup.keys(), |row| {
        let key = (0..columns).map(|index| row::key_value(row, index));
        let key = Key(key.collect::<Result<_>>()?);
        check_null(scope, &key)?;
        let items = row.get(columns + 1).map_err(failed)?;
        found.push((row.get(columns).map_err(failed)?, key, items));
        Ok(true)
    })?;
    Ok(lookup.pages(found))
}

/// The greatest key of the whole source, including records outside the job's conditions: it bounds
/// ranges that are cut by keys alone. Where a key may be null, only records of the job count.
pub(super) fn greatest(connection: &Connection, scope: &Scope) -> Result<Option<Key>> {
    let queries = CutQueries { connection, scope, within: None };
    let bounds = if scope.key_may_be_null() { Bounds::All } else { Bounds::Keys };
    Ok(queries.select(&KeyRange::ALL, bounds, " DESC", 1, 0)?.pop())
}

struct CutQueries<'a> {
    connection: &'a Connection,
    scope: &'a Scope,
    within: Option<&'a FilterValue>,
}

impl CutQueries<'_> {
    /// The n-th key of a range.
    fn jump(&self, range: &KeyRange, items: u64) -> Result<Option<Key>> {
        Ok(self.select(range, Bounds::All, "", 1, items.saturating_sub(1))?.pop())
    }

    fn select(
        &self,
        range: &KeyRange,
        bounds: Bounds,
        direction: &str,
        limit: u64,
        offset: u64,
    ) -> Result<Vec<Key>> {
        let key_set = self.key_set(range);
        let step = Step { direction, limit, offset };
        let sql = key_walk::select(Dialect::Sqlite, self.scope, &key_set, bounds, step);
        let keys = row::keys(self.connection, &sql, self.scope.key().len())?;
        keys.iter().try_for_each(|key| check_null(self.scope, key))?;
        Ok(keys)
    }

    /// The first keys of a range, each with the number of its records.
    fn list(&self, range: &KeyRange, max: u64) -> Result<Vec<(Key, i64)>> {
        let key_set = self.key_set(range);
        self.counted_keys(&key_walk::list(Dialect::Sqlite, self.scope, &key_set, max))
    }

    /// The last keys of the chunks of a range, found by numbering all records in one pass, each with the
    /// number of its records.
    fn number(&self, range: &KeyRange, every: u64, max: u64) -> Result<Vec<(Key, i64)>> {
        let key_set = self.key_set(range);
        let sql = key_walk::number(Dialect::Sqlite, self.scope, &key_set, every, max);
        Ok(key_walk::count_chunks(self.counted_keys(&sql)?))
    }

    /// The keys of a statement, each with the number behind it.
    fn counted_keys(&self, sql: &Sql<'_>) -> Result<Vec<(Key, i64)>> {
        let mut keys = Vec::new();
        row::each(self.connection, sql, |row| {
            let columns = self.scope.key().len();
            let key = (0..columns).map(|index| row::key_value(row, index));
            let key = Key(key.collect::<Result<_>>()?);
            check_null(self.scope, &key)?;
            keys.push((key, row.get(columns).map_err(failed)?));
            Ok(true)
        })?;
        Ok(keys)
    }

    /// The number of records in a range whose end was found by skipping `jumped` records.
    fn items(&self, range: &KeyRange, jumped: u64) -> Result<i64> {
        match self.scope.key_may_repeat() {
            true => self.count(range),
            false => Ok(jumped as i64),
        }
    }

    fn count(&self, range: &KeyRange) -> Result<i64> {
        let key_set = self.key_set(range);
        row::number(self.connection, &statement::count(Dialect::Sqlite, self.scope, &key_set))
    }

    fn key_set(&self, range: &KeyRange) -> KeySet {
        KeySet::new(self.within.cloned(), Keys::Range(range.clone()))
    }
}
