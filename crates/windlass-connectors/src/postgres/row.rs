//! Converts rows of PostgreSQL.

use crate::{ConnectorError, Ledger, Result, array_text};
use windlass_core::{ChunkId, Column, Counts, Cursor, Json, Key, Value};
use windlass_drivers::types::{FromSql, Type};
use windlass_drivers::{Error, ErrorClass, Row};

/// One column of a row.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T> {
    Ok(row.try_get(index).map_err(windlass_drivers::Error::from)?)
}

/// One column of a row as a value, by its type.
pub(super) fn value(row: &Row, index: usize) -> Result<Value> {
    let Some(column) = row.columns().get(index) else {
        return Err(ConnectorError::Unreadable(format!("the row has no column {index}")));
    };
    Ok(match *column.type_() {
        Type::BOOL => get::<Option<bool>>(row, index)?.into(),
        Type::INT2 => get::<Option<i16>>(row, index)?.map(i64::from).into(),
        Type::INT4 => get::<Option<i32>>(row, index)?.into(),
        Type::INT8 => get::<Option<i64>>(row, index)?.into(),
        Type::FLOAT4 => get::<Option<f32>>(row, index)?.map_or(Value::Null, Value::from_f32),
        Type::FLOAT8 => get::<Option<f64>>(row, index)?.into(),
        Type::BYTEA => get::<Option<Vec<u8>>>(row, index)?.into(),
        Type::JSON | Type::JSONB => get::<Option<JsonText>>(row, index)?
            .map_or(Value::Null, |JsonText(json)| Value::Json(json)),
        _ => get::<Option<String>>(row, index)?.into(),
    })
}

/// The first columns of a row as values.
pub(super) fn values(row: &Row, count: usize) -> Result<Vec<Value>> {
    (0..count).map(|index| value(row, index)).collect()
}

/// A row of these columns as values. An array is a JSON array, unless its column is one of the key: keys are
/// compared and stored in the server's own text. An error names the column and the key.
pub(super) fn typed_values(row: &Row, columns: &[Column], key: &[String]) -> Result<Vec<Value>> {
    let typed = |(index, column): (usize, &Column)| {
        let value =
            value(row, index).map_err(|error| undecodable(row, columns, key, column, error))?;
        Ok(match &value {
            Value::Text(text) if !key.contains(&column.name) => {
                array_text::to_json(text, column).map_or(value, Value::Json)
            }
            _ => value,
        })
    };
    columns.iter().enumerate().map(typed).collect()
}

fn undecodable(
    row: &Row,
    columns: &[Column],
    key: &[String],
    column: &Column,
    error: ConnectorError,
) -> ConnectorError {
    let part = |name: &String| {
        let index = columns.iter().position(|column| column.name == *name)?;
        value(row, index).ok()
    };
    let key = Key(key.iter().filter_map(part).collect());
    let message = format!("key {key}, column `{}` ({}): {error}", column.name, column.sql_type);
    Error::new(ErrorClass::Data, message).into()
}

/// The text of a JSON document.
struct JsonText(Json);

impl<'a> FromSql<'a> for JsonText {
    fn from_sql(
        sql_type: &Type,
        raw: &'a [u8],
    ) -> std::result::Result<JsonText, Box<dyn std::error::Error + Sync + Send>> {
        // The binary format of `jsonb` is a version number and the text.
        let text = match (*sql_type == Type::JSONB, raw) {
            (true, [1, text @ ..]) => text,
            (true, _) => return Err("the version of its binary format is unknown".into()),
            (false, text) => text,
        };
        let text = std::str::from_utf8(text)?;
        Ok(JsonText(Json::from_text(text).ok_or("it is not JSON")?))
    }

    fn accepts(sql_type: &Type) -> bool {
        matches!(*sql_type, Type::JSON | Type::JSONB)
    }
}

/// The first columns of a row as a key.
pub(super) fn key(row: &Row, count: usize) -> Result<Key> {
    values(row, count).map(Key)
}

/// A row of the ledger.
pub(super) fn ledger(row: &Row) -> Result<Ledger> {
    Ok(Ledger {
        chunk: ChunkId { job: get(row, 0)?, number: get(row, 1)? },
        epoch: get(row, 2)?,
        nonce: get(row, 11)?,
        commits: get(row, 3)?,
        cursor: Cursor::from_text(get(row, 4)?)?,
        counts: Counts {
            read: get(row, 5)?,
            processed: get(row, 6)?,
            skipped: get(row, 7)?,
            dead: get(row, 8)?,
            conflicts: get(row, 9)?,
        },
        stalls: u32::try_from(get::<i32>(row, 10)?).unwrap_or_default(),
    })
}
