//! Sends a batch of rows as one bound JSON document, which the server converts into a table. The text of the
//! statement does not depend on the number of rows, so it is prepared once.

use super::value::{assigned, compared, decimal};
use crate::sql::Sql;
use std::borrow::Cow;
use windlass_core::{Column, ColumnType, Value};

/// Columns of values that become the table `v` with the row number `ord`.
#[derive(Default)]
pub(crate) struct Cells {
    columns: Vec<Vec<serde_json::Value>>,
}

impl Cells {
    /// Adds values to compare with a column, and returns their expression: of the column's type and
    /// collation, so that its index can be used.
    pub(crate) fn compared<'v>(
        &mut self,
        values: impl Iterator<Item = &'v Value>,
        column: Option<&Column>,
    ) -> String {
        let Some(column) = column else {
            return self.add(values.map(Value::to_text));
        };
        let cell = self.add(values.map(|value| match compared(value, column) {
            Value::Bytes(bytes) => Some(hex::encode(bytes)),
            value => value.to_text(),
        }));
        let sql_type = column.sql_type.as_str();
        match column.kind {
            ColumnType::Int if sql_type.contains("unsigned") || sql_type.starts_with("bit") => {
                format!("CAST({cell} AS UNSIGNED)")
            }
            ColumnType::Int | ColumnType::Bool => format!("CAST({cell} AS SIGNED)"),
            ColumnType::Float => format!("CAST({cell} AS DOUBLE)"),
            ColumnType::Numeric => format!("CAST({cell} AS {})", decimal(column)),
            ColumnType::Date => format!("CAST({cell} AS DATE)"),
            ColumnType::Timestamp => format!("CAST({cell} AS DATETIME(6))"),
            ColumnType::Bytes => format!("UNHEX({cell})"),
            ColumnType::Uuid => format!("CAST({cell} AS UUID)"),
            ColumnType::Other if sql_type.starts_with("time") => format!("CAST({cell} AS TIME(6))"),
            ColumnType::Text | ColumnType::Json | ColumnType::Other => collated(cell, sql_type),
        }
    }

    /// Adds values to assign to a column, and returns their expression.
    pub(super) fn assigned<'v>(
        &mut self,
        values: impl Iterator<Item = &'v Value>,
        column: &Column,
    ) -> String {
        let cell = self.add(values.map(|value| assigned(value, column)));
        match column.kind {
            ColumnType::Bytes => format!("UNHEX({cell})"),
            // MySQL would take the bits of a text's characters.
            _ if column.sql_type.starts_with("bit") => format!("CAST({cell} AS UNSIGNED)"),
            _ => cell,
        }
    }

    /// Adds the table to a statement, and binds the document.
    pub(crate) fn push(&self, sql: &mut Sql<'_>) {
        let rows = self.columns.first().map_or(0, Vec::len);
        let row = |n: usize| self.columns.iter().map(|column| column[n].clone()).collect();
        let rows: Vec<serde_json::Value> = (0..rows).map(row).collect();
        sql.push("JSON_TABLE(");
        sql.bind(Cow::Owned(Value::Text(serde_json::Value::Array(rows).to_string())));
        sql.push(", '$[*]' COLUMNS (ord FOR ORDINALITY");
        for n in 0..self.columns.len() {
            sql.push(format!(
                ", c{n} LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[{n}]' \
                 NULL ON EMPTY ERROR ON ERROR"
            ));
        }
        sql.push(")) AS v");
    }

    fn add(&mut self, values: impl Iterator<Item = Option<String>>) -> String {
        let cell = format!("v.c{}", self.columns.len());
        self.columns.push(values.map(serde_json::Value::from).collect());
        cell
    }
}

/// Whether values from a document compare with a column like bound values.
pub(super) fn compares_alike(column: Option<&Column>) -> bool {
    column.is_some_and(|column| match column.kind {
        ColumnType::Text | ColumnType::Json | ColumnType::Other => {
            column.sql_type.contains(" COLLATE ") || column.sql_type.starts_with("time")
        }
        _ => true,
    })
}

/// A text in the column's collation, which its type description ends with.
fn collated(cell: String, sql_type: &str) -> String {
    let Some((_, collation)) = sql_type.split_once(" COLLATE ") else { return cell };
    match collation.split('_').next() {
        Some("utf8mb4") | None => format!("{cell} COLLATE {collation}"),
        Some(charset) => format!("CONVERT({cell} USING {charset}) COLLATE {collation}"),
    }
}
