//! Cutting a range into chunks inside the server: only every n-th key ever leaves it.

use super::row::{get, key};
use crate::by_value::ByValue;
use crate::chunk_cutter::{Next, Page};
use crate::key_check::check_null;
use crate::predicate::{Bounds, push_extent, push_limits, push_range, relation};
use crate::sql::{Dialect, Sql, quote, quote_columns, row};
use crate::{ChunkPage, Result, Scope, key_walk, statement};
use windlass_core::{FilterValue, Key, KeyRange, KeySet, Keys, Value};
use windlass_drivers::Transaction;

/// ChunkPage the next page of chunks.
pub(super) async fn cut(
    transaction: &Transaction,
    scope: &Scope,
    within: Option<&FilterValue>,
    mut page: Page,
) -> Result<ChunkPage> {
    let cutter = Cutter { transaction, scope, within };
    if scope.walks_by_key(within) {
        transaction.batch(WALKING).await?;
    } else if within.is_some() {
        let keys = cutter.list(&page.rest(), page.capacity()).await?;
        return Ok(page.keys(keys));
    }
    for (key, counted) in cutter.jumps(&page.rest(), page.items(), page.jumps()).await? {
        let items = cutter.items(&page.upto(&key), page.items(), counted).await?;
        page.push(key, items);
    }
    let limit = match page.next() {
        Next::Finish { done } => return Ok(page.finish(done)),
        Next::Tail(limit) => limit,
    };
    let rest = page.rest();
    if let Some(limit) = limit
        && let Some((last, counted)) = cutter.jumps(&rest, limit, 1).await?.pop()
    {
        let items = cutter.items(&page.upto(&last), limit, counted).await?;
        page.push(last, items);
        return Ok(page.finish(true));
    }
    let left = cutter.count(&rest).await?;
    let last = match rest.upto {
        None if left > 0 => cutter.last(&rest, Bounds::All).await?,
        _ => None,
    };
    page.end(left, last);
    Ok(page.finish(true))
}

/// Looks up many values of a filter, with two statements.
pub(super) async fn cut_values(
    transaction: &Transaction,
    scope: &Scope,
    filter: &str,
    values: &[Value],
    items: u32,
) -> Result<Vec<Option<ChunkPage>>> {
    let mut lookup = ByValue::new(Dialect::Postgres, scope, filter, values);
    if lookup.ranges {
        transaction.batch(WALKING).await?;
    }
    let sql = lookup.larger(items);
    let rows = transaction.query(&sql.text, &sql.params()).await?;
    let larger = rows.iter().map(|row| get(row, 0)).collect::<Result<Vec<i64>>>()?;
    lookup.leave_out(&larger);
    let (sql, columns) = (lookup.keys(), scope.key().len());
    let mut found = Vec::new();
    for row in transaction.query(&sql.text, &sql.params()).await? {
        let key = key(&row, columns)?;
        check_null(scope, &key)?;
        found.push((get(&row, columns)?, key, get(&row, columns + 1)?));
    }
    Ok(lookup.cuts(found))
}

/// The greatest key of the whole source, whether the job may reach it or not: it bounds ranges
/// that are cut by keys alone. Where a key may be null it is that of what the job may reach, since
/// a null is sorted behind everything.
pub(super) async fn greatest(transaction: &Transaction, scope: &Scope) -> Result<Option<Key>> {
    let cutter = Cutter { transaction, scope, within: None };
    let bounds = if scope.key_may_be_null() { Bounds::All } else { Bounds::Keys };
    cutter.last(&KeyRange::ALL, bounds).await
}

/// The planner, which knows little of a new table, could otherwise come to sort it once for every
/// chunk.
const WALKING: &str = "SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off; \
                       SET LOCAL enable_seqscan = off";

struct Cutter<'a> {
    transaction: &'a Transaction,
    scope: &'a Scope,
    within: Option<&'a FilterValue>,
}

impl Cutter<'_> {
    /// Every n-th key of a range, at most so many; with the number of records since the one before
    /// where that is known.
    async fn jumps(
        &self,
        range: &KeyRange,
        every: u64,
        most: u64,
    ) -> Result<Vec<(Key, Option<i64>)>> {
        if most == 0 || every == 0 {
            return Ok(Vec::new());
        }
        let first = self.key_set(range);
        if !self.scope.walks_by_key(self.within) {
            let sql = key_walk::number(Dialect::Postgres, self.scope, &first, every, most);
            let mut ends = Vec::new();
            for row in self.transaction.query(&sql.text, &sql.params()).await? {
                let columns = self.scope.key().len();
                ends.push((self.checked(key(&row, columns)?)?, get(&row, columns)?));
            }
            let ends = key_walk::counted(ends).into_iter();
            return Ok(ends.map(|(key, items)| (key, Some(items))).collect());
        }
        let next = KeyRange { after: None, upto: range.upto.clone() };
        let keys = self.keys(&self.walk(&first, &next, every, most)).await?;
        Ok(keys.into_iter().map(|key| (key, None)).collect())
    }

    /// Jumps along the index: each step looks for the n-th key after the one before.
    fn walk<'s>(&'s self, first: &'s KeySet, next: &'s KeyRange, every: u64, most: u64) -> Sql<'s> {
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
        push_extent(&mut sql, scope, first, None, Bounds::All);
        sql.push(&step).push(
            ") AS first UNION ALL \
             SELECT windlass_cut.windlass_n + 1, next.* FROM windlass_cut, LATERAL (",
        );
        sql.push(&select).push(format!("{} > {}", row(&columns), row(&before)));
        push_range(&mut sql, scope, next, None);
        push_limits(&mut sql, scope, first, None, Bounds::All);
        sql.push(&step).push(format!(
            ") AS next WHERE windlass_cut.windlass_n < {most}) \
             SELECT {} FROM windlass_cut ORDER BY windlass_n",
            self.rendered()
        ));
        sql
    }

    /// The first keys of a range themselves.
    async fn list(&self, range: &KeyRange, most: u64) -> Result<Vec<Key>> {
        let key_set = self.key_set(range);
        let mut sql = self.select(&key_set, Bounds::All);
        let order = quote_columns(self.scope.key(), None).join(", ");
        sql.push(format!(" ORDER BY {order} LIMIT {most}"));
        self.keys(&sql).await
    }

    /// The greatest key of a range.
    async fn last(&self, range: &KeyRange, bounds: Bounds) -> Result<Option<Key>> {
        let key_set = self.key_set(range);
        let mut sql = self.select(&key_set, bounds);
        let columns = quote_columns(self.scope.key(), None);
        sql.push(format!(" ORDER BY {} DESC LIMIT 1", columns.join(" DESC, ")));
        Ok(self.keys(&sql).await?.pop())
    }

    /// How many records a range has that a jump over so many found the end of.
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
        // Named, since ORDER BY would otherwise take the text of a cast column for the column.
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
        push_extent(&mut sql, scope, key_set, None, bounds);
        sql
    }

    async fn keys(&self, sql: &Sql<'_>) -> Result<Vec<Key>> {
        let rows = self.transaction.query(&sql.text, &sql.params()).await?;
        rows.iter().map(|row| self.checked(key(row, self.scope.key().len())?)).collect()
    }

    /// A key that can bound a chunk.
    fn checked(&self, key: Key) -> Result<Key> {
        check_null(self.scope, &key)?;
        Ok(key)
    }

    fn key_set(&self, range: &KeyRange) -> KeySet {
        KeySet { within: self.within.cloned(), keys: Keys::Range(range.clone()) }
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
