//! Maps the types of databases to types of Arrow that represent them exactly.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use windlass_core::{Column, ColumnType, Value};

use crate::Format;
use crate::decimal::{Decimal, MAX_DIGITS, MAX_DIGITS_128};

/// Marks a text column as JSON, which the JSON formats copy verbatim.
const KIND: &str = "windlass.kind";
const JSON: &str = "json";

/// The Arrow schema of a part with these columns.
///
/// Decimals with a precision stay decimals, in 128 bits up to 38 digits and in 256 bits up to 76. A decimal without a
/// precision is text; [`schema_of`] finds one for a result. Integers have 64 bits, unsigned if the database type is.
/// Dates are days. Timestamps are microseconds, in UTC if the type has a time zone. Arrays of PostgreSQL are lists.
/// UUIDs, JSON and all other types are text.
pub fn schema(columns: &[Column]) -> SchemaRef {
    build(columns, |_, column| data_type(column))
}

/// The same for a result whose rows are all known: a decimal without a precision gets 38 digits, or 76 if necessary, and
/// the greatest number of decimal places of its values. So the type does not depend on the size of a sum.
pub fn schema_of(columns: &[Column], rows: &[Vec<Value>]) -> SchemaRef {
    build(columns, |place, column| {
        let declared = data_type(column);
        let is_open = column.kind == ColumnType::Numeric && declared == DataType::Utf8;
        let values = || rows.iter().map(|row| row.get(place).unwrap_or(&Value::Null));
        if is_open { smallest(values()).unwrap_or(declared) } else { declared }
    })
}

/// The columns as a format writes them: arrays are lists in Parquet, and JSON in the text formats.
pub fn columns_in(format: Format, columns: Vec<Column>) -> Vec<Column> {
    let written = |column: Column| match element(&column) {
        Some(_) if format != Format::Parquet => Column { kind: ColumnType::Json, ..column },
        _ => column,
    };
    columns.into_iter().map(written).collect()
}

/// The elements of an array of PostgreSQL, as a column of their type. `None` for other columns.
fn element(column: &Column) -> Option<Column> {
    let sql_type = column.sql_type.strip_suffix("[]")?;
    let kind = match sql_type {
        "smallint" | "integer" | "bigint" => ColumnType::Int,
        "real" | "double precision" => ColumnType::Float,
        "boolean" => ColumnType::Bool,
        "bytea" => ColumnType::Bytes,
        "date" => ColumnType::Date,
        "json" | "jsonb" => ColumnType::Json,
        timestamp if timestamp.starts_with("timestamp ") => ColumnType::Timestamp,
        _ => ColumnType::Text,
    };
    let (name, sql_type) = ("element".to_owned(), sql_type.to_owned());
    Some(Column { name, kind, sql_type, nullable: true })
}

/// The name of a column's type in manifests and errors, such as `decimal(12,2)`.
pub fn type_name(field: &Field) -> String {
    match field.data_type() {
        DataType::Boolean => "bool".into(),
        DataType::Int64 => "int64".into(),
        DataType::UInt64 => "uint64".into(),
        DataType::Float64 => "float64".into(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            format!("decimal({precision},{scale})")
        }
        DataType::Date32 => "date".into(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp with time zone".into(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp".into(),
        DataType::Binary => "bytes".into(),
        DataType::Utf8 if is_json(field) => JSON.into(),
        DataType::Utf8 => "text".into(),
        DataType::List(element) => format!("list of {}", type_name(element)),
        other => other.to_string(),
    }
}

/// Whether a text column is JSON.
pub(crate) fn is_json(field: &Field) -> bool {
    field.metadata().get(KIND).is_some_and(|kind| kind == JSON)
}

fn build(columns: &[Column], data_type: impl Fn(usize, &Column) -> DataType) -> SchemaRef {
    let fields =
        columns.iter().enumerate().map(|(place, column)| field(column, data_type(place, column)));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn field(column: &Column, data_type: DataType) -> Field {
    let field = Field::new(&column.name, data_type, column.nullable);
    match column.kind {
        ColumnType::Json => field.with_metadata(HashMap::from([(KIND.into(), JSON.into())])),
        _ => field,
    }
}

fn data_type(column: &Column) -> DataType {
    let sql_type = column.sql_type.to_ascii_lowercase();
    match column.kind {
        ColumnType::Bool => DataType::Boolean,
        // Every reader of Parquet supports unsigned 64-bit integers, and they are faster than decimals.
        ColumnType::Int if sql_type.contains("unsigned") || sql_type.starts_with("bit") => {
            DataType::UInt64
        }
        ColumnType::Int => DataType::Int64,
        ColumnType::Float => DataType::Float64,
        ColumnType::Numeric => decimal(&sql_type).unwrap_or(DataType::Utf8),
        ColumnType::Date => DataType::Date32,
        ColumnType::Timestamp => {
            // MySQL's `timestamp` is an instant. PostgreSQL always adds with or without time zone.
            let zoned = sql_type.starts_with("timestamp") && !sql_type.contains("without");
            DataType::Timestamp(TimeUnit::Microsecond, zoned.then(|| "UTC".into()))
        }
        ColumnType::Bytes => DataType::Binary,
        ColumnType::Other => match element(column) {
            Some(element) => {
                let data_type = data_type(&element);
                DataType::List(Arc::new(field(&element, data_type)))
            }
            None => DataType::Utf8,
        },
        ColumnType::Text | ColumnType::Uuid | ColumnType::Json => DataType::Utf8,
    }
}

/// The type of `numeric(12,2)`. `None` without a precision, or if it is too large.
fn decimal(sql_type: &str) -> Option<DataType> {
    let (_, rest) = sql_type.split_once('(')?;
    let (arguments, _) = rest.split_once(')')?;
    let (precision, scale) = arguments.split_once(',').unwrap_or((arguments, "0"));
    let precision: i32 = precision.trim().parse().ok()?;
    let scale: i32 = scale.trim().parse().ok()?;
    // PostgreSQL allows a negative scale and a scale above the precision, Parquet does not. With more digits the
    // same numbers fit.
    let (precision, scale) = (precision.max(scale) - scale.min(0), scale.max(0));
    of_digits(usize::try_from(precision).ok()?, usize::try_from(scale).ok()?)
}

fn of_digits(precision: usize, scale: usize) -> Option<DataType> {
    let (digits, scale) = (u8::try_from(precision).ok()?, i8::try_from(scale).ok()?);
    match precision {
        0 => None,
        1..=MAX_DIGITS_128 => Some(DataType::Decimal128(digits, scale)),
        _ if precision <= MAX_DIGITS => Some(DataType::Decimal256(digits, scale)),
        _ => None,
    }
}

/// The smallest decimal type for all of these values. `None` if there is none.
fn smallest<'a>(values: impl Iterator<Item = &'a Value>) -> Option<DataType> {
    let (mut whole, mut scale) = (1, 0);
    for value in values.filter(|value| !value.is_null()) {
        let text = value.to_text()?;
        let decimal = Decimal::parse(&text)?;
        whole = whole.max(decimal.whole_digits());
        scale = scale.max(decimal.scale());
    }
    let precision = if whole + scale <= MAX_DIGITS_128 { MAX_DIGITS_128 } else { MAX_DIGITS };
    if whole + scale > MAX_DIGITS { None } else { of_digits(precision, scale) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: ColumnType, sql_type: &str) -> Column {
        Column { name: "c".into(), kind, sql_type: sql_type.into(), nullable: true }
    }

    fn named(kind: ColumnType, sql_type: &str) -> String {
        type_name(schema(&[column(kind, sql_type)]).field(0))
    }

    #[test]
    fn types_are_mapped_exactly() {
        use ColumnType as T;
        for (kind, sql_type, name) in [
            (T::Numeric, "numeric(12,2)", "decimal(12,2)"),
            (T::Numeric, "DECIMAL( 38 , 10 )", "decimal(38,10)"),
            (T::Numeric, "decimal(10,2) unsigned", "decimal(10,2)"),
            (T::Numeric, "numeric(60,4)", "decimal(60,4)"),
            (T::Numeric, "numeric(5)", "decimal(5,0)"),
            (T::Numeric, "numeric(3,-2)", "decimal(5,0)"),
            (T::Numeric, "numeric(3,5)", "decimal(5,5)"),
            (T::Numeric, "numeric", "text"),
            (T::Numeric, "numeric(100,2)", "text"),
            (T::Int, "bigint", "int64"),
            (T::Int, "bigint(20) unsigned", "uint64"),
            (T::Timestamp, "timestamp with time zone", "timestamp with time zone"),
            (T::Timestamp, "timestamp(3) with time zone", "timestamp with time zone"),
            (T::Timestamp, "timestamp without time zone", "timestamp"),
            (T::Timestamp, "datetime(6)", "timestamp"),
            (T::Timestamp, "timestamp(6)", "timestamp with time zone"),
            (T::Date, "date", "date"),
            (T::Uuid, "uuid", "text"),
            (T::Json, "jsonb", "json"),
            (T::Bytes, "bytea", "bytes"),
            (T::Other, "inet", "text"),
            (T::Other, "integer[]", "list of int64"),
            (T::Other, "jsonb[]", "list of json"),
            (T::Other, "timestamp with time zone[]", "list of timestamp with time zone"),
            (T::Json, "integer[]", "json"),
            (T::Int, "bit(64)", "uint64"),
        ] {
            assert_eq!(named(kind, sql_type), name, "{sql_type}");
        }
    }

    #[test]
    fn the_decimal_of_a_result_fits_its_values() {
        let found = |values: &[&str]| {
            let rows: Vec<_> = values.iter().map(|text| vec![Value::from(*text)]).collect();
            type_name(schema_of(&[column(ColumnType::Numeric, "numeric")], &rows).field(0))
        };
        assert_eq!(found(&["1.50", "-12345.6789", "0"]), "decimal(38,4)");
        assert_eq!(found(&[]), "decimal(38,0)");
        assert_eq!(found(&[&"9".repeat(39)]), "decimal(76,0)");
        assert_eq!(found(&[&"9".repeat(77)]), "text");
        assert_eq!(found(&["1.5", "NaN"]), "text");
        let mixed = [vec![Value::Null], vec![Value::Int(7)], vec![Value::Float(0.25)]];
        let schema = schema_of(&[column(ColumnType::Numeric, "")], &mixed);
        assert_eq!(type_name(schema.field(0)), "decimal(38,2)");
        let declared = schema_of(&[column(ColumnType::Numeric, "numeric(9,2)")], &mixed);
        assert_eq!(type_name(declared.field(0)), "decimal(9,2)");
    }
}
