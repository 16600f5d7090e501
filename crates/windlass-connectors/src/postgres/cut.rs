//! Cuts a range into chunks inside the server: only the last key of each chunk is sent to the client.

use super::row::{get, key};
use crate::chunk_cutter::{ChunkCutter, NextCut};
use crate::key_check::check_null;
use crate::predicate::{Bounds, push_conditions, push_key_set, push_range, relation};
use crate::sql::{Dialect, Sql, quote, quote_columns, row};
use crate::value_lookup::ValueLookup;
use crate::{ChunkPage, CutRange, Result, Scope, key_walk, statement};
use windlass_core::{BlockRange, FilterValue, Key, KeyRange, KeySet, Keys, Value};
use windlass_drivers::Transaction;

/// Cuts the next page of chunks.
pub(super) async fn cut(
    transaction: &Transaction,
    scope: &Scope,
    at: CutRange<'_>,
    mut cutter: ChunkCutter,
) -> Result<ChunkPage> {
    let CutRange { within, blocks, .. } = at;
    let queries = CutQueries { transaction, scope, within, blocks };
    if queries.walks_by_key() {
        transaction.batch(INDEX_SCAN_ONLY).await?;
    } else if within.is_some() {
        let keys = queries.list(&cutter.remaining(), cutter.capacity()).await?;
        return Ok(cutter.finish_with_keys(keys));
    }
    for (key, counted) in
        queries.jumps(&cutter.remaining(), cutter.chunk_items(), cutter.max_full_chunks()).await?
    {
        let items =
            queries.items(&cutter.remaining_upto(&key), cutter.chunk_items(), counted).await?;
        cutter.push(key, items);
    }
    let limit = match cutter.next() {
        NextCut::Finish { done } => return Ok(cutter.finish(done)),
        NextCut::Tail(limit) => limit,
    };
    let remaining = cutter.remaining();
    if let Some(limit) = limit
        && let Some((last, counted)) = queries.jumps(&remaining, limit, 1).await?.pop()
    {
        let items = queries.items(&cutter.remaining_upto(&last), limit, counted).await?;
        cutter.push(last, items);
        return Ok(cutter.finish(true));
    }
    let left = queries.count(&remaining).await?;
    let last = match remaining.upto {
        None if left > 0 => queries.last(&remaining, Bounds::All).await?,
        _ => None,
    };
    cutter.end(left, last);
    Ok(cutter.finish(true))
}

/// Looks up many values of a filter with two statements.
pub(super) async fn cut_values(
    transaction: &Transaction,
    scope: &Scope,
    filter: &str,
    values: &[Value],
    chunk_items: u32,
) -> Result<Vec<Option<ChunkPage>>> {
    let mut lookup = ValueLookup::new(Dialect::Postgres, scope, filter, values);
    if lookup.ranges {
        transaction.batch(INDEX_SCAN_ONLY).await?;
    }
    let sql = lookup.larger_than(chunk_items);
    let rows = transaction.query(&sql.text, &sql.params()).await?;
    let larger = rows.iter().map(|row| get(row, 0)).collect::<Result<Vec<i64>>>()?;
    lookup.remove(&larger);
    let (sql, columns) = (lookup.keys(), scope.key().len());
    let mut found = Vec::new();
    for row in transaction.query(&sql.text, &sql.params()).await? {
        let key = key(&row, columns)?;
        check_null(scope, &key)?;
        found.push((get(&row, columns)?, key, get(&row, columns + 1)?));
    }
    Ok(lookup.pages(found))
}

/// Has the server plan the walk along the index, from the start and after a key.
pub(super) async fn prepare(
    transaction: &Transaction,
    scope: &Scope,
    ranges: &[KeyRange],
) -> Result<()> {
    if !scope.walks_by_key(None) {
        return Ok(());
    }
    let queries = CutQueries { transaction, scope, within: None, blocks: None };
    for range in ranges {
        let (first, next) =
            (queries.key_set(range), KeyRange { after: None, upto: range.upto.clone() });
        let sql = queries.walk(&first, &next, 1, 1);
        transaction.query(&format!("EXPLAIN {}", sql.text), &sql.params()).await?;
    }
    Ok(())
}

/// The greatest key of the whole source, including records outside the job's conditions: it bounds
/// ranges that are cut by keys alone. Where a key may be null, only records of the job count, since a
/// null sorts after everything.
pub(super) async fn greatest(transaction: &Transaction, scope: &Scope) -> Result<Option<Key>> {
    let queries = CutQueries { transaction, scope, within: None, blocks: None };
    let bounds = if scope.key_may_be_null() { Bounds::All } else { Bounds::Keys };
    queries.last(&KeyRange::ALL, bounds).await
}

/// Forces index scans. With few statistics, as for a new table, the planner might sort the table once
/// per chunk.
const INDEX_SCAN_ONLY: &str = "SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off; \
                       SET LOCAL enable_seqscan = off";

struct CutQueries<'a> {
    transaction: &'a Transaction,
    scope: &'a Scope,
    within: Option<&'a FilterValue>,
    blocks: Option<BlockRange>,
}

impl CutQueries<'_> {
    /// Whether an index returns the keys in order. The index has no order within blocks.
    fn walks_by_key(&self) -> bool {
        self.blocks.is_none() && self.scope.walks_by_key(self.within)
    }

    /// Every n-th key of a range, at most `max`, each with the number of records since the previous one
    /// where that is known.
    async fn jumps(
        &self,
        range: &KeyRange,
        every: u64,
        max: u64,
    ) -> Result<Vec<(Key, Option<i64>)>> {
        if max == 0 || every == 0 {
            return Ok(Vec::new());
        }
        let first = self.key_set(range);
        if !self.walks_by_key() {
            let sql = key_walk::number(Dialect::Postgres, self.scope, &first, every, max);
            let ends = key_walk::count_chunks(self.counted_keys(&sql).await?).into_iter();
            return Ok(ends.map(|(key, items)| (key, Some(items))).collect());
        }
        let next = KeyRange { after: None, upto: range.upto.clone() };
        let keys = self.keys(&self.walk(&first, &next, every, max)).await?;
        Ok(keys.into_iter().map(|key| (key, None)).collect())
    }

    /// Walks along the index: each step finds the n-th key after the previous one.
    fn walk<'s>(&'s self, first: &'s KeySet, next: &'s KeyRange, every: u64, max: u64) -> Sql<'s> {
        let scope = self.scope;
        let columns = quote_columns(scope.key(), None);
        let before: Vec<String> =
            self.names().iter().map(|name| format!("windlass_cut.{name}")).collect();
        let select = format!(
            "SELECT {} FROM {} WHERE ",
            self.selected(),
            relation(Dialect::Postgres, scope)
        );
        let step = format!(" ORDER BY {} OFFSET {} LIMIT 1", columns.join(", "), every - 1);

        let mut sql = Sql::new(
            Dialect::Postgres,
            "WITH RECURSIVE windlass_cut AS (SELECT 1 AS windlass_n, first.* FROM (",
        );
        sql.push(&select);
        push_key_set(&mut sql, scope, first, None, Bounds::All);
        sql.push(&step).push(
            ") AS first UNION ALL \
             SELECT windlass_cut.windlass_n + 1, next.* FROM windlass_cut, LATERAL (",
        );
        sql.push(&select).push(format!("{} > {}", row(&columns), row(&before)));
        push_range(&mut sql, scope, next, None);
        push_conditions(&mut sql, scope, first, None, Bounds::All);
        sql.push(&step).push(format!(
            ") AS next WHERE windlass_cut.windlass_n < {max}) \
             SELECT {} FROM windlass_cut ORDER BY windlass_n",
            self.rendered()
        ));
        sql
    }

    /// The first keys of a range, each with the number of its records.
    async fn list(&self, range: &KeyRange, max: u64) -> Result<Vec<(Key, i64)>> {
        let key_set = self.key_set(range);
        self.counted_keys(&key_walk::list(Dialect::Postgres, self.scope, &key_set, max)).await
    }

    /// The keys of a statement, each with the number behind it.
    async fn counted_keys(&self, sql: &Sql<'_>) -> Result<Vec<(Key, i64)>> {
        let columns = self.scope.key().len();
        let rows = self.transaction.query(&sql.text, &sql.params()).await?;
        let counted = |row| Ok((self.checked(key(row, columns)?)?, get(row, columns)?));
        rows.iter().map(counted).collect()
    }

    /// The greatest key of a range.
    async fn last(&self, range: &KeyRange, bounds: Bounds) -> Result<Option<Key>> {
        let key_set = self.key_set(range);
        let mut sql = self.select(&key_set, bounds);
        let columns = quote_columns(self.scope.key(), None);
        sql.push(format!(" ORDER BY {} DESC LIMIT 1", columns.join(" DESC, ")));
        Ok(self.keys(&sql).await?.pop())
    }

    /// The number of records in a range whose end was found by skipping `jumped` records.
    async fn items(&self, range: &KeyRange, jumped: u64, counted: Option<i64>) -> Result<i64> {
        match counted {
            Some(items) => Ok(items),
            None if self.scope.key_may_repeat() => self.count(range).await,
            None => Ok(jumped as i64),
        }
    }

    async fn count(&self, range: &KeyRange) -> Result<i64> {
        let key_set = self.key_set(range);
        let sql = statement::count(Dialect::Postgres, self.scope, &key_set);
        get(&self.transaction.query_one(&sql.text, &sql.params()).await?, 0)
    }

    fn select<'s>(&'s self, key_set: &'s KeySet, bounds: Bounds) -> Sql<'s> {
        let scope = self.scope;
        // Renamed, since ORDER BY would otherwise sort by the text of a cast column.
        let named = |(column, name): (&String, String)| {
            format!("{} AS {name}", self.render(column, &quote(column)))
        };
        let columns: Vec<String> = scope.key().iter().zip(self.names()).map(named).collect();
        let text = format!(
            "SELECT {} FROM {} WHERE ",
            columns.join(", "),
            relation(Dialect::Postgres, scope)
        );
        let mut sql = Sql::new(Dialect::Postgres, text);
        push_key_set(&mut sql, scope, key_set, None, bounds);
        sql
    }

    async fn keys(&self, sql: &Sql<'_>) -> Result<Vec<Key>> {
        let rows = self.transaction.query(&sql.text, &sql.params()).await?;
        rows.iter().map(|row| self.checked(key(row, self.scope.key().len())?)).collect()
    }

    /// Refuses a key that cannot be the end of a chunk.
    fn checked(&self, key: Key) -> Result<Key> {
        check_null(self.scope, &key)?;
        Ok(key)
    }

    fn key_set(&self, range: &KeyRange) -> KeySet {
        let key_set = KeySet::new(self.within.cloned(), Keys::Range(range.clone()));
        KeySet { blocks: self.blocks, ..key_set }
    }

    /// Names that no column of the user's has.
    fn names(&self) -> Vec<String> {
        (0..self.scope.key().len()).map(|n| format!("windlass_{n}")).collect()
    }

    fn selected(&self) -> String {
        let columns = quote_columns(self.scope.key(), None);
        let named = |(column, name)| format!("{column} AS {name}");
        columns.into_iter().zip(self.names()).map(named).collect::<Vec<_>>().join(", ")
    }

    fn rendered(&self) -> String {
        let render = |(column, name): (&String, String)| self.render(column, &name);
        self.scope.key().iter().zip(self.names()).map(render).collect::<Vec<_>>().join(", ")
    }

    fn render(&self, column: &str, expression: &str) -> String {
        match self.scope.table.column(column) {
            Some(column) => Dialect::Postgres.render(column, expression),
            None => expression.to_owned(),
        }
    }
}
