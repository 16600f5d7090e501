//! Builds batches from rows of values.

use std::borrow::Cow;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use windlass_core::Value;

use crate::cell::Cell;
use crate::column::Column;
use crate::{Error, Result, type_name};

/// Collects rows into batches. A row is stored exactly, or refused as a whole with an error that names the column and the
/// value. A refused row does not affect other rows.
pub struct RowBuilder {
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
}

/// A value that cannot be stored.
#[derive(Debug)]
pub struct InvalidValue {
    /// The value, for error messages.
    pub value: String,
    /// The reason.
    pub why: String,
}

impl RowBuilder {
    /// A builder for rows of these columns.
    pub fn new(schema: SchemaRef) -> Result<RowBuilder> {
        let columns = schema.fields().iter().map(|field| {
            let column = Column::new(field);
            column.ok_or_else(|| {
                let (name, kind) = (field.name(), field.data_type());
                Error::Invalid(format!("column `{name}`: the type {kind} is not supported"))
            })
        });
        let columns = columns.collect::<Result<_>>()?;
        Ok(RowBuilder { schema, columns, rows: 0, bytes: 0 })
    }

    /// Adds a row. Missing values at its end are null.
    pub fn push(&mut self, row: &[Value]) -> Result<()> {
        if row.len() > self.columns.len() {
            let (row, columns) = (row.len(), self.columns.len());
            return Err(Error::Invalid(format!("a row has {row} values for {columns} columns")));
        }
        self.push_with(|index| {
            Ok(Cell::Value(Cow::Borrowed(row.get(index).unwrap_or(&Value::Null))))
        })
    }

    /// Adds a row whose cells are requested one by one, from the first column to the last.
    pub fn push_with<'a>(
        &mut self,
        mut cell: impl FnMut(usize) -> std::result::Result<Cell<'a>, InvalidValue>,
    ) -> Result<()> {
        let mut bytes = 0;
        for index in 0..self.columns.len() {
            let pushed = match cell(index) {
                Ok(cell) => {
                    let pushed = self.columns[index].push(&cell);
                    pushed.map_err(|why| InvalidValue {
                        value: cell.display(),
                        why: why.into_owned(),
                    })
                }
                Err(unread) => Err(unread),
            };
            match pushed {
                Ok(size) => bytes += size,
                Err(unread) => {
                    self.columns[..index].iter_mut().for_each(Column::pop);
                    return Err(self.value_error(index, unread));
                }
            }
        }
        self.rows += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// The number of collected rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Their approximate size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the collected rows, and empties the builder.
    pub fn finish(&mut self) -> Result<RecordBatch> {
        let arrays = self.columns.iter_mut().map(Column::finish).collect::<Result<_, _>>();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.bytes) = (0, 0);
        arrays
            .and_then(|arrays| {
                RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
            })
            .map_err(|error| Error::Encoding(error.to_string()))
    }

    fn value_error(&self, index: usize, InvalidValue { value, why }: InvalidValue) -> Error {
        let field = self.schema.field(index);
        let mut shown: String = format!("`{value}`").chars().take(100).collect();
        if !shown.ends_with('`') || shown.len() < 2 {
            shown.push('…');
        }
        Error::Value { column: field.name().clone(), kind: type_name(field), value: shown, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Decimal128Type, Int64Type};
    use serde_json::json;
    use windlass_core::{Column, ColumnType as T};

    fn builder(columns: &[(&str, T, &str, bool)]) -> RowBuilder {
        let columns: Vec<_> = columns
            .iter()
            .map(|(name, kind, sql_type, nullable)| Column {
                name: (*name).into(),
                kind: *kind,
                sql_type: (*sql_type).into(),
                nullable: *nullable,
            })
            .collect();
        RowBuilder::new(schema(&columns)).unwrap()
    }

    #[test]
    fn a_row_that_does_not_fit_is_refused_as_a_whole() {
        let mut rows = builder(&[
            ("id", T::Int, "bigint", false),
            ("note", T::Text, "text", true),
            ("amount", T::Numeric, "numeric(5,2)", true),
        ]);
        rows.push(&[1.into(), "a".into(), "1.50".into()]).unwrap();
        let error = rows.push(&[2.into(), "b".into(), "12345.00".into()]).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("`amount` (decimal(5,2)) cannot hold `12345.00`"), "{message}");
        assert!(error.is_record_error());
        assert!(rows.push(&[Value::Null]).is_err(), "the key must not be null");
        rows.push(&[3.into(), Value::Null, Value::Null]).unwrap();
        rows.push(&[4.into(), "c".into()]).unwrap();
        let batch = rows.finish().unwrap();
        assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[1, 3, 4]);
        assert_eq!(batch.column(1).as_string::<i32>().value(2), "c");
        assert_eq!(batch.column(2).as_primitive::<Decimal128Type>().value(0), 150);
        assert_eq!(rows.rows(), 0);
        assert_eq!(rows.finish().unwrap().num_rows(), 0);
    }

    #[test]
    fn inexact_values_are_refused() {
        let long = "x".repeat(500);
        for (kind, sql_type, value) in [
            (T::Int, "", Value::from("12.5")),
            (T::Int, "", Value::Float(1.5)),
            (T::Int, "", Value::Float(1e300)),
            (T::Int, "bigint unsigned", Value::Int(-1)),
            (T::Int, "bigint unsigned", Value::from("18446744073709551616")),
            (T::Float, "", Value::from("0.1234567890123456789")),
            (T::Float, "", Value::Int(i64::MAX)),
            (T::Numeric, "numeric(9,2)", Value::from("NaN")),
            (T::Numeric, "numeric(9,2)", Value::Float(0.1 + 0.2)),
            (T::Date, "", Value::from("infinity")),
            (T::Date, "", Value::from("0000-00-00")),
            (T::Timestamp, "timestamptz", Value::from("2025-01-31 00:00:00")),
            (T::Bool, "", Value::Int(2)),
            (T::Text, "", Value::Bytes(vec![0xff])),
            (T::Bytes, "", Value::from(long.as_str())),
            (T::Json, "", Value::from("{")),
        ] {
            let error = builder(&[("c", kind, sql_type, true)]).push(&[value]).unwrap_err();
            assert!(error.to_string().len() < 300 && error.to_string().contains("`c`"), "{error}");
        }
    }

    #[test]
    fn equivalent_values_are_accepted() {
        for (kind, sql_type, value) in [
            (T::Int, "", Value::from("-12")),
            (T::Int, "", Value::Float(3.0)),
            (T::Int, "bigint unsigned", Value::from("18446744073709551615")),
            (T::Float, "", Value::from("0.1")),
            (T::Float, "", Value::from("Infinity")),
            (T::Float, "", Value::Int(7)),
            (T::Numeric, "numeric(9,2)", Value::Int(7)),
            (T::Numeric, "numeric(9,2)", Value::Float(0.25)),
            (T::Numeric, "", Value::from("NaN")),
            (T::Bool, "", Value::Int(1)),
            (T::Text, "", Value::Int(1)),
            (T::Json, "", Value::Json(json!("text").into())),
            (T::Json, "", Value::from("{\"a\": 1}")),
        ] {
            builder(&[("c", kind, sql_type, true)]).push(&[value]).unwrap();
        }
    }

    #[test]
    fn a_row_with_more_values_than_columns_is_refused() {
        let mut rows = builder(&[("id", T::Int, "", true)]);
        assert!(rows.push(&[1.into(), 2.into()]).is_err());
    }
}
