//! The text formats, to the letter.

use crate::common::{batch, columns, folder_destination, rows, write_extreme};
use serde_json::{Value as Json, json};
use std::io::Read as _;
use windlass_core::Value;
use windlass_export::{Compression, Format, Output, PartWriter, schema};

async fn written(output: Output) -> String {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    write_extreme(&destination, "x", output).await;
    let bytes = destination.get("x").await.unwrap().unwrap();
    if output.compression() == Compression::Gzip {
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        return text;
    }
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn csv_is_exact_and_tells_null_from_empty() {
    let text = written(Output::of(Format::Csv)).await;
    let expected = "id,big,ok,ratio,amount,wide,free,day,at,local,key,note,data,doc\n\
        1,18446744073709551615,true,0.1,9999999999.99,\
        -12345678901234567890123456789012345678901234567890.0123456789,1.10,2024-02-29,\
        2025-01-31T03:00:00.123456Z,2025-01-31T03:00:00,018f3c2a-0000-7000-8000-000000000001,\
        plain,\\x000aff,\"{\"\"a\"\":[1,null,\"\"x\\ny\"\"]}\"\n\
        -9223372036854775808,0,false,-1e300,-0.01,0.0000000001,\
        -123456789012345678901234567890.5,0001-01-01,1969-12-31T23:59:59.999999Z,\
        9999-12-31T23:59:59.999999,ffffffff-ffff-ffff-ffff-ffffffffffff,\
        \"a \"\"quoted\"\", text\r\nin two lines, ünïcode 💡 and \u{1} control\",\\x,\"[1,\n 2]\"\n\
        3,,,,,,,,,,,,,\n\
        9223372036854775807,7,,1.0,0.00,,0,1582-10-15,2025-07-01T05:00:00Z,1970-01-01T00:00:00,,\
        \"\",,\"\"\"text\"\"\"\n";
    assert_eq!(text, expected);
    let gzip = Output::with(Format::Csv, Compression::Gzip).unwrap();
    assert_eq!(written(gzip).await, expected);
}

fn expected_json() -> Vec<Json> {
    vec![
        json!({"id": 1, "big": 18446744073709551615u64, "ok": true, "ratio": 0.1,
            "amount": "9999999999.99",
            "wide": "-12345678901234567890123456789012345678901234567890.0123456789",
            "free": "1.10", "day": "2024-02-29", "at": "2025-01-31T03:00:00.123456Z",
            "local": "2025-01-31T03:00:00", "key": "018f3c2a-0000-7000-8000-000000000001",
            "note": "plain", "data": {"$bytes": "000aff"}, "doc": {"a": [1, null, "x\ny"]}}),
        json!({"id": i64::MIN, "big": 0, "ok": false, "ratio": -1e300, "amount": "-0.01",
            "wide": "0.0000000001", "free": "-123456789012345678901234567890.5",
            "day": "0001-01-01", "at": "1969-12-31T23:59:59.999999Z",
            "local": "9999-12-31T23:59:59.999999", "key": "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "note": "a \"quoted\", text\r\nin two lines, ünïcode 💡 and \u{1} control",
            "data": {"$bytes": ""}, "doc": [1, 2]}),
        json!({"id": 3, "big": null, "ok": null, "ratio": null, "amount": null, "wide": null,
            "free": null, "day": null, "at": null, "local": null, "key": null, "note": null,
            "data": null, "doc": null}),
        json!({"id": i64::MAX, "big": 7, "ok": null, "ratio": 1.0, "amount": "0.00", "wide": null,
            "free": "0", "day": "1582-10-15", "at": "2025-07-01T05:00:00Z",
            "local": "1970-01-01T00:00:00", "key": null, "note": "", "data": null, "doc": "text"}),
    ]
}

#[tokio::test]
async fn jsonl_is_an_object_a_line() {
    for compression in [Compression::None, Compression::Gzip] {
        let text = written(Output::with(Format::Jsonl, compression).unwrap()).await;
        let lines: Vec<Json> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines, expected_json());
        assert!(text.starts_with("{\"id\":1,\"big\":"), "the columns keep their order");
    }
}

#[tokio::test]
async fn json_is_one_array_also_of_nothing() {
    let text = written(Output::of(Format::Json)).await;
    assert_eq!(serde_json::from_str::<Vec<Json>>(&text).unwrap(), expected_json());
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    let schema = schema(&columns());
    let empty = PartWriter::new(&destination, "e", schema, Output::of(Format::Json)).unwrap();
    assert_eq!(empty.finish().await.unwrap().rows, 0);
    let text = destination.get("e").await.unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<Vec<Json>>(&text).unwrap(), Vec::<Json>::new());
}

#[tokio::test]
async fn numbers_that_json_lacks_are_words() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    let schema = schema(&columns());
    let mut row = rows().remove(2);
    for (name, value, word) in [
        ("n", f64::NAN, "NaN"),
        ("i", f64::INFINITY, "Infinity"),
        ("m", f64::NEG_INFINITY, "-Infinity"),
    ] {
        row[3] = Value::Float(value);
        let output = Output::of(Format::Jsonl);
        let mut writer = PartWriter::new(&destination, name, schema.clone(), output).unwrap();
        writer.write(batch(&schema, std::slice::from_ref(&row))).await.unwrap();
        writer.finish().await.unwrap();
        let text = destination.get(name).await.unwrap().unwrap();
        let line: Json = serde_json::from_slice(&text).unwrap();
        assert_eq!(line["ratio"], word);
    }
}
