//! Fan-in: `map` inside the server, `reduce` over a temporary table, and replacing rows of a table.

#[cfg(feature = "export")]
use super::extract;
use super::row::typed_values;
use super::write::Batch;
use super::{
    CATALOG_TIMEOUT, LEDGER_SETTINGS, PostgresConnection, commit, describe, finish, milliseconds,
    read, release, row,
};
#[cfg(feature = "export")]
use crate::Extraction;
use crate::array_text;
use crate::fan_in::{MAX_BATCH_ROWS, Replacement};
use crate::sql::{Dialect, Sql, has_collation, quote, quote_table};
use crate::write::{insert_column, insert_columns, missing_load_table};
use crate::{
    ConnectorError, FanIn, Ledger, LoadRequest, Mapped, Merge, Reduction, Result, Rows, Scope,
    statement,
};
use async_trait::async_trait;
use futures::{SinkExt, StreamExt, TryStreamExt};
use tokio::sync::mpsc::Sender;
use windlass_core::template::ROW_COUNT;
use windlass_core::{Column, ColumnType, Cursor, KeySet, Load, Value};
use windlass_drivers::{Bytes, Error, Transaction};

#[async_trait]
impl FanIn for PostgresConnection {
    async fn map_columns(&self, scope: &Scope) -> Result<Vec<Column>> {
        let sql = statement::map(Dialect::Postgres, scope, None)?;
        let transaction = self.catalog_tx().await?;
        let columns = describe::query_columns(&transaction, &sql.text, &sql.params()).await;
        release(transaction, columns).await
    }

    async fn map(&self, scope: &Scope, columns: &[Column], key_set: &KeySet) -> Result<Mapped> {
        let is_free = !columns.iter().any(|column| column.name == ROW_COUNT);
        let template = scope.job_type.statement()?.filter(|_| is_free);
        let counting = template.and_then(|template| template.with_row_count());
        let transaction = self.chunk_read_tx(scope).await?;
        let mapped = async {
            if let Some(counting) = counting {
                let fragments = counting.fragments();
                let sql = statement::map_of(Dialect::Postgres, scope, fragments, Some(key_set));
                return select_counted(&transaction, &sql, columns).await;
            }
            let sql = statement::map(Dialect::Postgres, scope, Some(key_set))?;
            let rows = select(&transaction, &sql, columns).await?;
            let read = match Mapped::counted(scope, &rows)? {
                Some(read) => read,
                None => read::count(&transaction, scope, key_set).await?,
            };
            Ok(Mapped { rows, read })
        };
        let mapped = mapped.await;
        release(transaction, mapped).await
    }

    #[cfg(feature = "export")]
    async fn extract(&self, scope: &Scope, extraction: Extraction<'_>) -> Result<()> {
        let Extraction { key_set, columns, batches } = extraction;
        let transaction = self.chunk_read_tx(scope).await?;
        let extracted = extract::extract(&transaction, scope, key_set, columns, batches).await;
        release(transaction, extracted).await
    }
}

#[async_trait]
impl Merge for PostgresConnection {
    async fn reduce(&self, reduction: Reduction<'_>) -> Result<Rows> {
        let transaction = self.db.transaction(&reduce_settings()).await?;
        let reduced = async {
            let (sql, columns) = fill_parts(&transaction, reduction).await?;
            let rows = select(&transaction, &sql, &columns).await?;
            Ok(Rows { columns, rows })
        };
        let reduced = reduced.await;
        // The rollback drops the temporary table.
        release(transaction, reduced).await
    }

    async fn reduce_into(&self, reduction: Reduction<'_>, batches: Sender<Rows>) -> Result<()> {
        let transaction = self.db.transaction(&reduce_settings()).await?;
        let reduced = async {
            let (sql, columns) = fill_parts(&transaction, reduction).await?;
            let mut rows = transaction.stream(&selected(&sql, &columns), &sql.params()).await?;
            let mut batch = Vec::new();
            while let Some(row) = rows.next().await {
                batch.push(typed_values(&row?, &columns, &[])?);
                if batch.len() == MAX_BATCH_ROWS {
                    let rows = std::mem::take(&mut batch);
                    if batches.send(Rows { columns: columns.clone(), rows }).await.is_err() {
                        return Ok(());
                    }
                }
            }
            let _ = batches.send(Rows { columns, rows: batch }).await;
            Ok(())
        };
        let reduced = reduced.await;
        release(transaction, reduced).await
    }

    async fn prepare_replace(&self, load: &Load, columns: &[Column]) -> Result<()> {
        let replacement = Replacement::sample(load, columns);
        let transaction = self.db.transaction(LEDGER_SETTINGS).await?;
        let prepared = prepare_replace(&transaction, &load.table, &replacement).await;
        release(transaction, prepared).await
    }

    async fn replace(&self, ledger: &Ledger, request: LoadRequest<'_>) -> Result<Ledger> {
        let (replacement, load) = (Replacement::new(request)?, request.load);
        let counts = replacement.counts();
        let advance = commit::advance(ledger, Cursor::End.to_text(), counts);
        let sql = include_str!("../../sql/postgres/advance.sql");
        let advanced = self.db.transaction_with(LEDGER_SETTINGS, sql, &advance).await;
        let (transaction, advanced) = advanced.map_err(commit::not_advanced)?;
        let outcome = async {
            let ledger = row::ledger(advanced.first().ok_or(ConnectorError::LeaseLost)?)?;
            transaction.batch("SET LOCAL statement_timeout = 0").await?;
            replace_rows(&transaction, &load.table, &replacement).await?;
            Ok(ledger)
        };
        let outcome = outcome.await;
        finish(transaction, outcome).await
    }
}

/// The rows of a statement, with each column in its canonical text form.
async fn select(
    transaction: &Transaction,
    sql: &Sql<'_>,
    columns: &[Column],
) -> Result<Vec<Vec<Value>>> {
    let rows = transaction.query(&selected(sql, columns), &sql.params()).await?;
    rows.iter().map(|row| typed_values(row, columns, &[])).collect()
}

/// The rows of a statement that also has the column [`ROW_COUNT`], and the sum of that column.
async fn select_counted(
    transaction: &Transaction,
    sql: &Sql<'_>,
    columns: &[Column],
) -> Result<Mapped> {
    let mut expressions = rendered(columns);
    expressions.push(ROW_COUNT.to_owned());
    let rows = transaction.query(&select_from(sql, &expressions), &sql.params()).await?;
    let mut mapped = Mapped { rows: Vec::with_capacity(rows.len()), read: 0 };
    for row in &rows {
        mapped.rows.push(typed_values(row, columns, &[])?);
        mapped.read += row::get::<i64>(row, columns.len())?;
    }
    Ok(mapped)
}

fn selected(sql: &Sql<'_>, columns: &[Column]) -> String {
    select_from(sql, &rendered(columns))
}

/// These columns in their canonical text form.
fn rendered(columns: &[Column]) -> Vec<String> {
    let render = |column: &Column| Dialect::Postgres.render(column, &quote(&column.name));
    columns.iter().map(render).collect()
}

fn select_from(sql: &Sql<'_>, expressions: &[String]) -> String {
    // The line break ends a comment at the end of the user's statement.
    format!("SELECT {} FROM ({}\n) AS computed", expressions.join(", "), sql.text)
}

fn reduce_settings() -> String {
    let timeout = milliseconds(CATALOG_TIMEOUT);
    format!(
        "SET LOCAL statement_timeout = {timeout}; SET LOCAL datestyle = 'ISO'; \
         SET LOCAL intervalstyle = 'postgres'; SET LOCAL extra_float_digits = 1"
    )
}

/// Fills the temporary table `parts`. Returns the user's SELECT over it, with its columns.
async fn fill_parts<'a>(
    transaction: &Transaction,
    reduction: Reduction<'a>,
) -> Result<(Sql<'a>, Vec<Column>)> {
    let Reduction { columns, mut parts, select, params } = reduction;
    let columns: &[Column] = &columns.iter().map(typed).collect::<Vec<_>>();
    let defined: Vec<String> =
        columns.iter().map(|c| format!("{} {}", quote(&c.name), c.sql_type)).collect();
    let create = format!("CREATE TEMPORARY TABLE parts ({}) ON COMMIT DROP", defined.join(", "));
    transaction.batch(&create).await?;
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    while let Some(rows) = parts.try_next().await? {
        let mut batch = Batch::default();
        let cells_of = |index: usize| rows.iter().map(move |row| &row[index]);
        let cells: Vec<String> = columns
            .iter()
            .enumerate()
            .map(|(index, column)| batch.add(cells_of(index), Some(column)))
            .collect();
        let sql = format!(
            "{} SELECT {} FROM {}",
            statement::insert_into(Dialect::Postgres, "pg_temp.parts", &names),
            cells.join(", "),
            batch.relation(),
        );
        transaction.execute(&sql, &batch.params()).await?;
    }
    let sql = statement::reduce(Dialect::Postgres, select, params);
    let columns = describe::query_columns(transaction, &sql.text, &sql.params()).await?;
    Ok((sql, columns))
}

/// A column of another database, with a type that fits all values of its kind.
fn typed(column: &Column) -> Column {
    let sql_type = match column.kind {
        _ if !column.sql_type.is_empty() => &column.sql_type,
        ColumnType::Bool => "boolean",
        ColumnType::Int => "bigint",
        ColumnType::Float => "double precision",
        ColumnType::Numeric => "numeric",
        ColumnType::Text | ColumnType::Other => "text",
        ColumnType::Uuid => "uuid",
        ColumnType::Date => "date",
        ColumnType::Timestamp => "timestamp with time zone",
        ColumnType::Bytes => "bytea",
        ColumnType::Json => "jsonb",
    };
    Column { sql_type: sql_type.to_owned(), ..column.clone() }
}

/// Deletes the replaced rows and copies the new ones in.
async fn replace_rows(
    transaction: &Transaction,
    table: &str,
    replacement: &Replacement,
) -> Result<()> {
    let columns = table_columns(transaction, table).await?;
    if !replacement.deleted.is_empty() {
        let (sql, batch) = delete(table, &columns, replacement)?;
        transaction.execute(&sql, &batch.params()).await?;
    }
    let types = insert_columns(table, &columns, &replacement.columns)?;
    let names: Vec<String> = replacement.columns.iter().map(|name| quote(name)).collect();
    let sql = format!("COPY {} ({}) FROM STDIN", quote_table(table), names.join(", "));
    let mut copy = std::pin::pin!(transaction.copy_in(&sql).await?);
    for rows in replacement.rows.chunks(COPY_ROWS) {
        let lines: String = rows.iter().map(|row| line(row, &types)).collect();
        copy.send(Bytes::from(lines)).await.map_err(Error::from)?;
    }
    copy.finish().await.map_err(Error::from)?;
    Ok(())
}

/// Has the server plan what [`replace_rows`] runs. COPY cannot be planned, so an INSERT checks the privileges.
async fn prepare_replace(
    transaction: &Transaction,
    table: &str,
    replacement: &Replacement,
) -> Result<()> {
    let columns = table_columns(transaction, table).await?;
    if !replacement.deleted.is_empty() {
        let (sql, batch) = delete(table, &columns, replacement)?;
        transaction.query(&format!("EXPLAIN {sql}"), &batch.params()).await?;
    }
    let types = insert_columns(table, &columns, &replacement.columns)?;
    let names: Vec<&str> = types.iter().map(|column| column.name.as_str()).collect();
    let nulls = types.iter().map(|column| format!("NULL::{}", column.sql_type));
    let sql = format!(
        "EXPLAIN {} SELECT {}",
        statement::insert_into(Dialect::Postgres, table, &names),
        nulls.collect::<Vec<_>>().join(", ")
    );
    transaction.query(&sql, &[]).await?;
    Ok(())
}

async fn table_columns(transaction: &Transaction, table: &str) -> Result<Vec<Column>> {
    let columns = describe::columns_of(transaction, table).await?;
    Ok(columns.ok_or_else(|| missing_load_table(table))?)
}

/// The DELETE of the replaced rows.
fn delete<'a>(
    table: &str,
    columns: &[Column],
    replacement: &'a Replacement,
) -> Result<(String, Batch<'a>)> {
    let mut batch = Batch::default();
    let mut matched = Vec::new();
    for (index, name) in replacement.delete_by.iter().enumerate() {
        let column = insert_column(table, columns, name)?;
        let value = batch.add(replacement.deleted.iter().map(|row| &row[index]), Some(column));
        let name = format!("t.{}", quote(name));
        matched.push(format!("{name} IS NOT DISTINCT FROM {value}"));
        if replacement.exact[index] && has_collation(Some(column)) {
            let (name, value) = (Dialect::Postgres.bytes(&name), Dialect::Postgres.bytes(&value));
            matched.push(format!("{name} IS NOT DISTINCT FROM {value}"));
        }
    }
    let sql = format!(
        "DELETE FROM {} AS t USING {} WHERE {}",
        quote_table(table),
        batch.relation(),
        matched.join(" AND "),
    );
    Ok((sql, batch))
}

/// The number of rows that are sent to COPY at once.
const COPY_ROWS: usize = 1000;

/// A row in the text format of COPY.
fn line(row: &[Value], columns: &[&Column]) -> String {
    let text = |value: &Value, column: &Column| match value {
        Value::Json(json) => {
            array_text::from_json(json, column).or_else(|| Some(json.text().to_owned()))
        }
        value => value.to_text(),
    };
    let cell = |(value, column): (&Value, &&Column)| match text(value, column) {
        None => "\\N".to_owned(),
        Some(text) => text
            .replace('\\', "\\\\")
            .replace('\t', "\\t")
            .replace('\n', "\\n")
            .replace('\r', "\\r"),
    };
    row.iter().zip(columns).map(cell).collect::<Vec<_>>().join("\t") + "\n"
}
