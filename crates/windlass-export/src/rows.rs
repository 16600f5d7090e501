//! Batches from rows of values: the way that serves every database, if not the fastest.

use std::borrow::Cow;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use windlass_core::Value;

use crate::cell::Cell;
use crate::column::Column;
use crate::{Error, Result, type_name};

/// Gathers rows and makes batches of them. A row is taken in exactly, or refused whole with an
/// error that names the column and the value, and the rows before and after it are not affected.
pub struct RowBuilder {
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
}

/// A value that cannot be taken in.
#[derive(Debug)]
pub struct Unread {
    /// The value, as far as it can be shown.
    pub value: String,
    /// What is wrong with it.
    pub why: String,
}

impl RowBuilder {
    /// A builder for rows of these columns.
    pub fn new(schema: SchemaRef) -> Result<RowBuilder> {
        let columns = schema.fields().iter().map(|field| {
            let column = Column::new(field);
            column.ok_or_else(|| {
                let (name, kind) = (field.name(), field.data_type());
                Error::Wrong(format!("column `{name}`: no value becomes {kind}"))
            })
        });
        let columns = columns.collect::<Result<_>>()?;
        Ok(RowBuilder { schema, columns, rows: 0, bytes: 0 })
    }

    /// Takes a row in. A missing value at its end reads as null.
    pub fn push(&mut self, row: &[Value]) -> Result<()> {
        if row.len() > self.columns.len() {
            let (row, columns) = (row.len(), self.columns.len());
            return Err(Error::Wrong(format!("a row has {row} values for {columns} columns")));
        }
        self.push_with(|place| {
            Ok(Cell::Value(Cow::Borrowed(row.get(place).unwrap_or(&Value::Null))))
        })
    }

    /// Takes a row in whose cells are asked for one by one, from the first column to the last. A
    /// value that cannot be read is refused with what is wrong with it.
    pub fn push_with<'a>(
        &mut self,
        mut cell: impl FnMut(usize) -> std::result::Result<Cell<'a>, Unread>,
    ) -> Result<()> {
        let mut bytes = 0;
        for place in 0..self.columns.len() {
            let pushed = match cell(place) {
                Ok(cell) => {
                    let pushed = self.columns[place].push(&cell);
                    pushed.map_err(|why| Unread { value: cell.shown(), why: why.into_owned() })
                }
                Err(unread) => Err(unread),
            };
            match pushed {
                Ok(size) => bytes += size,
                Err(unread) => {
                    self.columns[..place].iter_mut().for_each(Column::pop);
                    return Err(self.misfit(place, unread));
                }
            }
        }
        self.rows += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// How many rows are gathered.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// About how many bytes they take, for a limit besides their count.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The rows gathered so far; the builder is empty then.
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

    fn misfit(&self, place: usize, Unread { value, why }: Unread) -> Error {
        let field = self.schema.field(place);
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
    use crate::{Class, schema};
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
    fn a_row_that_does_not_fit_is_refused_whole() {
        let mut rows = builder(&[
            ("id", T::Int, "bigint", false),
            ("note", T::Text, "text", true),
            ("amount", T::Numeric, "numeric(5,2)", true),
        ]);
        rows.push(&[1.into(), "a".into(), "1.50".into()]).unwrap();
        let error = rows.push(&[2.into(), "b".into(), "12345.00".into()]).unwrap_err();
        let told = error.to_string();
        assert!(told.contains("`amount` (decimal(5,2)) cannot hold `12345.00`"), "{told}");
        assert_eq!(error.class(), Class::Record);
        assert!(rows.push(&[Value::Null]).is_err(), "the key may not be null");
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
    fn nothing_is_rounded_cut_or_guessed() {
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
    fn what_says_the_same_is_taken() {
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
            (T::Json, "", Value::Json(json!("text"))),
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
