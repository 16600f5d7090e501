//! Cutting a range into chunks: a prepared statement jumps from every n-th key to the next.

use super::{failed, row};
use crate::by_value::ByValue;
use crate::chunk_cutter::{Next, Page};
use crate::key_check::check_null;
use crate::key_walk::{self, Step};
use crate::predicate::Bounds;
use crate::sql::Dialect;
use crate::{ChunkPage, Result, Scope, statement};
use rusqlite::Connection;
use windlass_core::{FilterValue, Key, KeyRange, KeySet, Keys, Value};

/// ChunkPage the next page of chunks.
pub(super) fn cut(
    connection: &Connection,
    scope: &Scope,
    within: Option<&FilterValue>,
    mut page: Page,
) -> Result<ChunkPage> {
    let cutter = Cutter { connection, scope, within };
    if !scope.walks_by_key(within) {
        if within.is_some() {
            let keys = cutter.select(&page.rest(), Bounds::All, "", page.capacity(), 0)?;
            return Ok(page.keys(keys));
        }
        for (key, items) in cutter.number(&page.rest(), page.items(), page.jumps())? {
            page.push(key, items);
        }
    } else {
        for _ in 0..page.jumps() {
            let Some(key) = cutter.jump(&page.rest(), page.items())? else { break };
            let items = cutter.items(&page.upto(&key), page.items())?;
            page.push(key, items);
        }
    }
    let limit = match page.next() {
        Next::Finish { done } => return Ok(page.finish(done)),
        Next::Tail(limit) => limit,
    };
    let rest = page.rest();
    if let Some(limit) = limit
        && let Some(last) = cutter.jump(&rest, limit)?
    {
        let items = cutter.items(&page.upto(&last), limit)?;
        page.push(last, items);
        return Ok(page.finish(true));
    }
    let left = cutter.count(&rest)?;
    let last = match rest.upto {
        None if left > 0 => cutter.select(&rest, Bounds::All, " DESC", 1, 0)?.pop(),
        _ => None,
    };
    page.end(left, last);
    Ok(page.finish(true))
}

/// Looks up many values of a filter, with two statements.
pub(super) fn cut_values(
    connection: &Connection,
    scope: &Scope,
    filter: &str,
    values: &[Value],
    items: u32,
) -> Result<Vec<Option<ChunkPage>>> {
    let mut lookup = ByValue::new(Dialect::Sqlite, scope, filter, values);
    let mut larger = Vec::new();
    row::each(connection, &lookup.larger(items), |row| {
        larger.push(row.get(0).map_err(failed)?);
        Ok(true)
    })?;
    lookup.leave_out(&larger);
    let (columns, mut found) = (scope.key().len(), Vec::new());
    row::each(connection, &lookup.keys(), |row| {
        let key = (0..columns).map(|place| row::key_value(row, place));
        let key = Key(key.collect::<Result<_>>()?);
        check_null(scope, &key)?;
        let items = row.get(columns + 1).map_err(failed)?;
        found.push((row.get(columns).map_err(failed)?, key, items));
        Ok(true)
    })?;
    Ok(lookup.cuts(found))
}

/// The greatest key of the whole source, whether the job may reach it or not: it bounds ranges
/// that are cut by keys alone. Where a key may be null it is that of what the job may reach.
pub(super) fn greatest(connection: &Connection, scope: &Scope) -> Result<Option<Key>> {
    let cutter = Cutter { connection, scope, within: None };
    let bounds = if scope.key_may_be_null() { Bounds::All } else { Bounds::Keys };
    Ok(cutter.select(&KeyRange::ALL, bounds, " DESC", 1, 0)?.pop())
}

struct Cutter<'a> {
    connection: &'a Connection,
    scope: &'a Scope,
    within: Option<&'a FilterValue>,
}

impl Cutter<'_> {
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

    /// Where the chunks of a range end that is numbered in one pass, each with its records.
    fn number(&self, range: &KeyRange, every: u64, most: u64) -> Result<Vec<(Key, i64)>> {
        let key_set = self.key_set(range);
        let sql = key_walk::number(Dialect::Sqlite, self.scope, &key_set, every, most);
        let mut ends = Vec::new();
        row::each(self.connection, &sql, |row| {
            let columns = self.scope.key().len();
            let key = (0..columns).map(|place| row::key_value(row, place));
            let key = Key(key.collect::<Result<_>>()?);
            check_null(self.scope, &key)?;
            ends.push((key, row.get(columns).map_err(failed)?));
            Ok(true)
        })?;
        Ok(key_walk::counted(ends))
    }

    /// How many records a range has that a jump over so many found the end of.
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
        KeySet { within: self.within.cloned(), keys: Keys::Range(range.clone()) }
    }
}
