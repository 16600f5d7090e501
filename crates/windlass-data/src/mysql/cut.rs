//! Cutting a range into chunks: a prepared statement jumps from every n-th key to the next, and
//! only those keys leave the server.

use super::Transaction;
use super::{read, row};
use crate::page::{Next, Page};
use crate::predicate::Bounds;
use crate::sql::{Dialect, Sql};
use crate::walk::{self, Step};
use crate::{Cuts, Result, Scope};
use windlass_core::{Extent, FilterValue, Key, KeyRange, Part};

/// Cuts the next page of chunks.
pub(super) async fn cut(
    transaction: &mut Transaction,
    scope: &Scope,
    within: Option<&FilterValue>,
    mut page: Page,
) -> Result<Cuts> {
    let mut cutter = Cutter { transaction, scope, within };
    if !scope.walks_by_key(within) {
        if within.is_some() {
            let keys = cutter.select(&page.rest(), Bounds::All, "", page.capacity(), 0).await?;
            return Ok(page.keys(keys));
        }
        for key in cutter.number(&page.rest(), page.items(), page.jumps()).await? {
            page.push(key, page.items() as i64);
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

/// The greatest key of the whole source, whether the job may reach it or not: it bounds ranges
/// that are cut by keys alone.
pub(super) async fn greatest(transaction: &mut Transaction, scope: &Scope) -> Result<Option<Key>> {
    let mut cutter = Cutter { transaction, scope, within: None };
    Ok(cutter.select(&KeyRange::ALL, Bounds::Keys, " DESC", 1, 0).await?.pop())
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
        let extent = self.extent(range);
        let step = Step { direction, limit, offset };
        self.keys(&walk::select(Dialect::Mysql, self.scope, &extent, bounds, step)).await
    }

    async fn number(&mut self, range: &KeyRange, every: u64, most: u64) -> Result<Vec<Key>> {
        let extent = self.extent(range);
        self.keys(&walk::number(Dialect::Mysql, self.scope, &extent, every, most)).await
    }

    async fn keys(&mut self, sql: &Sql<'_>) -> Result<Vec<Key>> {
        let rows = self.transaction.query(&sql.text, sql.values()).await?;
        rows.iter().map(|row| row::key(row, self.scope)).collect()
    }

    /// How many records a range has that a jump over so many found the end of.
    async fn items(&mut self, range: &KeyRange, jumped: u64) -> Result<i64> {
        match self.scope.shares_keys() {
            true => self.count(range).await,
            false => Ok(jumped as i64),
        }
    }

    async fn count(&mut self, range: &KeyRange) -> Result<i64> {
        let extent = self.extent(range);
        read::count(self.transaction, self.scope, &extent).await
    }

    fn extent(&self, range: &KeyRange) -> Extent {
        Extent { within: self.within.cloned(), part: Part::Range(range.clone()) }
    }
}
