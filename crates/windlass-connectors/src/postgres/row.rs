//! Converts rows of PostgreSQL.

use crate::{ConnectorError, Ledger, Result};
use windlass_core::{ChunkId, Counts, Cursor, Key, Value};
use windlass_drivers::Row;
use windlass_drivers::types::{FromSql, Type};

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
        Type::FLOAT4 => get::<Option<f32>>(row, index)?.map(f64::from).into(),
        Type::FLOAT8 => get::<Option<f64>>(row, index)?.into(),
        Type::BYTEA => get::<Option<Vec<u8>>>(row, index)?.into(),
        Type::JSON | Type::JSONB => {
            get::<Option<serde_json::Value>>(row, index)?.map_or(Value::Null, Value::Json)
        }
        _ => get::<Option<String>>(row, index)?.into(),
    })
}

/// The first columns of a row as values.
pub(super) fn values(row: &Row, count: usize) -> Result<Vec<Value>> {
    (0..count).map(|index| value(row, index)).collect()
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
