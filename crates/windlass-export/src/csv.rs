//! Writes rows as CSV (RFC 4180), and the text of single values, also for JSON.
//!
//! Values are quoted only if necessary. `NULL` is an empty field and the empty text is `""`, as in PostgreSQL's `COPY`.
//! Bytes are `\x` and hexadecimal digits.

use std::io::Write as _;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float64Type, Int64Type, TimestampMicrosecondType,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, TimeUnit};

use crate::{Error, Result, datetime, decimal};

/// Writes the header line.
pub(crate) fn header(schema: &Schema, out: &mut Vec<u8>) {
    for (index, field) in schema.fields().iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        quoted(field.name().as_bytes(), out);
    }
    out.push(b'\n');
}

/// Writes one line per row.
pub(crate) fn rows(batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
    for row in 0..batch.num_rows() {
        for (index, column) in batch.columns().iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            if column.is_null(row) {
                continue;
            }
            match column.data_type() {
                DataType::Utf8 => quoted(column.as_string::<i32>().value(row).as_bytes(), out),
                DataType::Binary => bytes(column.as_binary::<i32>().value(row), out),
                _ => plain(column, row, out)?,
            }
        }
        out.push(b'\n');
    }
    Ok(())
}

/// The text of a value that is neither null nor text nor bytes.
pub(crate) fn plain(column: &ArrayRef, row: usize, out: &mut Vec<u8>) -> Result<()> {
    match column.data_type() {
        DataType::Boolean => {
            let word: &[u8] = if column.as_boolean().value(row) { b"true" } else { b"false" };
            out.extend_from_slice(word);
        }
        DataType::Int64 => number(column.as_primitive::<Int64Type>().value(row), out),
        DataType::UInt64 => number(column.as_primitive::<UInt64Type>().value(row), out),
        DataType::Float64 => float(column.as_primitive::<Float64Type>().value(row), out),
        DataType::Decimal128(_, scale) => {
            let units = column.as_primitive::<Decimal128Type>().value(row);
            decimal::write(&units.to_string(), *scale, out);
        }
        DataType::Decimal256(_, scale) => {
            let units = column.as_primitive::<Decimal256Type>().value(row);
            decimal::write(&units.to_string(), *scale, out);
        }
        DataType::Date32 => {
            let days = column.as_primitive::<Date32Type>().value(row);
            datetime::write_date(days, out)
                .ok_or_else(|| Error::Encoding(format!("day {days} is outside the calendar")))?;
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
            datetime::write_timestamp(micros, zone.is_some(), out).ok_or_else(|| {
                Error::Encoding(format!("microsecond {micros} is outside the calendar"))
            })?;
        }
        other => return Err(Error::Encoding(format!("columns of {other} are not supported"))),
    }
    Ok(())
}

fn number(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    let _ = write!(out, "{value}");
}

/// The shortest number that parses to the same float. Special values are written as in PostgreSQL.
fn float(value: f64, out: &mut Vec<u8>) {
    let _ = match value {
        _ if value.is_nan() => write!(out, "NaN"),
        _ if value.is_infinite() && value > 0.0 => write!(out, "Infinity"),
        _ if value.is_infinite() => write!(out, "-Infinity"),
        _ => write!(out, "{value:?}"),
    };
}

fn bytes(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\x");
    out.extend_from_slice(hex::encode(value).as_bytes());
}

fn quoted(text: &[u8], out: &mut Vec<u8>) {
    let special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    let at_the_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_whitespace);
    let needs_quotes = text.is_empty()
        || text.iter().any(special)
        // Many readers trim unquoted values.
        || at_the_edge(text.first())
        || at_the_edge(text.last())
        // PostgreSQL's reader takes this for the end of the data.
        || text == b"\\.";
    if !needs_quotes {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}
