//! Fan-in: `map` inside the server, `reduce` over a temporary table, and a table's rows replaced.

#[cfg(feature = "export")]
use super::extract;
use super::row::value;
use super::{
    Cells, KEEPING, LOOKING, MysqlData, Transaction, commit, describe, finish, patient, release,
    variables,
};
use crate::fan_in::{Bound, Replacement};
use crate::sql::{Dialect, Sql, has_collation};
use crate::write::insert_column;
use crate::{FanIn, Ledger, Params, Parts, Result, Rows, Scope, statement};
use async_trait::async_trait;
use futures::TryStreamExt;
use tokio::sync::mpsc::Sender;
use windlass_core::{Column, ColumnType, Counts, Cursor, KeySet, Load, Template, Value};
use windlass_drivers::mysql::{Access, Row};
use windlass_drivers::{Class, Error};
#[cfg(feature = "export")]
use windlass_export::RecordBatch;

#[async_trait]
impl FanIn for MysqlData {
    async fn map_columns(&self, scope: &Scope) -> Result<Vec<Column>> {
        let sql = statement::map(Dialect::Mysql, scope, None)?;
        let mut transaction = self.reading(LOOKING).await?;
        let columns = describe::query_columns(&mut transaction, &sql.text).await;
        release(transaction, columns).await
    }

    async fn map(
        &self,
        scope: &Scope,
        columns: &[Column],
        key_set: &KeySet,
    ) -> Result<Vec<Vec<Value>>> {
        let sql = statement::map(Dialect::Mysql, scope, Some(key_set))?;
        let mut transaction = self.reading(scope.job_type.chunk.timeout).await?;
        let rows = select(&mut transaction, &sql, columns).await;
        release(transaction, rows).await
    }

    #[cfg(feature = "export")]
    async fn extract(
        &self,
        scope: &Scope,
        key_set: &KeySet,
        columns: &[Column],
        to: Sender<RecordBatch>,
    ) -> Result<()> {
        let mut transaction = self.reading(scope.job_type.chunk.timeout).await?;
        let extracted = extract::extract(&mut transaction, scope, key_set, columns, to).await;
        release(transaction, extracted).await
    }

    async fn reduce(
        &self,
        columns: &[Column],
        parts: Parts<'_>,
        select: &Template,
        params: &Params,
    ) -> Result<Rows> {
        let mut transaction = self.db.begin(Access::Write, &variables(LOOKING, LOOKING)).await?;
        let reduced = reduce(&mut transaction, columns, parts, select, params).await;
        // It is of the session, which others use after this. Where the connection is gone, so is it.
        let _ = transaction.batch("DROP TEMPORARY TABLE IF EXISTS parts").await;
        release(transaction, reduced).await
    }

    async fn replace(
        &self,
        ledger: &Ledger,
        load: &Load,
        result: &Rows,
        params: &Params,
        bounds: &[Bound],
    ) -> Result<Ledger> {
        let replacement = Replacement::of(load, result, params, bounds)?;
        let times = patient(LOOKING, LOOKING, KEEPING);
        let mut transaction = self.db.begin(Access::Write, &times).await?;
        let outcome = async {
            let inserted = replacement.rows.len() as i64;
            let counts = Counts { read: inserted, processed: inserted, ..Counts::default() };
            let ledger = commit::advance(&mut transaction, ledger, Cursor::End, counts).await?;
            put(&mut transaction, &load.table, &replacement).await?;
            Ok(ledger)
        };
        let outcome = outcome.await;
        finish(transaction, outcome).await
    }
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

async fn reduce(
    transaction: &mut Transaction,
    columns: &[Column],
    mut parts: Parts<'_>,
    template: &Template,
    params: &Params,
) -> Result<Rows> {
    let columns: Vec<Column> = columns.iter().map(typed).collect();
    let defined: Vec<String> = columns
        .iter()
        .map(|column| format!("{} {} NULL", Dialect::Mysql.quote(&column.name), column.sql_type))
        .collect();
    // A temporary table leaves the transaction open.
    let create = format!("CREATE TEMPORARY TABLE parts ({})", defined.join(", "));
    transaction.batch(&create).await?;
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    while let Some(rows) = parts.try_next().await? {
        insert(transaction, "parts", &columns.iter().collect::<Vec<_>>(), &names, &rows).await?;
    }
    let sql = statement::reduce(Dialect::Mysql, template, params);
    let found = transaction.columns(&sql.text).await?;
    let columns: Vec<Column> = found.iter().map(describe::column_of).collect();
    let rows = select(transaction, &sql, &columns).await?;
    Ok(Rows { columns, rows })
}

/// Inserts rows, a number of them by each statement.
async fn insert(
    transaction: &mut Transaction,
    table: &str,
    columns: &[&Column],
    names: &[&str],
    rows: &[Vec<Value>],
) -> Result<()> {
    for rows in rows.chunks(1000) {
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
        transaction.execute(&sql.text, sql.values()).await?;
    }
    Ok(())
}

/// Removes what is replaced and inserts the new rows.
async fn put(transaction: &mut Transaction, table: &str, replacement: &Replacement) -> Result<()> {
    let Some(columns) = describe::columns_of(transaction, table).await? else {
        let message = format!("load: there is no table `{table}`");
        return Err(Error::new(Class::Definition, message).into());
    };
    let quoted = Dialect::Mysql.quote_table(table);
    if !replacement.gone.is_empty() {
        let mut cells = Cells::default();
        let mut matched = Vec::new();
        for (place, name) in replacement.by.iter().enumerate() {
            let column = insert_column(table, &columns, name)?;
            let gone = replacement.gone.iter().map(|row| &row[place]);
            let value = cells.compared(gone, Some(column));
            let name = format!("t.{}", Dialect::Mysql.quote(name));
            matched.push(format!("{name} <=> {value}"));
            if replacement.exact[place] && has_collation(Some(column)) {
                let (name, value) = (Dialect::Mysql.bytes(&name), Dialect::Mysql.bytes(&value));
                matched.push(format!("{name} <=> {value}"));
            }
        }
        let mut sql = Sql::new(Dialect::Mysql, format!("DELETE t FROM {quoted} AS t JOIN "));
        cells.push(&mut sql);
        sql.push(format!(" ON {}", matched.join(" AND ")));
        transaction.execute(&sql.text, sql.values()).await?;
    }
    let mut set = Vec::new();
    for name in &replacement.columns {
        set.push(insert_column(table, &columns, name)?);
    }
    let names: Vec<&str> = replacement.columns.iter().map(String::as_str).collect();
    insert(transaction, table, &set, &names, &replacement.rows).await
}

/// A column that comes from elsewhere, with a type that holds all values of its kind.
fn typed(column: &Column) -> Column {
    let sql_type = match column.kind {
        _ if !column.sql_type.is_empty() => &column.sql_type,
        ColumnType::Bool => "tinyint(1)",
        ColumnType::Int => "bigint",
        ColumnType::Float => "double",
        ColumnType::Numeric => "decimal(65,20)",
        ColumnType::Text | ColumnType::Other | ColumnType::Uuid => "longtext",
        ColumnType::Date => "date",
        ColumnType::Timestamp => "datetime(6)",
        ColumnType::Bytes => "longblob",
        ColumnType::Json => "json",
    };
    Column { sql_type: sql_type.to_owned(), ..column.clone() }
}
