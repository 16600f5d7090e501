//! Converts rows of MySQL.

use super::value::is_invalid_date;
use crate::{ConnectorError, Ledger, Result, Scope};
use windlass_core::problem::Code;
use windlass_core::{
    ChunkId, Column, ColumnType as Kind, Counts, Cursor, Json, Key, Problem, Value,
};
use windlass_drivers::mysql::{self, ColumnType, Row};
use windlass_drivers::{Error, ErrorClass};

/// One column of a row as a value, by its type in the result and in the table.
pub(super) fn value(row: &Row, index: usize, column: Option<&Column>) -> Result<Value> {
    let (Some(cell), Some(info)) = (row.as_ref(index), row.columns_ref().get(index)) else {
        return Err(ConnectorError::Unreadable(format!("the row has no column {index}")));
    };
    let fraction = usize::from(info.decimals());
    let single = info.column_length() == 1;
    Ok(match (cell, info.column_type()) {
        (mysql::Value::NULL, _) => Value::Null,
        // BOOLEAN is an alias of TINYINT(1), which may have other numbers too.
        (mysql::Value::Int(n @ (0 | 1)), ColumnType::MYSQL_TYPE_TINY) if single => {
            Value::Bool(*n == 1)
        }
        (mysql::Value::Int(number), _) => Value::Int(*number),
        (mysql::Value::UInt(number), _) => match i64::try_from(*number) {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Text(number.to_string()),
        },
        (mysql::Value::Float(number), _) => Value::from_f32(*number),
        (mysql::Value::Double(number), _) => Value::Float(*number),
        (mysql::Value::Date(year, month, day, ..), ColumnType::MYSQL_TYPE_DATE) => {
            Value::Text(format!("{year:04}-{month:02}-{day:02}"))
        }
        (mysql::Value::Date(year, month, day, h, m, s, micros), kind) => {
            let zone = if kind == ColumnType::MYSQL_TYPE_TIMESTAMP { "+00" } else { "" };
            let fraction = digits(*micros, fraction);
            Value::Text(format!(
                "{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}{fraction}{zone}"
            ))
        }
        (mysql::Value::Time(negative, days, h, m, s, micros), _) => {
            let sign = if *negative { "-" } else { "" };
            let hours = days * 24 + u32::from(*h);
            Value::Text(format!("{sign}{hours:02}:{m:02}:{s:02}{}", digits(*micros, fraction)))
        }
        (mysql::Value::Bytes(bytes), ColumnType::MYSQL_TYPE_BIT) => {
            let number = bytes.iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
            match i64::try_from(number) {
                Ok(number) if single => Value::Bool(number == 1),
                Ok(number) => Value::Int(number),
                Err(_) => Value::Text(number.to_string()),
            }
        }
        (mysql::Value::Bytes(bytes), ColumnType::MYSQL_TYPE_GEOMETRY) => {
            Value::Bytes(bytes.clone())
        }
        (mysql::Value::Bytes(bytes), kind) => {
            let is_json = kind == ColumnType::MYSQL_TYPE_JSON
                || column.is_some_and(|column| column.kind == Kind::Json);
            let is_number =
                matches!(kind, ColumnType::MYSQL_TYPE_NEWDECIMAL | ColumnType::MYSQL_TYPE_DECIMAL);
            if info.character_set() == BINARY && !is_json && !is_number {
                return Ok(Value::Bytes(bytes.clone()));
            }
            let text = String::from_utf8(bytes.clone())
                .map_err(|_| unreadable(&info.name_str(), "is not UTF-8"))?;
            match Json::from_text(text.as_str()).filter(|_| is_json) {
                Some(json) => Value::Json(json),
                None => Value::Text(text),
            }
        }
    })
}

/// A value that cannot be decoded.
fn unreadable(column: &str, why: &str) -> ConnectorError {
    Error::new(ErrorClass::Data, format!("column `{column}`: the value {why}")).into()
}

/// The character set of binary strings.
pub(super) const BINARY: u16 = 63;

/// The decimal point and this many digits of the fraction.
fn digits(micros: u32, count: usize) -> String {
    match count {
        1..=6 => format!(".{}", &format!("{micros:06}")[..count]),
        _ => String::new(),
    }
}

/// A row of the table's columns as values.
pub(super) fn values(row: &Row, scope: &Scope) -> Result<Vec<Value>> {
    let columns = scope.table.columns.iter().enumerate();
    let values = columns.map(|(index, column)| value(row, index, Some(column)));
    values.collect::<Result<_>>().map_err(|error| with_key(row, scope, &error))
}

/// The error of a row, with the key of its record.
fn with_key(row: &Row, scope: &Scope, error: &ConnectorError) -> ConnectorError {
    let part = |name: &String| {
        let index = scope.table.columns.iter().position(|column| column.name == *name)?;
        value(row, index, scope.table.column(name)).ok()
    };
    let key = Key(scope.key().iter().filter_map(part).collect());
    Error::new(ErrorClass::Data, format!("key {key}, {error}")).into()
}

/// The first columns of a row as a key.
pub(super) fn key(row: &Row, scope: &Scope) -> Result<Key> {
    let value = |(index, name): (usize, &String)| value(row, index, scope.table.column(name));
    let key = Key(scope.key().iter().enumerate().map(value).collect::<Result<_>>()?);
    check_key(&key, scope)?;
    Ok(key)
}

/// The most bytes of an indexed key. The keys of a query may be longer, but MySQL compares only the first bytes of a
/// text when it sorts.
const MAX_KEY_BYTES: usize = 3072;

/// Refuses a key with a text that is too long to be sorted, or with an invalid date. MySQL may store such dates, but
/// they compare with nothing, so the records after them would never be processed.
pub(super) fn check_key(key: &Key, scope: &Scope) -> Result<()> {
    for (name, value) in scope.key().iter().zip(&key.0) {
        let bytes = match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        if bytes > MAX_KEY_BYTES {
            let detail = format!(
                "`{name}` has a value of {bytes} bytes, and a key has at most {MAX_KEY_BYTES}, beyond which the \
                 order of the records is not defined; name another key"
            );
            return Err(Problem::field(Code::Source, "source.key", detail).into());
        }
        let Some(column) = scope.table.column(name) else { continue };
        if let (Kind::Date | Kind::Timestamp, Value::Text(text)) = (column.kind, value)
            && is_invalid_date(text)
        {
            let detail = format!(
                "`{name}` has the invalid date `{text}`, which cannot be a key; correct the row or \
                 name another key"
            );
            return Err(Problem::field(Code::Source, "source.key", detail).into());
        }
    }
    Ok(())
}

/// An integer column of Windlass's own tables.
pub(super) fn int(row: &Row, index: usize) -> Result<i64> {
    match value(row, index, None)? {
        Value::Int(number) => Ok(number),
        Value::Bool(value) => Ok(value.into()),
        Value::Text(text) if text.parse::<i64>().is_ok() => Ok(text.parse().unwrap_or_default()),
        other => Err(ConnectorError::Unreadable(format!("`{other}` is not an integer"))),
    }
}

/// A text column of Windlass's own tables.
pub(super) fn text(row: &Row, index: usize) -> Result<String> {
    match value(row, index, None)? {
        Value::Text(text) => Ok(text),
        // Some servers return names of the catalog as bytes.
        Value::Bytes(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        other => Err(ConnectorError::Unreadable(format!("`{other}` is not a text"))),
    }
}

/// A row of the ledger.
pub(super) fn ledger(row: &Row) -> Result<Ledger> {
    let job = text(row, 0)?;
    let job =
        job.parse().map_err(|_| ConnectorError::Unreadable(format!("`{job}` is not a job")))?;
    Ok(Ledger {
        chunk: ChunkId { job, number: int(row, 1)? },
        epoch: int(row, 2)?,
        nonce: int(row, 11)?,
        commits: int(row, 3)?,
        cursor: Cursor::from_text(&text(row, 4)?)?,
        counts: Counts {
            read: int(row, 5)?,
            processed: int(row, 6)?,
            skipped: int(row, 7)?,
            dead: int(row, 8)?,
            conflicts: int(row, 9)?,
        },
        stalls: u32::try_from(int(row, 10)?).unwrap_or_default(),
    })
}
