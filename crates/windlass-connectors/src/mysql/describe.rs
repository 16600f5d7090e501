//! Describes tables and queries by the catalog.

use super::row::{int, text, value};
use crate::names::{missing_table, user_tables};
use crate::predicate::query_relation;
use crate::row_count::select_all;
use crate::sql::{Dialect, Sql};
use crate::{ConnectorError, Result, Scope};
use windlass_core::problem::{Code, Problem};
use windlass_core::{Column, ColumnType, Index, KeySet, Source, Table};
use windlass_drivers::mysql::{self, ColumnFlags, Transaction, Value};
use windlass_drivers::{Error, ErrorClass};

/// Describes the source's table or query.
pub(super) async fn describe(transaction: &mut Transaction, source: &Source) -> Result<Table> {
    let Some(name) = &source.table else {
        let query = source.query.as_deref().unwrap_or_default();
        let mut columns = query_columns(transaction, query).await?;
        add_collations(transaction, query, &mut columns).await?;
        return Ok(Table { name: "source".to_owned(), columns, ..Table::default() });
    };
    let Some(relation) = Relation::find(transaction, name).await? else {
        return Err(missing_table(name, tables(transaction).await?).into());
    };
    if let Some(detail) = relation.engine_problem(name) {
        return Err(Problem::field(Code::Source, "source.table", detail).into());
    }
    let columns = relation.columns(transaction).await?;
    let (primary_key, indexes) = relation.indexes(transaction).await?;
    let estimated_rows = relation.estimated_rows(transaction, name).await?;
    // A trigger of MySQL cannot make an UPDATE skip a row.
    let plain = relation.is_table;
    Ok(Table {
        name: name.clone(),
        columns,
        primary_key,
        indexes,
        estimated_rows,
        plain,
        generated: relation.generated_columns(transaction).await?,
        ..Table::default()
    })
}

/// The names of the user's tables and views.
pub(super) async fn tables(transaction: &mut Transaction) -> Result<Vec<String>> {
    listed(transaction, include_str!("../../sql/mysql/names.sql")).await
}

/// The tables with rows of their own.
pub(super) async fn base_tables(transaction: &mut Transaction) -> Result<Vec<String>> {
    listed(transaction, include_str!("../../sql/mysql/base_tables.sql")).await
}

async fn listed(transaction: &mut Transaction, sql: &str) -> Result<Vec<String>> {
    let rows = transaction.query(sql, Vec::new()).await?;
    let names = rows.iter().map(|row| text(row, 0)).collect::<Result<Vec<String>>>()?;
    Ok(user_tables(names))
}

/// The columns of a table. `None` when the table does not exist. Refuses a table without transactions,
/// since a write to it cannot be rolled back.
pub(super) async fn columns_of(
    transaction: &mut Transaction,
    table: &str,
) -> Result<Option<Vec<Column>>> {
    let Some(relation) = Relation::find(transaction, table).await? else { return Ok(None) };
    if let Some(detail) = relation.engine_problem(table) {
        return Err(Error::new(ErrorClass::Definition, detail).into());
    }
    relation.columns(transaction).await.map(Some)
}

/// A table or view in the catalog.
struct Relation {
    schema: String,
    name: String,
    is_table: bool,
    engine: String,
    /// The engine's estimate of the number of rows.
    rows: i64,
}

impl Relation {
    async fn find(transaction: &mut Transaction, name: &str) -> Result<Option<Relation>> {
        let (schema, table) = match name.split_once('.') {
            Some((schema, table)) => (Value::from(schema), table),
            None => (Value::NULL, name),
        };
        let params = vec![schema, table.into(), table.into()];
        let rows = transaction.query(include_str!("../../sql/mysql/relation.sql"), params).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(Relation {
            schema: text(row, 0)?,
            name: text(row, 1)?,
            is_table: text(row, 2)? != "VIEW",
            engine: text(row, 3)?,
            rows: int(row, 4)?,
        }))
    }

    fn engine_problem(&self, name: &str) -> Option<String> {
        let transactional = ["InnoDB", "ROCKSDB", "TokuDB", "ndbcluster"];
        let good = transactional.iter().any(|engine| self.engine.eq_ignore_ascii_case(engine));
        (self.is_table && !good).then(|| {
            let table = Dialect::Mysql.quote_table(name);
            format!(
                "`{name}` uses the engine {}, which has no transactions, so an effect could not be \
                 committed together with the ledger; run `ALTER TABLE {table} ENGINE = InnoDB`",
                self.engine
            )
        })
    }

    fn params(&self) -> Vec<Value> {
        vec![self.schema.as_str().into(), self.name.as_str().into()]
    }

    async fn columns(&self, transaction: &mut Transaction) -> Result<Vec<Column>> {
        let sql = include_str!("../../sql/mysql/columns.sql");
        let mut columns = Vec::new();
        for row in transaction.query(sql, self.params()).await? {
            let (data_type, mut sql_type) = (text(&row, 1)?, text(&row, 2)?);
            let collation = text(&row, 3)?;
            let kind = match int(&row, 5)? {
                0 => kind(&data_type, &sql_type),
                _ => ColumnType::Json,
            };
            if !collation.is_empty() {
                sql_type = format!("{sql_type} COLLATE {collation}");
            }
            let nullable = int(&row, 4)? != 0;
            columns.push(Column { name: text(&row, 0)?, kind, sql_type, nullable });
        }
        Ok(columns)
    }

    async fn generated_columns(&self, transaction: &mut Transaction) -> Result<Vec<String>> {
        let sql = include_str!("../../sql/mysql/generated_columns.sql");
        let rows = transaction.query(sql, self.params()).await?;
        rows.iter().map(|row| text(row, 0)).collect()
    }

    /// The primary key and every usable index. An index with unusable columns counts with the columns
    /// before them. Entries of InnoDB's secondary indexes end with the primary key and are ordered by it
    /// too, so an index on `(year)` is also one on `(year, id)`.
    async fn indexes(&self, transaction: &mut Transaction) -> Result<(Vec<String>, Vec<Index>)> {
        let sql = include_str!("../../sql/mysql/indexes.sql");
        let mut found: Vec<FoundIndex> = Vec::new();
        for row in transaction.query(sql, self.params()).await? {
            let (name, column) = (text(&row, 0)?, text(&row, 2)?);
            let (usable, descending) = (int(&row, 3)? != 0, int(&row, 4)? != 0);
            if found.last().is_none_or(|last| last.name != name) {
                let index = Index { columns: Vec::new(), unique: int(&row, 1)? != 0 };
                found.push(FoundIndex { name, index, whole: true, descending });
            }
            let Some(last) = found.last_mut() else { continue };
            if last.whole && usable && last.descending == descending {
                last.index.columns.push(column);
            } else {
                (last.whole, last.index.unique) = (false, false);
            }
        }
        let primary_key = found.iter().find(|found| found.name == "PRIMARY");
        let primary_key = primary_key.map(|key| key.index.columns.clone()).unwrap_or_default();
        let appends_key = self.engine.eq_ignore_ascii_case("InnoDB");
        let mut indexes = Vec::new();
        for FoundIndex { name, index, whole, descending } in found {
            let mut extended = Index { unique: false, ..index.clone() };
            let more = primary_key.iter().filter(|name| !index.columns.contains(name));
            extended.columns.extend(more.cloned());
            indexes.push(index);
            if appends_key && whole && !descending && name != "PRIMARY" {
                indexes.push(extended);
            }
        }
        indexes.retain(|index| !index.columns.is_empty());
        Ok((primary_key, indexes))
    }

    /// The engine's estimate of a large table. A small table is counted up to a limit, since the estimate
    /// of a small or new table is often wrong.
    async fn estimated_rows(&self, transaction: &mut Transaction, name: &str) -> Result<u64> {
        if self.rows > 10 * MAX_COUNTED_ROWS {
            return Ok(self.rows.unsigned_abs());
        }
        let table = Dialect::Mysql.quote_table(name);
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT {MAX_COUNTED_ROWS}) AS counted"
        );
        let rows = transaction.query(&sql, Vec::new()).await?;
        let counted = rows.first().map_or(Ok(0), |row| int(row, 0))?;
        let rows = if counted < MAX_COUNTED_ROWS { counted } else { counted.max(self.rows) };
        Ok(rows.unsigned_abs())
    }
}

struct FoundIndex {
    name: String,
    index: Index,
    /// Whether every column so far is usable.
    whole: bool,
    descending: bool,
}

/// The most rows that are counted.
const MAX_COUNTED_ROWS: i64 = 10_000;

/// The optimizer's estimate of the records that match `source.where`.
pub(super) async fn estimated_matches(transaction: &mut Transaction, scope: &Scope) -> Result<u64> {
    let all = KeySet::range(None, None);
    explained_rows(transaction, &select_all(Dialect::Mysql, scope, &all)).await
}

/// The optimizer's estimate of the rows of a SELECT: the product over its tables. For a condition on an index, the
/// server looks up the ends of the range in the index and reads none of the rows between them.
pub(super) async fn explained_rows(transaction: &mut Transaction, select: &Sql<'_>) -> Result<u64> {
    let mut product: Option<f64> = None;
    // The default format of MySQL 9 is a text.
    let explain = format!("EXPLAIN FORMAT = TRADITIONAL {}", select.text);
    for row in transaction.query(&explain, select.values()).await? {
        let cell = |name: &str| {
            let named = |column: &mysql::Column| column.name_str() == name;
            let index = row.columns_ref().iter().position(named)?;
            let text = value(&row, index, None).ok()?.to_text()?;
            text.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.parse::<f64>().ok()
        };
        if let (Some(1.0), Some(rows)) = (cell("id"), cell("rows")) {
            let share = cell("filtered").unwrap_or(100.0) / 100.0;
            product = Some(product.unwrap_or(1.0) * rows * share);
        }
    }
    Ok(product.unwrap_or_default() as u64)
}

/// The columns of a query, without running it.
pub(super) async fn query_columns(
    transaction: &mut Transaction,
    query: &str,
) -> Result<Vec<Column>> {
    let sql = format!("SELECT * FROM {} LIMIT 0", query_relation(query));
    let found = transaction.columns(&sql).await.map_err(ConnectorError::from)?;
    let column = |found: &mysql::Column| {
        let mut column = column_of(found);
        // It is returned as text but sorted by its number.
        if found.flags().intersects(ColumnFlags::ENUM_FLAG | ColumnFlags::SET_FLAG) {
            column.sql_type = "enum()".to_owned();
        }
        // A value is compared as a float of 32 bits.
        if found.column_type() == mysql::ColumnType::MYSQL_TYPE_FLOAT {
            column.sql_type = "float".to_owned();
        }
        column
    };
    Ok(found.iter().map(column).collect())
}

/// Adds the collations of a query's texts to their types, as tables have them: they decide which texts are
/// equal. The description of a result has only its character set. Reads no rows.
async fn add_collations(
    transaction: &mut Transaction,
    query: &str,
    columns: &mut [Column],
) -> Result<()> {
    let is_text = |column: &&mut Column| column.kind == ColumnType::Text;
    let mut texts: Vec<&mut Column> = columns.iter_mut().filter(is_text).collect();
    let collations: Vec<String> = texts
        .iter()
        .map(|column| format!("COLLATION({})", Dialect::Mysql.quote(&column.name)))
        .collect();
    if collations.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "SELECT {} FROM (SELECT 1 AS windlass_one) AS windlass_row \
         LEFT JOIN (SELECT * FROM {} LIMIT 0) AS source ON true",
        collations.join(", "),
        query_relation(query)
    );
    for row in transaction.query(&sql, Vec::new()).await? {
        for (n, column) in texts.iter_mut().enumerate() {
            if let Some(collation) = value(&row, n, None)?.to_text() {
                column.sql_type = format!("{} COLLATE {collation}", column.sql_type);
            }
        }
    }
    Ok(())
}

pub(super) fn column_of(column: &mysql::Column) -> Column {
    use mysql::ColumnType as T;
    let unsigned = column.flags().contains(ColumnFlags::UNSIGNED_FLAG);
    let int = || if unsigned { "bigint unsigned" } else { "bigint" }.to_owned();
    let (kind, sql_type) = match column.column_type() {
        T::MYSQL_TYPE_TINY | T::MYSQL_TYPE_BIT if column.column_length() == 1 => {
            (ColumnType::Bool, "tinyint(1)".to_owned())
        }
        T::MYSQL_TYPE_TINY
        | T::MYSQL_TYPE_SHORT
        | T::MYSQL_TYPE_INT24
        | T::MYSQL_TYPE_LONG
        | T::MYSQL_TYPE_LONGLONG
        | T::MYSQL_TYPE_YEAR
        | T::MYSQL_TYPE_BIT => (ColumnType::Int, int()),
        T::MYSQL_TYPE_FLOAT | T::MYSQL_TYPE_DOUBLE => (ColumnType::Float, "double".to_owned()),
        T::MYSQL_TYPE_DECIMAL | T::MYSQL_TYPE_NEWDECIMAL => {
            (ColumnType::Numeric, decimal(column, unsigned))
        }
        T::MYSQL_TYPE_DATE => (ColumnType::Date, "date".to_owned()),
        T::MYSQL_TYPE_DATETIME => (ColumnType::Timestamp, "datetime(6)".to_owned()),
        T::MYSQL_TYPE_TIMESTAMP => (ColumnType::Timestamp, "timestamp(6)".to_owned()),
        T::MYSQL_TYPE_TIME => (ColumnType::Other, "time(6)".to_owned()),
        T::MYSQL_TYPE_JSON => (ColumnType::Json, "json".to_owned()),
        T::MYSQL_TYPE_GEOMETRY => (ColumnType::Bytes, "geometry".to_owned()),
        _ if column.character_set() == 63 => (ColumnType::Bytes, "longblob".to_owned()),
        _ => (ColumnType::Text, "longtext".to_owned()),
    };
    Column { name: column.name_str().into_owned(), kind, sql_type, nullable: true }
}

/// The type of a decimal in a result. Its length includes the decimal point and the sign. The precision
/// matters for files, since few programs read more than 38 digits.
fn decimal(column: &mysql::Column, unsigned: bool) -> String {
    let scale = u32::from(column.decimals());
    let signs = u32::from(scale > 0) + u32::from(!unsigned);
    let digits = column.column_length().saturating_sub(signs);
    let digits = if (scale.max(1)..=65).contains(&digits) { digits } else { 65 };
    format!("decimal({digits},{scale})")
}

/// The kind of a type by its name, and by its length where that matters.
fn kind(data_type: &str, sql_type: &str) -> ColumnType {
    match data_type {
        "tinyint" if sql_type.starts_with("tinyint(1)") => ColumnType::Bool,
        "bit" if sql_type == "bit(1)" => ColumnType::Bool,
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" | "bit" => ColumnType::Int,
        "float" | "double" => ColumnType::Float,
        "decimal" => ColumnType::Numeric,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => ColumnType::Text,
        "uuid" => ColumnType::Uuid,
        "date" => ColumnType::Date,
        "datetime" | "timestamp" => ColumnType::Timestamp,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "geometry"
        | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
        | "multipolygon" | "geometrycollection" => ColumnType::Bytes,
        "json" => ColumnType::Json,
        _ => ColumnType::Other,
    }
}
