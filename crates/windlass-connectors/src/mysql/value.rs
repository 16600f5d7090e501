//! Converts values for MySQL. MySQL compares a text with a number as floats, and ignores the rest of a text
//! that begins with a number. So values are converted to the kind of the column first, and a value that
//! cannot be converted becomes NULL, which equals nothing.

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat};
use windlass_core::{Column, ColumnType, Value};
#[cfg(feature = "mysql")]
use windlass_drivers::mysql;

/// A value as a parameter of the driver.
#[cfg(feature = "mysql")]
pub(super) fn param(value: &Value) -> mysql::Value {
    match value {
        Value::Null => mysql::Value::NULL,
        Value::Bool(value) => mysql::Value::Int((*value).into()),
        Value::Int(value) => mysql::Value::Int(*value),
        Value::Float(value) => mysql::Value::Double(*value),
        Value::Text(text) => mysql::Value::Bytes(text.as_bytes().to_vec()),
        Value::Bytes(bytes) => mysql::Value::Bytes(bytes.clone()),
        Value::Json(json) => mysql::Value::Bytes(json.text().as_bytes().to_vec()),
    }
}

/// Converts a value to compare it with a column.
pub(crate) fn compared(value: &Value, column: &Column) -> Value {
    let text = || value.to_text().map_or(Value::Null, Value::Text);
    match (column.kind, value) {
        (_, Value::Null) => Value::Null,
        (ColumnType::Int | ColumnType::Bool, value) => integer(value),
        (ColumnType::Float, value) => {
            match value.to_text().and_then(|text| text.parse::<f64>().ok()) {
                // A float of 32 bits is read as it prints, and compared as the server converts it.
                Some(number) if is_single(column) => Value::Float(f64::from(number as f32)),
                Some(number) => Value::Float(number),
                None => Value::Null,
            }
        }
        (ColumnType::Numeric, value) => match value.to_text() {
            Some(text) if is_decimal(&text) => Value::Text(text),
            _ => Value::Null,
        },
        (ColumnType::Date, Value::Text(text)) if is_invalid_date(text) => Value::Text(text.clone()),
        (ColumnType::Date, Value::Text(text)) if text.parse::<NaiveDate>().is_ok() => {
            Value::Text(text.clone())
        }
        (ColumnType::Timestamp, Value::Text(text)) if is_invalid_date(text) => {
            Value::Text(text.clone())
        }
        (ColumnType::Timestamp, Value::Text(text)) => to_utc(text).into(),
        (ColumnType::Date | ColumnType::Timestamp, _) => Value::Null,
        (ColumnType::Bytes, Value::Bytes(bytes)) => Value::Bytes(bytes.clone()),
        (ColumnType::Bytes, Value::Text(text)) => Value::Bytes(text.clone().into_bytes()),
        (ColumnType::Bytes, _) => Value::Null,
        (ColumnType::Text | ColumnType::Uuid | ColumnType::Json | ColumnType::Other, _) => text(),
    }
}

/// The SQL before and after a bound value that is compared with a column.
pub(crate) fn cast(value: &Value, column: &Column) -> (&'static str, String) {
    match (column.kind, value) {
        (ColumnType::Numeric, _) => ("CAST(", format!(" AS {})", decimal(column))),
        // A text here is a number beyond 63 bits. MySQL would convert a parameter of this cast to 63 bits, but not
        // the text of an expression.
        (ColumnType::Int, Value::Text(_)) => ("CAST(CAST(", " AS CHAR) AS UNSIGNED)".to_owned()),
        _ => ("", String::new()),
    }
}

/// The widest decimal type that fits every number of the column, so that a number with more decimal places
/// is not rounded to one of the column's.
pub(super) fn decimal(column: &Column) -> String {
    let digits: Vec<u32> = column
        .sql_type
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let (precision, scale) = match digits.as_slice() {
        [precision, scale, ..] => (*precision, *scale),
        _ => (65, 30),
    };
    let before = precision.saturating_sub(scale);
    format!("DECIMAL(65, {})", 65u32.saturating_sub(before).min(30))
}

/// Converts a value to text to assign it to a column. The server refuses a value that does not fit.
pub(super) fn assigned(value: &Value, column: &Column) -> Option<String> {
    match (column.kind, value) {
        (_, Value::Null) => None,
        // In a JSON column a text is a JSON string, as it is in the records of steps.
        (ColumnType::Json, value) => Some(value.to_json_text()),
        (ColumnType::Bytes, Value::Bytes(bytes)) => Some(hex::encode(bytes)),
        (ColumnType::Bytes, value) => value.to_text().map(hex::encode),
        (ColumnType::Timestamp, Value::Text(text)) => {
            Some(to_utc(text).unwrap_or_else(|| text.clone()))
        }
        (ColumnType::Bool, Value::Text(text)) if text == "true" => Some("1".to_owned()),
        (ColumnType::Bool, Value::Text(text)) if text == "false" => Some("0".to_owned()),
        (_, Value::Bool(value)) if column.kind != ColumnType::Text => {
            Some(i32::from(*value).to_string())
        }
        (_, value) => value.to_text(),
    }
}

/// Whether a date is invalid, such as `0000-00-00` or `2025-00-01`, which old settings allow.
pub(super) fn is_invalid_date(text: &str) -> bool {
    text.get(..4) == Some("0000") || text.get(5..7) == Some("00") || text.get(8..10) == Some("00")
}

/// Converts a timestamp with or without an offset for a session in UTC.
pub(super) fn to_utc(text: &str) -> Option<String> {
    let iso = text.trim().replacen(' ', "T", 1);
    // PostgreSQL's short offset, which is also the form of Windlass's own timestamps.
    let full = if has_short_offset(&iso) { format!("{iso}:00") } else { iso.clone() };
    let utc = match DateTime::parse_from_rfc3339(&full) {
        Ok(time) => time.naive_utc(),
        Err(_) => match iso.parse::<NaiveDateTime>() {
            Ok(time) => time,
            Err(_) => iso.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0)?,
        },
    };
    let text = utc.and_utc().to_rfc3339_opts(SecondsFormat::AutoSi, true);
    Some(text.trim_end_matches('Z').replacen('T', " ", 1))
}

/// Whether a column has floats of 32 bits.
fn is_single(column: &Column) -> bool {
    column.sql_type.to_ascii_lowercase().starts_with("float")
}

fn has_short_offset(iso: &str) -> bool {
    let Some(at) = iso.len().checked_sub(3) else { return false };
    let Some(offset) = iso.get(at..) else { return false };
    iso.contains('T')
        && offset.starts_with(['+', '-'])
        && iso[at..].bytes().skip(1).all(|b| b.is_ascii_digit())
}

fn integer(value: &Value) -> Value {
    match value {
        Value::Int(number) => Value::Int(*number),
        Value::Bool(value) => Value::Int((*value).into()),
        Value::Text(text) => match (text.parse::<i64>(), text.parse::<u64>()) {
            (Ok(number), _) => Value::Int(number),
            (_, Ok(number)) => Value::Text(number.to_string()),
            _ if text == "true" => Value::Int(1),
            _ if text == "false" => Value::Int(0),
            _ => Value::Null,
        },
        // Beyond 53 bits a float does not identify an integer.
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            Value::Int(*number as i64)
        }
        _ => Value::Null,
    }
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    number(whole) && number(part) && !(whole.is_empty() && part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: ColumnType, sql_type: &str) -> Column {
        Column { name: "c".to_owned(), kind, sql_type: sql_type.to_owned(), nullable: false }
    }

    #[test]
    fn values_of_another_kind_become_null() {
        use ColumnType as T;
        let int = |n: i64| Value::Int(n);
        for (kind, given, expected) in [
            (T::Int, Value::from("5"), int(5)),
            (T::Int, Value::from("5abc"), Value::Null),
            (T::Int, Value::from("18446744073709551615"), Value::from("18446744073709551615")),
            (T::Int, Value::Float(2.5), Value::Null),
            (T::Text, int(5), Value::from("5")),
            (T::Bool, Value::from("true"), int(1)),
            (T::Numeric, Value::from("1.50"), Value::from("1.50")),
            (T::Numeric, Value::from("1.5x"), Value::Null),
            (T::Numeric, Value::from("."), Value::Null),
            (T::Date, Value::from("2025-01-31"), Value::from("2025-01-31")),
            (T::Date, Value::from("soon"), Value::Null),
            (T::Date, int(0), Value::Null),
            (T::Bytes, Value::from("a"), Value::Bytes(vec![97])),
            (T::Float, Value::from("1.5"), Value::Float(1.5)),
        ] {
            assert_eq!(compared(&given, &column(kind, "")), expected, "{kind:?} {given:?}");
        }
    }

    #[test]
    fn timestamps_are_converted_to_utc() {
        for (given, expected) in [
            ("2025-01-31 03:00:00+00", "2025-01-31 03:00:00"),
            ("2025-01-31 03:00:00.123456+09", "2025-01-30 18:00:00.123456"),
            ("2025-01-31T03:00:00Z", "2025-01-31 03:00:00"),
            ("2025-01-31T03:00:00.5-05:30", "2025-01-31 08:30:00.500"),
            ("2025-01-31 03:00:00", "2025-01-31 03:00:00"),
            ("2025-01-31", "2025-01-31 00:00:00"),
        ] {
            assert_eq!(to_utc(given).as_deref(), Some(expected));
        }
        assert_eq!(to_utc("2025-02-31"), None);
    }

    #[test]
    fn a_decimal_type_keeps_all_digits_before_the_point() {
        let decimal = |sql_type: &str| decimal(&column(ColumnType::Numeric, sql_type));
        assert_eq!(decimal("decimal(12,2)"), "DECIMAL(65, 30)");
        assert_eq!(decimal("decimal(65,0)"), "DECIMAL(65, 0)");
        assert_eq!(decimal("decimal(50,10)"), "DECIMAL(65, 25)");
    }
}
