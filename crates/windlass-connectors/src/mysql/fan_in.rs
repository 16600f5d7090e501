//! Fan-in: `map` inside the server, `reduce` over a temporary table, and replacing rows of a table.

#[cfg(feature = "export")]
use super::extract;
use super::row::value;
use super::{
    CATALOG_TIMEOUT, Cells, LEDGER_TIMEOUT, MysqlConnection, Transaction, commit, describe, finish,
    read, release, session_settings, session_settings_with_idle,
};
#[cfg(feature = "export")]
use crate::Extraction;
use crate::fan_in::{MAX_BATCH_ROWS, Replacement};
use crate::sql::{Dialect, Sql, has_collation};
use crate::write::{insert_column, insert_columns, missing_load_table};
use crate::{FanIn, Ledger, LoadRequest, Mapped, Merge, Reduction, Result, Rows, Scope, statement};
use async_trait::async_trait;
use futures::{FutureExt, TryStreamExt};
use tokio::sync::mpsc::Sender;
use windlass_core::{Column, ColumnType, Cursor, KeySet, Load, Value};
use windlass_drivers::mysql::{Access, Flow, Row};

#[async_trait]
impl FanIn for MysqlConnection {
    async fn map_columns(&self, scope: &Scope) -> Result<Vec<Column>> {
        let sql = statement::map(Dialect::Mysql, scope, None)?;
        let mut transaction = self.read_tx(CATALOG_TIMEOUT).await?;
        let columns = describe::query_columns(&mut transaction, &sql.text).await;
        release(transaction, columns).await
    }

    async fn map(&self, scope: &Scope, columns: &[Column], key_set: &KeySet) -> Result<Mapped> {
        let sql = statement::map(Dialect::Mysql, scope, Some(key_set))?;
        let mut transaction = self.read_tx(scope.job_type.chunk.timeout).await?;
        let mapped = async {
            let rows = select(&mut transaction, &sql, columns).await?;
            let read = match Mapped::counted(scope, &rows)? {
                Some(read) => read,
                None => read::count(&mut transaction, scope, key_set).await?,
            };
            Ok(Mapped { rows, read })
        };
        let mapped = mapped.await;
        release(transaction, mapped).await
    }

    #[cfg(feature = "export")]
    async fn extract(&self, scope: &Scope, extraction: Extraction<'_>) -> Result<()> {
        let Extraction { key_set, columns, batches } = extraction;
        let mut transaction = self.read_tx(scope.job_type.chunk.timeout).await?;
        let extracted = extract::extract(&mut transaction, scope, key_set, columns, batches).await;
        release(transaction, extracted).await
    }
}

#[async_trait]
impl Merge for MysqlConnection {
    async fn reduce(&self, reduction: Reduction<'_>) -> Result<Rows> {
        let mut transaction = self.reduce_tx().await?;
        let reduced = async {
            let (sql, columns) = fill_parts(&mut transaction, reduction).await?;
            let rows = select(&mut transaction, &sql, &columns).await?;
            Ok(Rows { columns, rows })
        };
        let reduced = reduced.await;
        drop_parts(transaction, reduced).await
    }

    async fn reduce_into(&self, reduction: Reduction<'_>, batches: Sender<Rows>) -> Result<()> {
        let mut transaction = self.reduce_tx().await?;
        let reduced = async {
            let (sql, columns) = fill_parts(&mut transaction, reduction).await?;
            let mut batch = Vec::new();
            let take = |row: Row| {
                batch.push(cells(&row, &columns)?);
                if batch.len() < MAX_BATCH_ROWS {
                    return Ok(Flow::More);
                }
                let rows = Rows { columns: columns.clone(), rows: std::mem::take(&mut batch) };
                let batches = batches.clone();
                Ok(Flow::Wait(async move { batches.send(rows).await.is_ok() }.boxed()))
            };
            let streamed: Result<()> = transaction.stream(&sql.text, sql.values(), take).await;
            streamed?;
            let _ = batches.send(Rows { columns, rows: batch }).await;
            Ok(())
        };
        let reduced = reduced.await;
        drop_parts(transaction, reduced).await
    }

    async fn prepare_replace(&self, load: &Load, columns: &[Column]) -> Result<()> {
        let replacement = Replacement::sample(load, columns);
        let settings = session_settings(CATALOG_TIMEOUT, CATALOG_TIMEOUT);
        let mut transaction = self.db.begin(Access::Write, &settings).await?;
        let prepared = prepare_replace(&mut transaction, &load.table, &replacement).await;
        release(transaction, prepared).await
    }

    async fn replace(&self, ledger: &Ledger, request: LoadRequest<'_>) -> Result<Ledger> {
        let (replacement, load) = (Replacement::new(request)?, request.load);
        let settings = session_settings_with_idle(CATALOG_TIMEOUT, CATALOG_TIMEOUT, LEDGER_TIMEOUT);
        let mut transaction = self.db.begin(Access::Write, &settings).await?;
        let outcome = async {
            let counts = replacement.counts();
            let ledger = commit::advance(&mut transaction, ledger, Cursor::End, counts).await?;
            replace_rows(&mut transaction, &load.table, &replacement).await?;
            Ok(ledger)
        };
        let outcome = outcome.await;
        finish(transaction, outcome).await
    }
}

impl MysqlConnection {
    async fn reduce_tx(&self) -> Result<Transaction> {
        let settings = session_settings(CATALOG_TIMEOUT, CATALOG_TIMEOUT);
        Ok(self.db.begin(Access::Write, &settings).await?)
    }
}

/// Ends a reduction. The session is reused; if the connection is lost, the table is dropped with it.
async fn drop_parts<T>(mut transaction: Transaction, reduced: Result<T>) -> Result<T> {
    let _ = transaction.batch("DROP TEMPORARY TABLE IF EXISTS parts").await;
    release(transaction, reduced).await
}

fn cells(row: &Row, columns: &[Column]) -> Result<Vec<Value>> {
    columns.iter().enumerate().map(|(n, column)| value(row, n, Some(column))).collect()
}

async fn select(
    transaction: &mut Transaction,
    sql: &Sql<'_>,
    columns: &[Column],
) -> Result<Vec<Vec<Value>>> {
    let rows = transaction.query(&sql.text, sql.values()).await?;
    rows.iter().map(|row| cells(row, columns)).collect()
}

/// Fills the temporary table `parts`. Returns the user's SELECT over it, with its columns.
async fn fill_parts<'a>(
    transaction: &mut Transaction,
    reduction: Reduction<'a>,
) -> Result<(Sql<'a>, Vec<Column>)> {
    let Reduction { columns, mut parts, select, params } = reduction;
    let columns: Vec<Column> = columns.iter().map(typed).collect();
    let defined: Vec<String> = columns
        .iter()
        .map(|column| format!("{} {} NULL", Dialect::Mysql.quote(&column.name), column.sql_type))
        .collect();
    // Creating a temporary table does not end the transaction.
    let create = format!("CREATE TEMPORARY TABLE parts ({})", defined.join(", "));
    transaction.batch(&create).await?;
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    while let Some(rows) = parts.try_next().await? {
        insert(transaction, "parts", &columns.iter().collect::<Vec<_>>(), &names, &rows).await?;
    }
    let sql = statement::reduce(Dialect::Mysql, select, params);
    let found = transaction.columns(&sql.text).await?;
    let columns: Vec<Column> = found.iter().map(describe::column_of).collect();
    Ok((sql, columns))
}

/// Inserts rows, several per statement.
async fn insert(
    transaction: &mut Transaction,
    table: &str,
    columns: &[&Column],
    names: &[&str],
    rows: &[Vec<Value>],
) -> Result<()> {
    for rows in rows.chunks(INSERT_ROWS) {
        let sql = insert_statement(table, columns, names, rows);
        transaction.execute(&sql.text, sql.values()).await?;
    }
    Ok(())
}

fn insert_statement<'a>(
    table: &str,
    columns: &[&Column],
    names: &[&str],
    rows: &[Vec<Value>],
) -> Sql<'a> {
    let mut cells = Cells::default();
    let mut values = Vec::new();
    for (n, column) in columns.iter().enumerate() {
        values.push(cells.assigned(rows.iter().map(|row| &row[n]), column));
    }
    let insert = statement::insert_into(Dialect::Mysql, table, names);
    let text = format!("{insert} SELECT {} FROM ", values.join(", "));
    let mut sql = Sql::new(Dialect::Mysql, text);
    cells.push(&mut sql);
    sql.push(" ORDER BY v.ord");
    sql
}

/// The most rows of one INSERT.
const INSERT_ROWS: usize = 1000;

/// Deletes the replaced rows and inserts the new ones.
async fn replace_rows(
    transaction: &mut Transaction,
    table: &str,
    replacement: &Replacement,
) -> Result<()> {
    let columns = table_columns(transaction, table).await?;
    if !replacement.deleted.is_empty() {
        let sql = delete(table, &columns, replacement)?;
        transaction.execute(&sql.text, sql.values()).await?;
    }
    let set = insert_columns(table, &columns, &replacement.columns)?;
    let names: Vec<&str> = replacement.columns.iter().map(String::as_str).collect();
    insert(transaction, table, &set, &names, &replacement.rows).await
}

/// Has the server prepare what [`replace_rows`] runs.
async fn prepare_replace(
    transaction: &mut Transaction,
    table: &str,
    replacement: &Replacement,
) -> Result<()> {
    let columns = table_columns(transaction, table).await?;
    if !replacement.deleted.is_empty() {
        transaction.columns(&delete(table, &columns, replacement)?.text).await?;
    }
    let set = insert_columns(table, &columns, &replacement.columns)?;
    let names: Vec<&str> = replacement.columns.iter().map(String::as_str).collect();
    transaction.columns(&insert_statement(table, &set, &names, &replacement.rows).text).await?;
    Ok(())
}

async fn table_columns(transaction: &mut Transaction, table: &str) -> Result<Vec<Column>> {
    let columns = describe::columns_of(transaction, table).await?;
    Ok(columns.ok_or_else(|| missing_load_table(table))?)
}

/// The DELETE of the replaced rows.
fn delete<'a>(table: &str, columns: &[Column], replacement: &Replacement) -> Result<Sql<'a>> {
    let quoted = Dialect::Mysql.quote_table(table);
    let mut cells = Cells::default();
    let mut matched = Vec::new();
    for (index, name) in replacement.delete_by.iter().enumerate() {
        let column = insert_column(table, columns, name)?;
        let deleted = replacement.deleted.iter().map(|row| &row[index]);
        let value = cells.compared(deleted, Some(column));
        let name = format!("t.{}", Dialect::Mysql.quote(name));
        matched.push(format!("{name} <=> {value}"));
        if replacement.exact[index] && has_collation(Some(column)) {
            let (name, value) = (Dialect::Mysql.bytes(&name), Dialect::Mysql.bytes(&value));
            matched.push(format!("{name} <=> {value}"));
        }
    }
    let mut sql = Sql::new(Dialect::Mysql, format!("DELETE t FROM {quoted} AS t JOIN "));
    cells.push(&mut sql);
    sql.push(format!(" ON {}", matched.join(" AND ")));
    Ok(sql)
}

/// A column of another database, with a type that fits all values of its kind.
fn typed(column: &Column) -> Column {
    let sql_type = match column.kind {
        // FLOAT refuses the digits that its greatest number prints.
        ColumnType::Float => "double",
        _ if !column.sql_type.is_empty() => &column.sql_type,
        ColumnType::Bool => "tinyint(1)",
        ColumnType::Int => "bigint",
        ColumnType::Numeric => "decimal(65,20)",
        ColumnType::Text | ColumnType::Other | ColumnType::Uuid => "longtext",
        ColumnType::Date => "date",
        ColumnType::Timestamp => "datetime(6)",
        ColumnType::Bytes => "longblob",
        ColumnType::Json => "json",
    };
    Column { sql_type: sql_type.to_owned(), ..column.clone() }
}
