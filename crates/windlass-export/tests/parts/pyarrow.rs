//! Reads Parquet with pyarrow, an independent implementation.

use crate::common::{batch, folder_destination, write_extreme};
use serde_json::{Value as Json, json};
use std::path::Path;
use tokio::process::Command;
use windlass_core::{Column, ColumnType as T, Value};
use windlass_export::{Compression, Format, Output, PartWriter, schema, schema_of};
use windlass_testkit::python_program;

const READER: &str = include_str!("read.py");

async fn read(file: &Path) -> Json {
    let output = Command::new(python_program("python"))
        .arg("-c")
        .arg(READER)
        .arg(file)
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn every_type_and_value_survives_a_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    for compression in [Compression::Zstd, Compression::None] {
        let output = Output::with(Format::Parquet, compression).unwrap();
        write_extreme(&destination, "x.parquet", output).await;
        let found = read(&folder.path().join("x.parquet")).await;
        assert_eq!(
            found["schema"],
            json!([
                ["id", "int64", false],
                ["big", "uint64", true],
                ["ok", "bool", true],
                ["ratio", "double", true],
                ["amount", "decimal128(12, 2)", true],
                ["wide", "decimal256(60, 10)", true],
                ["free", "string", true],
                ["day", "date32[day]", true],
                ["at", "timestamp[us, tz=UTC]", true],
                ["local", "timestamp[us]", true],
                ["key", "string", true],
                ["note", "string", true],
                ["data", "binary", true],
                ["doc", "string", true],
            ])
        );
        let codec = if compression == Compression::Zstd { "ZSTD" } else { "UNCOMPRESSED" };
        assert_eq!(found["codec"], codec);
        assert_eq!(found["rows"], rows());
    }
}

/// The extreme rows as Python prints them.
fn rows() -> Json {
    json!([
        [
            "1",
            "18446744073709551615",
            "True",
            "0.1",
            "9999999999.99",
            "-12345678901234567890123456789012345678901234567890.0123456789",
            "1.10",
            "2024-02-29",
            "2025-01-31 03:00:00.123456+00:00",
            "2025-01-31 03:00:00",
            "018f3c2a-0000-7000-8000-000000000001",
            "plain",
            "b'\\x00\\n\\xff'",
            "{\"a\":[1,null,\"x\\ny\"]}"
        ],
        [
            "-9223372036854775808",
            "0",
            "False",
            "-1e+300",
            "-0.01",
            "1E-10",
            "-123456789012345678901234567890.5",
            "0001-01-01",
            "1969-12-31 23:59:59.999999+00:00",
            "9999-12-31 23:59:59.999999",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "a \"quoted\", text\r\nin two lines, ünïcode 💡 and \u{1} control",
            "b''",
            "[1,\n 2]"
        ],
        ["3", null, null, null, null, null, null, null, null, null, null, null, null, null],
        [
            "9223372036854775807",
            "7",
            null,
            "1.0",
            "0.00",
            null,
            "0",
            "1582-10-15",
            "2025-07-01 05:00:00+00:00",
            "1970-01-01 00:00:00",
            null,
            "",
            null,
            "\"text\""
        ],
    ])
}

#[tokio::test]
async fn sums_are_exact_over_many_row_groups() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    let column = |name: &str, kind, sql_type: &str| Column {
        name: name.into(),
        kind,
        sql_type: sql_type.into(),
        nullable: false,
    };
    let columns = [column("id", T::Int, "bigint"), column("amount", T::Numeric, "numeric(12,2)")];
    let schema = schema(&columns);
    let name = "sums.parquet";
    let mut writer =
        PartWriter::new(&destination, name, schema.clone(), Output::of(Format::Parquet)).unwrap();
    let (mut total, mut rows) = (0i128, 0u64);
    for start in (0..300_000i64).step_by(10_000) {
        let some: Vec<Vec<Value>> = (start..start + 10_000)
            .map(|id| {
                let cents = (id * 7_919_317) % 999_999_999_999;
                total += i128::from(cents);
                vec![id.into(), format!("{}.{:02}", cents / 100, cents % 100).into()]
            })
            .collect();
        rows += some.len() as u64;
        writer.write(batch(&schema, &some)).await.unwrap();
    }
    let written = writer.finish().await.unwrap();
    let found = read(&folder.path().join(name)).await;
    assert_eq!(written.rows, rows);
    assert_eq!(found["count"], rows);
    assert_eq!(found["groups"], 2);
    assert_eq!(found["sum"], format!("{}.{:02}", total / 100, total % 100));
}

#[tokio::test]
async fn a_decimal_without_precision_is_a_decimal_in_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    let column = |name: &str, kind| Column {
        name: name.into(),
        kind,
        sql_type: String::new(),
        nullable: true,
    };
    let columns = [column("branch", T::Text), column("amount", T::Numeric)];
    let rows: Vec<Vec<Value>> = vec![
        vec!["a".into(), "123456789012345678.91".into()],
        vec!["b".into(), "-0.5".into()],
        vec!["c".into(), Value::Null],
    ];
    let schema = schema_of(&columns, &rows);
    let output = Output::of(Format::Parquet);
    let mut writer = PartWriter::new(&destination, "r.parquet", schema.clone(), output).unwrap();
    writer.write(batch(&schema, &rows)).await.unwrap();
    writer.finish().await.unwrap();
    let found = read(&folder.path().join("r.parquet")).await;
    assert_eq!(found["schema"][1], json!(["amount", "decimal128(38, 2)", true]));
    assert_eq!(found["sum"], "123456789012345678.41");
}
