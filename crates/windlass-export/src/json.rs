//! Writes rows as JSON objects.
//!
//! Integers, floats and booleans are JSON values, and JSON columns are copied verbatim. Decimals, dates and timestamps
//! are strings, since many readers parse numbers as floats. Bytes are `{"$bytes":"0aff"}`, as everywhere in Windlass.

use std::io::Write as _;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field};

use crate::{Error, Result, csv, schema};

/// Writes each row as an object, with `before` before all except the first one and `after` behind each.
pub(crate) fn rows(
    batch: &RecordBatch,
    (before, after): (&[u8], &[u8]),
    first: &mut bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    let names: Vec<Vec<u8>> = batch.schema_ref().fields().iter().map(|field| key(field)).collect();
    for row in 0..batch.num_rows() {
        if !std::mem::take(first) {
            out.extend_from_slice(before);
        }
        out.push(b'{');
        let fields = batch.schema_ref().fields().iter().zip(batch.columns());
        for (index, ((field, column), name)) in fields.zip(&names).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(name);
            value(field, column, row, out)?;
        }
        out.push(b'}');
        out.extend_from_slice(after);
    }
    Ok(())
}

fn key(field: &Field) -> Vec<u8> {
    let mut key = Vec::new();
    string(field.name(), &mut key);
    key.push(b':');
    key
}

fn value(field: &Field, column: &ArrayRef, row: usize, out: &mut Vec<u8>) -> Result<()> {
    if column.is_null(row) {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    match column.data_type() {
        DataType::Utf8 if schema::is_json(field) => {
            // A line break inside JSON is white space, but would end the line here.
            let text = column.as_string::<i32>().value(row).bytes();
            out.extend(text.map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
        }
        DataType::Utf8 => string(column.as_string::<i32>().value(row), out),
        DataType::Binary => {
            let _ = write!(
                out,
                "{{\"$bytes\":\"{}\"}}",
                hex::encode(column.as_binary::<i32>().value(row))
            );
        }
        DataType::Boolean | DataType::Int64 | DataType::UInt64 => csv::plain(column, row, out)?,
        DataType::Float64 if column.as_primitive::<Float64Type>().value(row).is_finite() => {
            csv::plain(column, row, out)?;
        }
        _ => {
            out.push(b'"');
            csv::plain(column, row, out)?;
            out.push(b'"');
        }
    }
    Ok(())
}

fn string(text: &str, out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _: Result<(), Error> =
        serde_json::to_writer(out, text).map_err(|error| Error::Encoding(error.to_string()));
}
