//! Fan-in: `map`, `reduce` over a temporary table, and replacing rows of a table.

use super::row::{each, execute, values};
use super::{SqliteConnection, commit, describe, failed, read};
#[cfg(feature = "export")]
use crate::Extraction;
#[cfg(feature = "export")]
use crate::fan_in::data_error;
use crate::fan_in::{MAX_BATCH_BYTES, MAX_BATCH_ROWS, Replacement};
use crate::sql::{Dialect, Sql, has_collation, quote, quote_table};
use crate::write::{insert_column, insert_columns, missing_load_table};
use crate::{
    FanIn, Ledger, LoadRequest, Mapped, Merge, Params, Reduction, Result, Rows, Scope, statement,
};
use async_trait::async_trait;
use futures::TryStreamExt;
use rusqlite::Connection;
use std::borrow::Cow;
use tokio::sync::mpsc::Sender;
use windlass_core::{Column, Cursor, KeySet, Load, Template, Value};
#[cfg(feature = "export")]
use windlass_export::{RecordBatch, RowBuilder};

#[async_trait]
impl FanIn for SqliteConnection {
    async fn map_columns(&self, scope: &Scope) -> Result<Vec<Column>> {
        let scope = scope.clone();
        self.read(move |connection| {
            let sql = statement::map(Dialect::Sqlite, &scope, None)?;
            describe::query_columns(connection, &sql.text)
        })
        .await
    }

    async fn map(&self, scope: &Scope, columns: &[Column], key_set: &KeySet) -> Result<Mapped> {
        let (scope, key_set, width) = (scope.clone(), key_set.clone(), columns.len());
        self.read(move |connection| {
            let sql = statement::map(Dialect::Sqlite, &scope, Some(&key_set))?;
            let rows = select(connection, &sql, width)?;
            let read = match Mapped::counted(&scope, &rows)? {
                Some(read) => read,
                None => read::count(connection, &scope, &key_set)?,
            };
            Ok(Mapped { rows, read })
        })
        .await
    }

    #[cfg(feature = "export")]
    async fn extract(&self, scope: &Scope, extraction: Extraction<'_>) -> Result<()> {
        let Extraction { key_set, columns, batches } = extraction;
        let (scope, key_set, columns) = (scope.clone(), key_set.clone(), columns.to_vec());
        self.read(move |connection| extract(connection, &scope, &key_set, &columns, &batches)).await
    }
}

#[async_trait]
impl Merge for SqliteConnection {
    async fn reduce(&self, reduction: Reduction<'_>) -> Result<Rows> {
        let Reduction { columns, parts, select, params } = reduction;
        let parts: Vec<Vec<Vec<Value>>> = parts.try_collect().await?;
        let (columns, select, params) = (columns.to_vec(), select.clone(), params.clone());
        self.write(move |transaction| reduce(transaction, &columns, parts, &select, &params)).await
    }

    async fn prepare_replace(&self, load: &Load, columns: &[Column]) -> Result<()> {
        let (replacement, table) = (Replacement::sample(load, columns), load.table.clone());
        self.read(move |connection| {
            for sql in replacing(connection, &table, &replacement)? {
                connection.prepare(&sql?.text).map_err(failed)?;
            }
            Ok(())
        })
        .await
    }

    async fn replace(&self, ledger: &Ledger, request: LoadRequest<'_>) -> Result<Ledger> {
        let (replacement, load) = (Replacement::new(request)?, request.load);
        let (ledger, table) = (ledger.clone(), load.table.clone());
        self.write(move |transaction| {
            let counts = replacement.counts();
            let ledger = commit::advance(transaction, &ledger, &Cursor::End.to_text(), counts)?;
            replace_rows(transaction, &table, &replacement)?;
            Ok(ledger)
        })
        .await
    }
}

fn select(connection: &Connection, sql: &Sql<'_>, width: usize) -> Result<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    each(connection, sql, |row| {
        rows.push(values(row, width)?);
        Ok(true)
    })?;
    Ok(rows)
}

#[cfg(feature = "export")]
fn extract(
    connection: &Connection,
    scope: &Scope,
    key_set: &KeySet,
    columns: &[Column],
    batches: &Sender<RecordBatch>,
) -> Result<()> {
    let sql = statement::extract(Dialect::Sqlite, scope, key_set, columns);
    let mut builder = RowBuilder::new(windlass_export::schema(columns)).map_err(data_error)?;
    let mut wanted = true;
    each(connection, &sql, |row| {
        builder.push(&values(row, columns.len())?).map_err(data_error)?;
        if builder.rows() >= MAX_BATCH_ROWS || builder.bytes() >= MAX_BATCH_BYTES {
            wanted = batches.blocking_send(builder.finish().map_err(data_error)?).is_ok();
        }
        Ok(wanted)
    })?;
    if wanted {
        let _ = batches.blocking_send(builder.finish().map_err(data_error)?);
    }
    Ok(())
}

fn reduce(
    connection: &Connection,
    columns: &[Column],
    parts: Vec<Vec<Vec<Value>>>,
    template: &Template,
    params: &Params,
) -> Result<Rows> {
    let defined: Vec<String> =
        columns.iter().map(|c| format!("{} {}", quote(&c.name), c.sql_type)).collect();
    let create = format!("CREATE TEMPORARY TABLE parts ({})", defined.join(", "));
    connection.execute_batch(&create).map_err(failed)?;
    let reduced = (|| {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        for rows in &parts {
            let mut sql = Sql::new(
                Dialect::Sqlite,
                statement::insert_into(Dialect::Sqlite, "temp.parts", &names),
            );
            sql.push(" ");
            sql.json_rows(rows.iter().map(Vec::as_slice), columns.len());
            execute(connection, &sql)?;
        }
        let sql = statement::reduce(Dialect::Sqlite, template, params);
        let columns = describe::query_columns(connection, &sql.text)?;
        let rows = select(connection, &sql, columns.len())?;
        Ok(Rows { columns, rows })
    })();
    // The connection is reused.
    connection.execute_batch("DROP TABLE temp.parts").map_err(failed)?;
    reduced
}

/// The most rows of one INSERT.
const INSERT_ROWS: usize = 1000;

/// Deletes the replaced rows and inserts the new ones.
fn replace_rows(connection: &Connection, table: &str, replacement: &Replacement) -> Result<()> {
    for sql in replacing(connection, table, replacement)? {
        execute(connection, &sql?)?;
    }
    Ok(())
}

/// The DELETEs of the replaced rows and the INSERTs of the new ones.
fn replacing<'a>(
    connection: &Connection,
    table: &'a str,
    replacement: &'a Replacement,
) -> Result<impl Iterator<Item = Result<Sql<'a>>>> {
    let Some(columns) = describe::columns_of(connection, table)? else {
        return Err(missing_load_table(table).into());
    };
    insert_columns(table, &columns, &replacement.columns)?;
    let delete = move |deleted: &'a Vec<Value>| {
        let mut sql =
            Sql::new(Dialect::Sqlite, format!("DELETE FROM {} WHERE ", quote_table(table)));
        for (index, name) in replacement.delete_by.iter().enumerate() {
            let column = insert_column(table, &columns, name)?;
            sql.push(if index > 0 { " AND " } else { "" }).push(quote(name)).push(" IS ");
            sql.bind(Cow::Borrowed(&deleted[index]));
            if replacement.exact[index] && has_collation(Some(column)) {
                sql.push(" AND ");
                sql.is_exactly_one_of(&quote(name), std::slice::from_ref(&deleted[index]));
            }
        }
        Ok(sql)
    };
    let insert = move |rows: &'a [Vec<Value>]| {
        let names: Vec<&str> = replacement.columns.iter().map(String::as_str).collect();
        let mut sql =
            Sql::new(Dialect::Sqlite, statement::insert_into(Dialect::Sqlite, table, &names));
        sql.push(" ");
        sql.json_rows(rows.iter().map(Vec::as_slice), names.len());
        Ok(sql)
    };
    let deletes = replacement.deleted.iter().map(delete);
    Ok(deletes.chain(replacement.rows.chunks(INSERT_ROWS).map(insert)))
}
