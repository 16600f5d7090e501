//! Cutting a range into chunks: a prepared statement jumps from every n-th key to the next, and
//! only those keys leave the server.

use super::Transaction;
use super::cells::compares_alike;
use super::{read, row};
use crate::by_value::ByValue;
use crate::chunk_cutter::{Next, Page};
use crate::key_check::check_null;
use crate::key_walk::{self, Step};
use crate::predicate::Bounds;
use crate::sql::{Dialect, Sql};
use crate::{ChunkPage, Result, Scope};
use windlass_core::{FilterValue, Key, KeyRange, KeySet, Keys, Value};
use windlass_drivers::mysql::Row;

/// ChunkPage the next page of chunks.
pub(super) async fn cut(
    transaction: &mut Transaction,
    scope: &Scope,
    within: Option<&FilterValue>,
    mut page: Page,
) -> Result<ChunkPage> {
    let mut cutter = Cutter { transaction, scope, within };
    if !scope.walks_by_key(within) {
        if within.is_some() {
            let keys = cutter.select(&page.rest(), Bounds::All, "", page.capacity(), 0).await?;
            return Ok(page.keys(keys));
        }
        for (key, items) in cutter.number(&page.rest(), page.items(), page.jumps()).await? {
            page.push(key, items);
        }
    } else {
        for _ in 0..page.jumps() {
            let Some(key) = cutter.jump(&page.rest(), page.items()).await? else { break };
            let items = cutter.items(&page.upto(&key), page.items()).await?;
            page.push(key, items);
        }
    }
    let limit = match page.next() {
        Next::Finish { done } => return Ok(page.finish(done)),
        Next::Tail(limit) => limit,
    };
    let rest = page.rest();
    if let Some(limit) = limit
        && let Some(last) = cutter.jump(&rest, limit).await?
    {
        let items = cutter.items(&page.upto(&last), limit).await?;
        page.push(last, items);
        return Ok(page.finish(true));
    }
    let left = cutter.count(&rest).await?;
    let last = match rest.upto {
        None if left > 0 => cutter.select(&rest, Bounds::All, " DESC", 1, 0).await?.pop(),
        _ => None,
    };
    page.end(left, last);
    Ok(page.finish(true))
}

/// Looks up many values of a filter, with two statements.
pub(super) async fn cut_values(
    transaction: &mut Transaction,
    scope: &Scope,
    filter: &str,
    values: &[Value],
    items: u32,
) -> Result<Vec<Option<ChunkPage>>> {
    let column = scope.job_type.source.filters.get(filter);
    // Texts of a document compare by bytes where they are not given the column's collation, which is
    // unknown in a query. A single value that is bound takes it from the column.
    if !compares_alike(column.and_then(|name| scope.table.column(name))) {
        return Ok(vec![None; values.len()]);
    }
    let mut lookup = ByValue::new(Dialect::Mysql, scope, filter, values);
    let sql = lookup.larger(items);
    let rows = transaction.query(&sql.text, sql.values()).await?;
    let larger = rows.iter().map(|row| row::int(row, 0)).collect::<Result<Vec<i64>>>()?;
    lookup.leave_out(&larger);
    let (sql, columns) = (lookup.keys(), scope.key().len());
    let mut found = Vec::new();
    for row in &transaction.query(&sql.text, sql.values()).await? {
        let key = row::key(row, scope)?;
        check_null(scope, &key)?;
        found.push((row::int(row, columns)?, key, row::int(row, columns + 1)?));
    }
    Ok(lookup.cuts(found))
}

/// The greatest key of the whole source, whether the job may reach it or not: it bounds ranges
/// that are cut by keys alone. Where a key may be null it is that of what the job may reach.
pub(super) async fn greatest(transaction: &mut Transaction, scope: &Scope) -> Result<Option<Key>> {
    let mut cutter = Cutter { transaction, scope, within: None };
    let bounds = if scope.key_may_be_null() { Bounds::All } else { Bounds::Keys };
    Ok(cutter.select(&KeyRange::ALL, bounds, " DESC", 1, 0).await?.pop())
}

/// The n-th key of a range, by keys alone.
pub(super) async fn nth(
    transaction: &mut Transaction,
    scope: &Scope,
    range: &KeyRange,
    n: u64,
) -> Result<Option<Key>> {
    let mut cutter = Cutter { transaction, scope, within: None };
    Ok(cutter.select(range, Bounds::Keys, "", 1, n.saturating_sub(1)).await?.pop())
}

struct Cutter<'a> {
    transaction: &'a mut Transaction,
    scope: &'a Scope,
    within: Option<&'a FilterValue>,
}

impl Cutter<'_> {
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

    /// Where the chunks of a range end that is numbered in one pass, each with its records.
    async fn number(&mut self, range: &KeyRange, every: u64, most: u64) -> Result<Vec<(Key, i64)>> {
        let key_set = self.key_set(range);
        let sql = key_walk::number(Dialect::Mysql, self.scope, &key_set, every, most);
        let mut ends = Vec::new();
        for row in &self.transaction.query(&sql.text, sql.values()).await? {
            ends.push((self.key(row)?, row::int(row, self.scope.key().len())?));
        }
        Ok(key_walk::counted(ends))
    }

    async fn keys(&mut self, sql: &Sql<'_>) -> Result<Vec<Key>> {
        let rows = self.transaction.query(&sql.text, sql.values()).await?;
        rows.iter().map(|row| self.key(row)).collect()
    }

    /// A key that can bound a chunk.
    fn key(&self, row: &Row) -> Result<Key> {
        let key = row::key(row, self.scope)?;
        check_null(self.scope, &key)?;
        Ok(key)
    }

    /// How many records a range has that a jump over so many found the end of.
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
        KeySet { within: self.within.cloned(), keys: Keys::Range(range.clone()) }
    }
}
