//! What COPY of Redshift needs: the types of the staging table for Parquet files, and its form of a manifest.

use arrow_schema::{DataType, Field};
use serde_json::json;

use crate::{Compression, Destination, Error, Format, Output, Result};

/// The format of files for COPY. Redshift documents gzip, Snappy and bzip2 as compressions, but not Zstandard.
pub fn redshift_output() -> Result<Output> {
    Output::with(Format::Parquet, Compression::None)
}

/// The type in Redshift that reads a column of a Parquet file without a conversion.
pub fn redshift_type(field: &Field) -> Result<String> {
    Ok(match field.data_type() {
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int64 => "bigint".to_owned(),
        DataType::Float64 => "double precision".to_owned(),
        DataType::Decimal128(precision, scale) => format!("numeric({precision},{scale})"),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(..) => "timestamp".to_owned(),
        DataType::Utf8 => "varchar(65535)".to_owned(),
        _ => {
            let (name, kind) = (field.name(), crate::type_name(field));
            return Err(Error::Invalid(format!(
                "column `{name}` is of type {kind}, which COPY cannot load; convert it in the SELECT, \
                 or leave it out"
            )));
        }
    })
}

/// Writes a manifest of these objects, given by URL and size, and returns its URL.
pub async fn write_redshift_manifest(
    destination: &Destination,
    name: &str,
    objects: impl IntoIterator<Item = (String, u64)>,
) -> Result<String> {
    let entry = |(url, bytes): (String, u64)| json!({"url": url, "mandatory": true, "meta": {"content_length": bytes}});
    let entries: Vec<_> = objects.into_iter().map(entry).collect();
    destination.put(name, json!({"entries": entries}).to_string().into_bytes()).await?;
    Ok(destination.object_url(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use windlass_core::{Column, ColumnType as T};

    #[test]
    fn each_type_has_one_that_reads_it() {
        let of = |kind, sql_type: &str| {
            let column =
                Column { name: "c".into(), kind, sql_type: sql_type.into(), nullable: true };
            redshift_type(schema(&[column]).field(0))
        };
        for (kind, sql_type, expected) in [
            (T::Bool, "boolean", "boolean"),
            (T::Int, "integer", "bigint"),
            (T::Float, "real", "double precision"),
            (T::Numeric, "numeric(12,2)", "numeric(12,2)"),
            (T::Numeric, "numeric", "varchar(65535)"),
            (T::Date, "date", "date"),
            (T::Timestamp, "timestamp with time zone", "timestamp"),
            (T::Uuid, "uuid", "varchar(65535)"),
            (T::Json, "jsonb", "varchar(65535)"),
        ] {
            assert_eq!(of(kind, sql_type).unwrap(), expected, "{sql_type}");
        }
        for (kind, sql_type) in [
            (T::Bytes, "bytea"),
            (T::Other, "integer[]"),
            (T::Int, "bigint unsigned"),
            (T::Numeric, "numeric(60,2)"),
        ] {
            let error = of(kind, sql_type).unwrap_err().to_string();
            assert!(error.contains("column `c` is of type"), "{error}");
        }
    }
}
