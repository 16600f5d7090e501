//! Describes the tables that a load may fill.

use super::{RedshiftConnection, fill, literal, only_loads, text};
use crate::names::missing_table;
use crate::{Catalog, Result};
use async_trait::async_trait;
use windlass_core::{Column, ColumnType, Table};
use windlass_drivers::TextRow;

#[async_trait]
impl Catalog for RedshiftConnection {
    async fn tables(&self) -> Result<Vec<String>> {
        let rows = self.read(include_str!("../../sql/redshift/tables.sql")).await?;
        rows.iter().map(|row| Ok(text(row, 0)?.to_owned())).collect()
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        let name = source.table.as_deref().ok_or_else(only_loads)?;
        let rows = self.read(&columns_sql(name)?).await?;
        if rows.is_empty() {
            return Err(missing_table(name, self.tables().await?).into());
        }
        let columns = rows.iter().map(column).collect::<Result<_>>()?;
        Ok(Table { name: name.to_owned(), columns, ..Table::default() })
    }

    async fn measure(&self, _: &str) -> Result<Option<f64>> {
        Err(only_loads())
    }
}

/// The statement that lists the columns of a table.
pub(super) fn columns_sql(table: &str) -> Result<String> {
    // Redshift folds identifiers to lower case, also quoted ones.
    let (schema, table) = match table.rsplit_once('.') {
        Some((schema, table)) => (literal(&schema.to_lowercase())?, table),
        None => ("current_schema()".to_owned(), table),
    };
    let values = [("schema", schema), ("table", literal(&table.to_lowercase())?)];
    Ok(fill(include_str!("../../sql/redshift/columns.sql"), &values))
}

/// A column with the type that a cast to it needs.
pub(super) fn column(row: &TextRow) -> Result<Column> {
    let (name, data_type) = (text(row, 0)?.to_owned(), text(row, 1)?);
    let argument = |index: usize| row.get(index).and_then(Option::as_deref);
    let sql_type = match (data_type, argument(2), argument(3), argument(4)) {
        ("character varying" | "character", Some(length), ..) => format!("{data_type}({length})"),
        ("numeric", _, Some(precision), Some(scale)) => format!("numeric({precision},{scale})"),
        _ => data_type.to_owned(),
    };
    let kind = match data_type {
        "boolean" => ColumnType::Bool,
        "smallint" | "integer" | "bigint" => ColumnType::Int,
        "real" | "double precision" => ColumnType::Float,
        "numeric" => ColumnType::Numeric,
        "character varying" | "character" | "text" => ColumnType::Text,
        "date" => ColumnType::Date,
        data_type if data_type.starts_with("timestamp") => ColumnType::Timestamp,
        _ => ColumnType::Other,
    };
    Ok(Column { name, kind, sql_type, nullable: argument(5) != Some("NO") })
}
