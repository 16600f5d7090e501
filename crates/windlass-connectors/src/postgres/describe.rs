//! Describes tables and queries by the catalog.

use super::row::get;
use crate::names::{duplicate_column, missing_table, user_tables};
use crate::predicate::query_relation;
use crate::row_count::select_all;
use crate::sql::{Dialect, quote_table};
use crate::{ConnectorError, Result, Scope};
use windlass_core::problem::{Code, Problem};
use windlass_core::{Column, ColumnType, Index, KeySet, Source, Table};
use windlass_drivers::{Param, Transaction};

/// Describes the source's table or query.
pub(super) async fn describe(transaction: &Transaction, source: &Source) -> Result<Table> {
    let Some(name) = &source.table else {
        let query = source.query.as_deref().unwrap_or_default();
        let columns = query_columns(transaction, query, &[]).await?;
        return Ok(Table { name: "source".to_owned(), columns, ..Table::default() });
    };
    let Some((oid, plain)) = relation(transaction, name).await? else {
        return Err(missing_table(name, tables(transaction).await?).into());
    };
    let columns = columns(transaction, oid).await?;
    let (primary_key, mut indexes) = indexes(transaction, oid).await?;
    let children = children(transaction, oid).await?;
    if !children.is_empty() {
        // An index covers only its own table, but a query of the parent returns rows of all tables.
        indexes.iter_mut().for_each(|index| index.unique = false);
    }
    let key = if source.key.is_empty() { &primary_key } else { &source.key };
    check_comparable(transaction, oid, key).await?;
    let estimated_rows = estimated_rows(transaction, name).await?;
    let sql = include_str!("../../sql/postgres/guard.sql");
    let guard = transaction.query_one(sql, &[Param::from(oid)]).await?;
    Ok(Table {
        name: name.clone(),
        columns,
        primary_key,
        indexes,
        estimated_rows,
        plain,
        children,
        has_xmin: get(&guard, 0)?,
        rewritable: get(&guard, 1)?,
        text_only: get(&guard, 2)?,
        ..Table::default()
    })
}

/// Refuses a key of a type that the server can sort but not compare.
async fn check_comparable(transaction: &Transaction, oid: i64, key: &[String]) -> Result<()> {
    let sql = include_str!("../../sql/postgres/enum_domains.sql");
    let params = [Param::from(oid), Param::texts(key)];
    let Some(row) = transaction.query_opt(sql, &params).await? else { return Ok(()) };
    let (name, domain): (String, String) = (get(&row, 0)?, get(&row, 1)?);
    let detail = format!(
        "`{name}` is of type {domain}, a domain over an enum, which PostgreSQL cannot compare; \
         change the column's type to the enum or name another key"
    );
    Err(Problem::field(Code::Source, "source.key", detail).into())
}

/// The names of the user's tables and views.
pub(super) async fn tables(transaction: &Transaction) -> Result<Vec<String>> {
    listed(transaction, include_str!("../../sql/postgres/names.sql")).await
}

/// The tables with rows of their own.
pub(super) async fn base_tables(transaction: &Transaction) -> Result<Vec<String>> {
    listed(transaction, include_str!("../../sql/postgres/base_tables.sql")).await
}

async fn listed(transaction: &Transaction, sql: &str) -> Result<Vec<String>> {
    let rows = transaction.query(sql, &[]).await?;
    let names = rows.iter().map(|row| get(row, 0)).collect::<Result<Vec<String>>>()?;
    Ok(user_tables(names))
}

/// The columns of a table. `None` when the table does not exist.
pub(super) async fn columns_of(
    transaction: &Transaction,
    table: &str,
) -> Result<Option<Vec<Column>>> {
    match relation(transaction, table).await? {
        Some((oid, _)) => columns(transaction, oid).await.map(Some),
        None => Ok(None),
    }
}

/// The relation's oid, and whether it is a plain table.
async fn relation(transaction: &Transaction, name: &str) -> Result<Option<(i64, bool)>> {
    let name = quote_table(name);
    let sql = include_str!("../../sql/postgres/relation.sql");
    match transaction.query_opt(sql, &[Param::from(&name)]).await? {
        Some(row) => Ok(Some((get(&row, 0)?, get(&row, 2)?))),
        None => Ok(None),
    }
}

/// The catalog's letter for the kind of a relation.
pub(super) async fn kind_of(transaction: &Transaction, name: &str) -> Result<String> {
    let name = quote_table(name);
    let sql = include_str!("../../sql/postgres/relation.sql");
    match transaction.query_opt(sql, &[Param::from(&name)]).await? {
        Some(row) => get(&row, 1),
        None => Ok(String::new()),
    }
}

/// The tables that inherit from a relation, without partitions.
async fn children(transaction: &Transaction, oid: i64) -> Result<Vec<String>> {
    let sql = include_str!("../../sql/postgres/children.sql");
    let rows = transaction.query(sql, &[Param::from(oid)]).await?;
    rows.iter().map(|row| get(row, 0)).collect()
}

async fn columns(transaction: &Transaction, oid: i64) -> Result<Vec<Column>> {
    let sql = include_str!("../../sql/postgres/columns.sql");
    let mut columns = Vec::new();
    for row in transaction.query(sql, &[Param::from(oid)]).await? {
        columns.push(Column {
            name: get(&row, 0)?,
            sql_type: get(&row, 1)?,
            kind: kind(get(&row, 2)?),
            nullable: get(&row, 3)?,
        });
    }
    Ok(columns)
}

/// The primary key and every usable index. An index with unusable columns counts with the columns before
/// them.
async fn indexes(transaction: &Transaction, oid: i64) -> Result<(Vec<String>, Vec<Index>)> {
    let sql = include_str!("../../sql/postgres/indexes.sql");
    let mut primary_key = Vec::new();
    let mut indexes: Vec<(i64, bool, Index)> = Vec::new();
    // Whether the columns of the current index are still usable, and their direction.
    let mut usable = false;
    let mut descending = false;
    for row in transaction.query(sql, &[Param::from(oid)]).await? {
        let id: i64 = get(&row, 0)?;
        let unique: bool = get(&row, 1)?;
        let name: Option<String> = get(&row, 3)?;
        let (column_usable, column_descending): (bool, bool) = (get(&row, 4)?, get(&row, 5)?);
        if get::<bool>(&row, 2)? {
            primary_key.extend(name.clone());
        }
        let first = indexes.last().is_none_or(|(last, ..)| *last != id);
        if first {
            indexes.push((id, unique, Index { columns: Vec::new(), unique }));
            (usable, descending) = (true, column_descending);
        }
        usable &= column_usable && column_descending == descending;
        if let Some((_, _, index)) = indexes.last_mut() {
            match name {
                Some(name) if usable => index.columns.push(name),
                _ => index.unique = false,
            }
        }
    }
    let indexes = indexes.into_iter().map(|(_, _, index)| index);
    Ok((primary_key, indexes.filter(|index| !index.columns.is_empty()).collect()))
}

/// The planner's estimate. For tables without statistics it is based on their size, for partitioned tables
/// and views on their parts.
async fn estimated_rows(transaction: &Transaction, table: &str) -> Result<u64> {
    planned_rows(transaction, &format!("SELECT 1 FROM {}", quote_table(table)), &[]).await
}

/// The planner's estimate of the records that match `source.where`.
pub(super) async fn estimated_matches(transaction: &Transaction, scope: &Scope) -> Result<u64> {
    let all = KeySet::range(None, None);
    planned_rows(transaction, &select_all(Dialect::Postgres, scope, &all).text, &[]).await
}

/// The number of rows that the server expects of a SELECT.
pub(super) async fn planned_rows(
    transaction: &Transaction,
    select: &str,
    params: &[Param<'_>],
) -> Result<u64> {
    let row = transaction.query_one(&format!("EXPLAIN (FORMAT JSON) {select}"), params).await?;
    let plan: serde_json::Value = get(&row, 0)?;
    Ok(plan[0]["Plan"]["Plan Rows"].as_f64().unwrap_or_default() as u64)
}

/// The columns of a query. It runs with `LIMIT 0`, and the join makes one row of nulls, whose metadata has
/// the names and types.
pub(super) async fn query_columns(
    transaction: &Transaction,
    query: &str,
    params: &[Param<'_>],
) -> Result<Vec<Column>> {
    let relation = query_relation(query);
    let sql = format!(
        "SELECT nothing.* FROM (SELECT 1) AS one \
         LEFT JOIN (SELECT * FROM {relation} LIMIT 0) AS nothing ON true"
    );
    let row = transaction.query_one(&sql, params).await?;
    let oids: Vec<i64> =
        row.columns().iter().map(|column| i64::from(column.type_().oid())).collect();
    let types = transaction
        .query(include_str!("../../sql/postgres/types.sql"), &[Param::from(oids.as_slice())])
        .await?;
    let mut columns: Vec<Column> = Vec::new();
    for (column, oid) in row.columns().iter().zip(&oids) {
        let known = types.iter().find(|known| get::<i64>(known, 0).ok() == Some(*oid));
        let known = known.ok_or_else(|| {
            ConnectorError::Unreadable(format!("the type of `{}`", column.name()))
        })?;
        let name = column.name().to_owned();
        if columns.iter().any(|column| column.name == name) {
            return Err(duplicate_column(&name, &columns).into());
        }
        columns.push(Column {
            name,
            sql_type: get(known, 1)?,
            kind: kind(get(known, 2)?),
            nullable: true,
        });
    }
    Ok(columns)
}

/// The kind of a built-in type by its oid.
fn kind(oid: i64) -> ColumnType {
    match oid {
        16 => ColumnType::Bool,
        20 | 21 | 23 => ColumnType::Int,
        700 | 701 => ColumnType::Float,
        1700 => ColumnType::Numeric,
        19 | 25 | 1042 | 1043 => ColumnType::Text,
        2950 => ColumnType::Uuid,
        1082 => ColumnType::Date,
        1114 | 1184 => ColumnType::Timestamp,
        17 => ColumnType::Bytes,
        114 | 3802 => ColumnType::Json,
        _ => ColumnType::Other,
    }
}
