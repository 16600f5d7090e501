//! Reading records, counting them, and telling values apart.

use super::row::{get, value, values};
use crate::array::Array;
use crate::predicate::{Bounds, relation};
use crate::sql::{Dialect, Sql, quote};
use crate::{Batch, Item, Result, Scope, statement};
use futures::StreamExt as _;
use windlass_core::{Extent, Record, Value};
use windlass_db::Transaction;

/// Reads records of an extent in key order, at most so many and about so many bytes.
pub(super) async fn read(
    transaction: &Transaction,
    scope: &Scope,
    extent: &Extent,
    limit: u32,
    bytes: usize,
) -> Result<Batch> {
    let sql =
        statement::select(Dialect::Postgres, scope, extent, Bounds::All, u64::from(limit) + 1);
    let (items, all) = fetch(transaction, scope, &sql, bytes).await?;
    Ok(Batch::of(items, all, limit))
}

/// The items of a statement made by [`statement::select`], and whether they are all of them. What
/// comes after the byte limit is dropped as it arrives.
pub(super) async fn fetch(
    transaction: &Transaction,
    scope: &Scope,
    sql: &Sql<'_>,
    bytes: usize,
) -> Result<(Vec<Item>, bool)> {
    let columns = statement::columns_of(scope);
    let places = statement::Places::of(scope);
    let mut rows = transaction.stream(&sql.text, &sql.params()).await?;
    let (mut items, mut size) = (Vec::new(), 0);
    while let Some(row) = rows.next().await {
        let row = row?;
        if size > bytes {
            return Ok((items, false));
        }
        let values = values(&row, columns.len())?;
        let (key, version) = (places.key(&values), places.version(&values));
        let record = Record::new(columns.clone(), values);
        size += record.size();
        items.push(Item { key, version, record });
    }
    Ok((items, true))
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
            casts[n] = format!("v.c{n}::{}", column.sql_type);
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
            relation = relation(scope),
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
