//! Cuts a range into chunks: a prepared statement finds the last key of one chunk after the other, and
//! only those keys are sent to the client.

use super::Transaction;
use super::cells::compares_alike;
use super::{read, row};
use crate::chunk_cutter::{ChunkCutter, NextCut};
use crate::key_check::check_null;
use crate::key_walk::{self, Step};
use crate::predicate::Bounds;
use crate::sql::{Dialect, Sql};
use crate::value_lookup::ValueLookup;
use crate::{ChunkPage, Result, Scope};
use windlass_core::{FilterValue, Key, KeyRange, KeySet, Keys, Value};
use windlass_drivers::mysql::Row;

/// Cuts the next page of chunks.
pub(super) async fn cut(
    transaction: &mut Transaction,
    scope: &Scope,
    within: Option<&FilterValue>,
    mut cutter: ChunkCutter,
) -> Result<ChunkPage> {
    let mut queries = CutQueries { transaction, scope, within };
    if !scope.walks_by_key(within) {
        if within.is_some() {
            let keys = queries.list(&cutter.remaining(), cutter.capacity()).await?;
            return Ok(cutter.finish_with_keys(keys));
        }
        for (key, items) in queries
            .number(&cutter.remaining(), cutter.chunk_items(), cutter.max_full_chunks())
            .await?
        {
            cutter.push(key, items);
        }
    } else {
        for _ in 0..cutter.max_full_chunks() {
            let Some(key) = queries.jump(&cutter.remaining(), cutter.chunk_items()).await? else {
                break;
            };
            let items = queries.items(&cutter.remaining_upto(&key), cutter.chunk_items()).await?;
            cutter.push(key, items);
        }
    }
    let limit = match cutter.next() {
        NextCut::Finish { done } => return Ok(cutter.finish(done)),
        NextCut::Tail(limit) => limit,
    };
    let remaining = cutter.remaining();
    if let Some(limit) = limit
        && let Some(last) = queries.jump(&remaining, limit).await?
    {
        let items = queries.items(&cutter.remaining_upto(&last), limit).await?;
        cutter.push(last, items);
        return Ok(cutter.finish(true));
    }
    let left = queries.count(&remaining).await?;
    let last = match remaining.upto {
        None if left > 0 => queries.select(&remaining, Bounds::All, " DESC", 1, 0).await?.pop(),
        _ => None,
    };
    cutter.end(left, last);
    Ok(cutter.finish(true))
}

/// Looks up many values of a filter with two statements.
pub(super) async fn cut_values(
    transaction: &mut Transaction,
    scope: &Scope,
    filter: &str,
    values: &[Value],
    chunk_items: u32,
) -> Result<Vec<Option<ChunkPage>>> {
    let column = scope.job_type.source.filters.get(filter);
    // Texts from a JSON document compare by bytes unless they get the column's collation, which is
    // unknown in a query. A single bound value takes the collation of the column.
    if !compares_alike(column.and_then(|name| scope.table.column(name))) {
        return Ok(vec![None; values.len()]);
    }
    let mut lookup = ValueLookup::new(Dialect::Mysql, scope, filter, values);
    let sql = lookup.larger_than(chunk_items);
    let rows = transaction.query(&sql.text, sql.values()).await?;
    let larger = rows.iter().map(|row| row::int(row, 0)).collect::<Result<Vec<i64>>>()?;
    lookup.remove(&larger);
    let (sql, columns) = (lookup.keys(), scope.key().len());
    let mut found = Vec::new();
    for row in &transaction.query(&sql.text, sql.values()).await? {
        let key = row::key(row, scope)?;
        check_null(scope, &key)?;
        found.push((row::int(row, columns)?, key, row::int(row, columns + 1)?));
    }
    Ok(lookup.pages(found))
}

/// The greatest key of the whole source, including records outside the job's conditions: it bounds
/// ranges that are cut by keys alone. Where a key may be null, only records of the job count.
pub(super) async fn greatest(transaction: &mut Transaction, scope: &Scope) -> Result<Option<Key>> {
    outermost(transaction, scope, " DESC").await
}

/// The least key, of the same records as [`greatest`].
pub(super) async fn least(transaction: &mut Transaction, scope: &Scope) -> Result<Option<Key>> {
    outermost(transaction, scope, "").await
}

async fn outermost(
    transaction: &mut Transaction,
    scope: &Scope,
    direction: &str,
) -> Result<Option<Key>> {
    let mut queries = CutQueries { transaction, scope, within: None };
    let bounds = if scope.key_may_be_null() { Bounds::All } else { Bounds::Keys };
    Ok(queries.select(&KeyRange::ALL, bounds, direction, 1, 0).await?.pop())
}

/// The n-th key of a range, by keys alone.
pub(super) async fn nth(
    transaction: &mut Transaction,
    scope: &Scope,
    range: &KeyRange,
    n: u64,
) -> Result<Option<Key>> {
    let mut queries = CutQueries { transaction, scope, within: None };
    Ok(queries.select(range, Bounds::Keys, "", 1, n.saturating_sub(1)).await?.pop())
}

struct CutQueries<'a> {
    transaction: &'a mut Transaction,
    scope: &'a Scope,
    within: Option<&'a FilterValue>,
}

impl CutQueries<'_> {
    /// The n-th key of a range.
    async fn jump(&mut self, range: &KeyRange, items: u64) -> Result<Option<Key>> {
        Ok(self.select(range, Bounds::All, "", 1, items.saturating_sub(1)).await?.pop())
    }

    async fn select(
        &mut self,
        range: &KeyRange,
        bounds: Bounds,
        direction: &str,
        limit: u64,
        offset: u64,
    ) -> Result<Vec<Key>> {
        let key_set = self.key_set(range);
        let step = Step { direction, limit, offset };
        self.keys(&key_walk::select(Dialect::Mysql, self.scope, &key_set, bounds, step)).await
    }

    /// The first keys of a range, each with the number of its records.
    async fn list(&mut self, range: &KeyRange, max: u64) -> Result<Vec<(Key, i64)>> {
        let key_set = self.key_set(range);
        self.counted_keys(&key_walk::list(Dialect::Mysql, self.scope, &key_set, max)).await
    }

    /// The last keys of the chunks of a range, found by numbering all records in one pass, each with the
    /// number of its records.
    async fn number(&mut self, range: &KeyRange, every: u64, max: u64) -> Result<Vec<(Key, i64)>> {
        let key_set = self.key_set(range);
        let sql = key_walk::number(Dialect::Mysql, self.scope, &key_set, every, max);
        Ok(key_walk::count_chunks(self.counted_keys(&sql).await?))
    }

    /// The keys of a statement, each with the number behind it.
    async fn counted_keys(&mut self, sql: &Sql<'_>) -> Result<Vec<(Key, i64)>> {
        let rows = self.transaction.query(&sql.text, sql.values()).await?;
        let counted = |row| Ok((self.key(row)?, row::int(row, self.scope.key().len())?));
        rows.iter().map(counted).collect()
    }

    async fn keys(&mut self, sql: &Sql<'_>) -> Result<Vec<Key>> {
        let rows = self.transaction.query(&sql.text, sql.values()).await?;
        rows.iter().map(|row| self.key(row)).collect()
    }

    /// Refuses a key that cannot be the end of a chunk.
    fn key(&self, row: &Row) -> Result<Key> {
        let key = row::key(row, self.scope)?;
        check_null(self.scope, &key)?;
        Ok(key)
    }

    /// The number of records in a range whose end was found by skipping `jumped` records.
    async fn items(&mut self, range: &KeyRange, jumped: u64) -> Result<i64> {
        match self.scope.key_may_repeat() {
            true => self.count(range).await,
            false => Ok(jumped as i64),
        }
    }

    async fn count(&mut self, range: &KeyRange) -> Result<i64> {
        let key_set = self.key_set(range);
        read::count(self.transaction, self.scope, &key_set).await
    }

    fn key_set(&self, range: &KeyRange) -> KeySet {
        KeySet::new(self.within.cloned(), Keys::Range(range.clone()))
    }
}
