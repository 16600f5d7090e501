//! The columns of a part: which of Arrow's types holds a database's type exactly.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use windlass_core::{Column, ColumnType, Value};

use crate::decimal::{Decimal, MOST_DIGITS, MOST_DIGITS_128};

/// Says of a text column that it holds JSON, which the JSON formats then write as it is.
const KIND: &str = "windlass.kind";
const JSON: &str = "json";

/// The typed columns of a part of these columns.
///
/// Exact decimals stay decimals, in 128 bits up to 38 digits and in 256 up to 76; one without a
/// precision is its exact text (a result's is found by [`schema_of`]). Integers are 64 bits,
/// unsigned where the database says so; dates are days; timestamps are microseconds, in UTC where
/// the type has a zone; UUIDs, JSON and whatever else there is are text.
pub fn schema(columns: &[Column]) -> SchemaRef {
    build(columns, |_, column| data_type(column))
}

/// The same for a small result of which all rows are known: a decimal without a precision has the
/// most digits its type can (38, or 76 where that is not enough), and as many after the point as
/// the value that has the most. So the type does not change with every larger sum.
pub fn schema_of(columns: &[Column], rows: &[Vec<Value>]) -> SchemaRef {
    build(columns, |place, column| {
        let declared = data_type(column);
        let is_open = column.kind == ColumnType::Numeric && declared == DataType::Utf8;
        let values = || rows.iter().map(|row| row.get(place).unwrap_or(&Value::Null));
        if is_open { smallest(values()).unwrap_or(declared) } else { declared }
    })
}

/// A column's type as manifests and errors write it: `decimal(12,2)`.
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
        other => other.to_string(),
    }
}

/// Whether a text column holds JSON.
pub(crate) fn is_json(field: &Field) -> bool {
    field.metadata().get(KIND).is_some_and(|kind| kind == JSON)
}

fn build(columns: &[Column], data_type: impl Fn(usize, &Column) -> DataType) -> SchemaRef {
    let fields = columns.iter().enumerate().map(|(place, column)| {
        let field = Field::new(&column.name, data_type(place, column), column.nullable);
        match column.kind {
            ColumnType::Json => field.with_metadata(HashMap::from([(KIND.into(), JSON.into())])),
            _ => field,
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn data_type(column: &Column) -> DataType {
    let sql_type = column.sql_type.to_ascii_lowercase();
    match column.kind {
        ColumnType::Bool => DataType::Boolean,
        // 64 unsigned bits and not a decimal: every reader of Parquet knows them, and they are
        // as fast as the signed ones.
        ColumnType::Int if sql_type.contains("unsigned") => DataType::UInt64,
        ColumnType::Int => DataType::Int64,
        ColumnType::Float => DataType::Float64,
        ColumnType::Numeric => decimal(&sql_type).unwrap_or(DataType::Utf8),
        ColumnType::Date => DataType::Date32,
        ColumnType::Timestamp => {
            // MySQL's own `timestamp` is a moment; PostgreSQL always says with or without.
            let zoned = sql_type.starts_with("timestamp") && !sql_type.contains("without");
            DataType::Timestamp(TimeUnit::Microsecond, zoned.then(|| "UTC".into()))
        }
        ColumnType::Bytes => DataType::Binary,
        ColumnType::Text | ColumnType::Uuid | ColumnType::Json | ColumnType::Other => {
            DataType::Utf8
        }
    }
}

/// The type of `numeric(12,2)`; `None` where no precision is said, or one that is too large.
fn decimal(sql_type: &str) -> Option<DataType> {
    let (_, rest) = sql_type.split_once('(')?;
    let (arguments, _) = rest.split_once(')')?;
    let (precision, scale) = arguments.split_once(',').unwrap_or((arguments, "0"));
    let precision: i32 = precision.trim().parse().ok()?;
    let scale: i32 = scale.trim().parse().ok()?;
    // PostgreSQL allows a scale below zero and one above the precision; Parquet neither. With more
    // digits the same numbers fit.
    let (precision, scale) = (precision.max(scale) - scale.min(0), scale.max(0));
    of_digits(usize::try_from(precision).ok()?, usize::try_from(scale).ok()?)
}

fn of_digits(precision: usize, scale: usize) -> Option<DataType> {
    let (digits, scale) = (u8::try_from(precision).ok()?, i8::try_from(scale).ok()?);
    match precision {
        0 => None,
        1..=MOST_DIGITS_128 => Some(DataType::Decimal128(digits, scale)),
        _ if precision <= MOST_DIGITS => Some(DataType::Decimal256(digits, scale)),
        _ => None,
    }
}

/// The decimal type that holds all of these; `None` where none does.
fn smallest<'a>(values: impl Iterator<Item = &'a Value>) -> Option<DataType> {
    let (mut whole, mut scale) = (1, 0);
    for value in values.filter(|value| !value.is_null()) {
        let text = value.to_text()?;
        let decimal = Decimal::parse(&text)?;
        whole = whole.max(decimal.whole_digits());
        scale = scale.max(decimal.scale());
    }
    let precision = if whole + scale <= MOST_DIGITS_128 { MOST_DIGITS_128 } else { MOST_DIGITS };
    if whole + scale > MOST_DIGITS { None } else { of_digits(precision, scale) }
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
    fn types_hold_their_database_type_exactly() {
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
        ] {
            assert_eq!(named(kind, sql_type), name, "{sql_type}");
        }
    }

    #[test]
    fn a_result_has_the_decimal_that_holds_it() {
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
