//! Reading records, counting them, and telling values apart.

use super::row::{get, value, values};
use crate::array::Array;
use crate::predicate::{Bounds, relation};
use crate::sql::{Dialect, Sql, cast_type, quote};
use crate::{Batch, Item, Result, Scope, statement};
use std::ops::ControlFlow;
use windlass_core::{Columns, Extent, Record, Value};
use windlass_db::{Postgres, Row, Transaction};

/// Reads records of an extent in key order, at most so many and about so many bytes, in one round
/// trip with these settings.
pub(super) async fn read(
    db: &Postgres,
    settings: &str,
    scope: &Scope,
    extent: &Extent,
    limit: u32,
    bytes: usize,
) -> Result<Batch> {
    let sql =
        statement::select(Dialect::Postgres, scope, extent, Bounds::All, u64::from(limit) + 1);
    let mut reader = Reader::new(scope, bytes);
    db.read(settings, &sql.text, &sql.params(), |row| reader.take(&row)).await?;
    Ok(Batch::of(reader.items, reader.all, limit))
}

/// The items of a statement made by [`statement::select`], all of them.
pub(super) async fn fetch(
    transaction: &Transaction,
    scope: &Scope,
    sql: &Sql<'_>,
) -> Result<Vec<Item>> {
    let mut reader = Reader::new(scope, usize::MAX);
    for row in transaction.query(&sql.text, &sql.params()).await? {
        let _ = reader.take(&row)?;
    }
    Ok(reader.items)
}

/// Makes rows into items as they arrive, up to a limit of bytes.
struct Reader {
    columns: Columns,
    places: statement::Places,
    left: usize,
    items: Vec<Item>,
    /// Whether nothing was left out.
    all: bool,
}

impl Reader {
    fn new(scope: &Scope, bytes: usize) -> Reader {
        let (columns, places) = (statement::columns_of(scope), statement::Places::of(scope));
        Reader { columns, places, left: bytes, items: Vec::new(), all: true }
    }

    fn take(&mut self, row: &Row) -> Result<ControlFlow<()>> {
        if self.left == 0 {
            self.all = false;
            return Ok(ControlFlow::Break(()));
        }
        let values = values(row, self.columns.len())?;
        let (key, version) = (self.places.key(&values), self.places.version(&values));
        let record = Record::new(self.columns.clone(), values);
        self.left = self.left.saturating_sub(record.size());
        self.items.push(Item { key, version, record });
        Ok(ControlFlow::Continue(()))
    }
}

/// How many records an extent has now.
pub(super) async fn count(
    transaction: &Transaction,
    scope: &Scope,
    extent: &Extent,
) -> Result<i64> {
    let sql = statement::count(Dialect::Postgres, scope, extent);
    get(&transaction.query_one(&sql.text, &sql.params()).await?, 0)
}

/// The rows without those that the server holds equal to an earlier one. The empty half of the
/// union gives the values the collations of the columns they are meant for.
pub(super) async fn distinct(
    transaction: &Transaction,
    scope: &Scope,
    columns: &[String],
    rows: &[Vec<Value>],
) -> Result<Vec<Vec<Value>>> {
    if rows.is_empty() || columns.is_empty() {
        return Ok(rows.to_vec());
    }
    let quoted: Vec<String> = columns.iter().map(|name| quote(name)).collect();
    let names: Vec<String> = (0..columns.len()).map(|n| format!("c{n}")).collect();
    let mut casts = names.clone();
    let mut rendered = names.clone();
    for (n, name) in columns.iter().enumerate() {
        if let Some(column) = scope.table.column(name) {
            casts[n] = format!("v.c{n}::{}", cast_type(column));
            rendered[n] = Dialect::Postgres.render(column, &format!("c{n}"));
        }
    }
    let mut sql = Sql::new(
        Dialect::Postgres,
        format!(
            "SELECT {rendered} FROM (SELECT DISTINCT ON ({names}) {names}, ord FROM (\
             SELECT {none}, 0::bigint AS ord FROM {relation} WHERE false \
             UNION ALL SELECT {casts}, v.ord FROM unnest(",
            rendered = rendered.join(", "),
            names = names.join(", "),
            none = quoted
                .iter()
                .zip(&names)
                .map(|(column, name)| format!("{column} AS {name}"))
                .collect::<Vec<_>>()
                .join(", "),
            relation = relation(Dialect::Postgres, scope),
            casts = casts.join(", "),
        ),
    );
    for (n, name) in columns.iter().enumerate() {
        let values: Vec<&Value> =
            rows.iter().map(|row| row.get(n).unwrap_or(&Value::Null)).collect();
        sql.push(if n > 0 { ", " } else { "" });
        sql.array(Array::of(&values, scope.table.column(name)));
    }
    let names = names.join(", ");
    sql.push(format!(
        ") WITH ORDINALITY AS v({names}, ord)) AS given ORDER BY {names}, ord) AS once ORDER BY ord"
    ));
    let found = transaction.query(&sql.text, &sql.params()).await?;
    found.iter().map(|row| (0..columns.len()).map(|n| value(row, n)).collect()).collect()
}
