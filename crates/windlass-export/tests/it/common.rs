//! Columns of every type and rows with difficult values.

use serde_json::json;
use std::path::Path;
use windlass_core::{Column, ColumnType as T, Value};
use windlass_export::{
    Destination, Output, PartWriter, RecordBatch, RowBuilder, SchemaRef, Written, schema,
};

/// A column of each type.
pub(crate) fn columns() -> Vec<Column> {
    [
        ("id", T::Int, "bigint", false),
        ("big", T::Int, "bigint unsigned", true),
        ("ok", T::Bool, "boolean", true),
        ("ratio", T::Float, "double precision", true),
        ("amount", T::Numeric, "numeric(12,2)", true),
        ("wide", T::Numeric, "numeric(60,10)", true),
        ("free", T::Numeric, "numeric", true),
        ("day", T::Date, "date", true),
        ("at", T::Timestamp, "timestamp with time zone", true),
        ("local", T::Timestamp, "timestamp without time zone", true),
        ("key", T::Uuid, "uuid", true),
        ("note", T::Text, "text", true),
        ("data", T::Bytes, "bytea", true),
        ("doc", T::Json, "jsonb", true),
    ]
    .map(|(name, kind, sql_type, nullable)| Column {
        name: name.into(),
        kind,
        sql_type: sql_type.into(),
        nullable,
    })
    .to_vec()
}

/// Rows with the limits of every type, with nulls, and with values that formats must escape.
pub(crate) fn rows() -> Vec<Vec<Value>> {
    let text = |text: &str| Value::from(text);
    let mut nulls = vec![Value::Null; 14];
    nulls[0] = Value::Int(3);
    vec![
        vec![
            Value::Int(1),
            text("18446744073709551615"),
            Value::Bool(true),
            Value::Float(0.1),
            text("9999999999.99"),
            text("-12345678901234567890123456789012345678901234567890.0123456789"),
            text("1.10"),
            text("2024-02-29"),
            text("2025-01-31 03:00:00.123456+00"),
            text("2025-01-31 03:00:00"),
            text("018f3c2a-0000-7000-8000-000000000001"),
            text("plain"),
            Value::Bytes(vec![0, 10, 255]),
            Value::Json(json!({"a": [1, null, "x\ny"]}).into()),
        ],
        vec![
            Value::Int(i64::MIN),
            Value::Int(0),
            Value::Bool(false),
            Value::Float(-1e300),
            text("-0.01"),
            text("0.0000000001"),
            text("-123456789012345678901234567890.5"),
            text("0001-01-01"),
            text("1969-12-31 23:59:59.999999+00"),
            text("9999-12-31 23:59:59.999999"),
            text("ffffffff-ffff-ffff-ffff-ffffffffffff"),
            text("a \"quoted\", text\r\nin two lines, ünïcode 💡 and \u{1} control"),
            Value::Bytes(Vec::new()),
            text("[1,\n 2]"),
        ],
        nulls,
        vec![
            Value::Int(i64::MAX),
            Value::Int(7),
            Value::Null,
            Value::Float(1.0),
            text("0"),
            Value::Null,
            text("0"),
            text("1582-10-15"),
            text("2025-06-30 23:30:00-05:30"),
            text("1970-01-01 00:00:00"),
            Value::Null,
            text(""),
            Value::Null,
            Value::Json(json!("text").into()),
        ],
    ]
}

pub(crate) fn batch(schema: &SchemaRef, rows: &[Vec<Value>]) -> RecordBatch {
    let mut builder = RowBuilder::new(schema.clone()).unwrap();
    rows.iter().for_each(|row| builder.push(row).unwrap());
    builder.finish().unwrap()
}

/// Writes these rows to an object with this name.
pub(crate) async fn write_difficult_rows(
    destination: &Destination,
    name: &str,
    output: Output,
) -> Written {
    let schema = schema(&columns());
    let mut writer = PartWriter::new(destination, name, schema.clone(), output).unwrap();
    writer.write(batch(&schema, &rows())).await.unwrap();
    writer.finish().await.unwrap()
}

/// Columns for tests that need only size.
pub(crate) fn blob_schema() -> SchemaRef {
    let column = |name: &str, kind| Column {
        name: name.into(),
        kind,
        sql_type: String::new(),
        nullable: false,
    };
    schema(&[column("id", T::Int), column("blob", T::Bytes)])
}

/// A batch of about a megabyte that cannot be compressed.
pub(crate) fn megabyte(number: i64) -> RecordBatch {
    let mut state = number.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let rows: Vec<Vec<Value>> = (0..16)
        .map(|row| {
            let bytes: Vec<u8> = (0..8192).flat_map(|_| random().to_le_bytes()).collect();
            vec![Value::Int(number * 16 + row), Value::Bytes(bytes)]
        })
        .collect();
    batch(&blob_schema(), &rows)
}

pub(crate) fn folder_destination(folder: &Path) -> Destination {
    Destination::open_with(&format!("file://{}", folder.display()), []).unwrap()
}

pub(crate) async fn names(destination: &Destination) -> Vec<String> {
    destination.list().await.unwrap().into_iter().map(|(name, _)| name).collect()
}
