//! COPY from a manifest of Parquet files: reads them, compares them with the table as Redshift does, and writes INSERTs.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use super::dialect::{Copy, Refusal};

/// The columns of a table in order: name, and type with its arguments.
pub(super) fn columns_sql(table: &str) -> String {
    format!(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute \
         WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
}

/// The INSERTs that stand for a COPY.
pub(super) async fn inserts(
    s3: SocketAddr,
    copy: Copy,
    columns: Vec<Vec<String>>,
) -> Result<String, Refusal> {
    let read = move || {
        let manifest = object(s3, &copy.manifest).ok_or_else(|| {
            failed(&format!("The specified manifest does not exist: {}", copy.manifest))
        })?;
        let mut rows = Vec::new();
        for (url, mandatory, length) in entries(&manifest)? {
            match object(s3, &url) {
                None if mandatory => {
                    return Err(failed(&format!(
                        "Mandatory url is not present in manifest listing: {url}"
                    )));
                }
                None => {}
                Some(bytes) if bytes.len() as u64 != length => {
                    return Err(failed(&format!(
                        "content_length of {url} does not match the file"
                    )));
                }
                Some(bytes) => rows.extend(file_rows(&url, bytes, &columns)?),
            }
        }
        if rows.is_empty() {
            return Ok("SELECT 1 WHERE false".to_owned());
        }
        Ok(format!("INSERT INTO {} VALUES {}", copy.table, rows.join(", ")))
    };
    tokio::task::spawn_blocking(read).await.expect("COPY panicked")
}

/// The entries of a manifest: URL, whether the file must exist, and its size, which Parquet needs.
fn entries(manifest: &[u8]) -> Result<Vec<(String, bool, u64)>, Refusal> {
    let manifest: Value = serde_json::from_slice(manifest).map_err(|error| {
        failed(&format!("Manifest file is not in correct json format: {error}"))
    })?;
    let listed = manifest["entries"].as_array().filter(|entries| !entries.is_empty());
    let listed = listed.ok_or_else(|| failed("Manifest file has no entries"))?;
    let entry = |entry: &Value| {
        let fields = entry.as_object().into_iter().flatten();
        if let Some((unknown, _)) = fields
            .into_iter()
            .find(|(name, _)| !["url", "mandatory", "meta"].contains(&name.as_str()))
        {
            return Err(failed(&format!("Manifest entry has an unknown field: {unknown}")));
        }
        let url = entry["url"].as_str().ok_or_else(|| failed("Manifest entry lacks url"))?;
        let length = entry["meta"]["content_length"].as_u64();
        let length = length.ok_or_else(|| {
            failed("File list entry must have meta with content_length for columnar formats")
        })?;
        Ok((url.to_owned(), entry["mandatory"].as_bool().unwrap_or(false), length))
    };
    listed.iter().map(entry).collect()
}

/// The rows of a file as the VALUES of an INSERT.
fn file_rows(url: &str, bytes: Vec<u8>, columns: &[Vec<String>]) -> Result<Vec<String>, Refusal> {
    let invalid =
        |error: &dyn std::fmt::Display| failed(&format!("Spectrum Scan Error: {url}: {error}"));
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))
        .map_err(|error| invalid(&error))?;
    let fields = builder.schema().fields().clone();
    if fields.len() != columns.len() {
        let (found, expected) = (fields.len(), columns.len());
        return Err(invalid(&format!(
            "the file has {found} columns, but the target table has {expected}"
        )));
    }
    for (field, column) in fields.iter().zip(columns) {
        if !is_readable(field, &column[1]) {
            let (kind, sql_type) = (field.data_type(), &column[1]);
            return Err(invalid(&format!(
                "incompatible Parquet schema for column '{}'. Column type: {sql_type}, Parquet schema: {kind}",
                column[0]
            )));
        }
    }
    let reader = builder.build().map_err(|error| invalid(&error))?;
    let mut rows = Vec::new();
    for batch in reader {
        let batch: RecordBatch = batch.map_err(|error| invalid(&error))?;
        for row in 0..batch.num_rows() {
            let cells: Vec<String> =
                batch.columns().iter().map(|column| literal(column.as_ref(), row)).collect();
            rows.push(format!("({})", cells.join(", ")));
        }
    }
    Ok(rows)
}

/// Whether Redshift reads such a column of a file into a column of this type.
fn is_readable(field: &Field, sql_type: &str) -> bool {
    match field.data_type() {
        DataType::Boolean => sql_type == "boolean",
        DataType::Int64 => sql_type == "bigint",
        DataType::Float64 => sql_type == "double precision",
        DataType::Decimal128(precision, scale) => {
            sql_type == format!("numeric({precision},{scale})")
        }
        DataType::Date32 => sql_type == "date",
        DataType::Timestamp(..) => sql_type == "timestamp without time zone",
        DataType::Utf8 => sql_type.starts_with("character"),
        _ => false,
    }
}

/// A value of a column. The types are those that [`is_readable`] accepts.
fn literal(column: &dyn Array, row: usize) -> String {
    if column.is_null(row) {
        return "NULL".to_owned();
    }
    match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => format!("'{}'", column.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(..) => column.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Date32 => {
            let days = column.as_primitive::<Date32Type>().value(row);
            format!("date '1970-01-01' + {days}")
        }
        DataType::Timestamp(..) => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
            format!("timestamp '1970-01-01' + {micros} * interval '1 microsecond'")
        }
        _ => {
            let text = column.as_string::<i32>().value(row);
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
        }
    }
}

fn failed(message: &str) -> Refusal {
    Refusal::new("XX000", message)
}

/// The bytes of an object by its `s3://` URL. `None` if there is none.
fn object(s3: SocketAddr, url: &str) -> Option<Vec<u8>> {
    let path = url.strip_prefix("s3://")?;
    let mut stream = TcpStream::connect(s3).expect("failed to connect to moto");
    // moto refuses a request for a private object that names no key, and checks no signature.
    let signed = "AWS4-HMAC-SHA256 Credential=windlass/20260101/us-east-1/s3/aws4_request, \
                  SignedHeaders=host, Signature=0";
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {s3}\r\nConnection: close\r\nAuthorization: {signed}\r\n\r\n"
    )
    .expect("failed to send a request to moto");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("failed to read moto's answer");
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let is_found = answer.starts_with(b"HTTP/1.1 200");
    is_found.then(|| answer.split_off(end + 4))
}
