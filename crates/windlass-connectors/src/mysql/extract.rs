//! Converts the server's rows directly into batches, without the detour of text for numbers and dates.

use super::row::{BINARY, value};
use super::{Scope, Transaction};
use crate::fan_in::{MAX_BATCH_BYTES, MAX_BATCH_ROWS, data_error};
use crate::sql::Dialect;
use crate::{Result, statement};
use chrono::{Datelike, NaiveDate};
use futures::FutureExt;
use std::borrow::Cow;
use tokio::sync::mpsc::Sender;
use windlass_core::{Column, ColumnType as Kind, KeySet};
use windlass_drivers::mysql::{self, ColumnType, Flow, Row};
use windlass_export::{Cell, DataType, Field, InvalidValue, RecordBatch, RowBuilder};

/// Sends the rows of a key set as batches of these columns.
pub(super) async fn extract(
    transaction: &mut Transaction,
    scope: &Scope,
    key_set: &KeySet,
    columns: &[Column],
    batches: Sender<RecordBatch>,
) -> Result<()> {
    let sql = statement::extract(Dialect::Mysql, scope, key_set, columns);
    let schema = windlass_export::schema(columns);
    let mut builder = RowBuilder::new(schema.clone()).map_err(data_error)?;
    let take = |row: Row| {
        let cell = |index: usize| cell(&row, index, &columns[index], schema.field(index));
        builder.push_with(cell).map_err(data_error)?;
        if builder.rows() < MAX_BATCH_ROWS && builder.bytes() < MAX_BATCH_BYTES {
            return Ok(Flow::More);
        }
        let (batch, batches) = (builder.finish().map_err(data_error)?, batches.clone());
        Ok(Flow::Wait(async move { batches.send(batch).await.is_ok() }.boxed()))
    };
    let streamed: Result<()> = transaction.stream(&sql.text, sql.values(), take).await;
    streamed?;
    let _ = batches.send(builder.finish().map_err(data_error)?).await;
    Ok(())
}

/// Converts a cell directly where it has the type of its field, otherwise by its value.
fn cell<'r>(
    row: &'r Row,
    index: usize,
    column: &Column,
    field: &Field,
) -> std::result::Result<Cell<'r>, InvalidValue> {
    use ColumnType::*;
    let (arrived, info) = (row.as_ref(index), row.columns_ref().get(index));
    let known = match (arrived, info.map(mysql::Column::column_type), field.data_type()) {
        (Some(mysql::Value::NULL), ..) => Some(Cell::Null),
        (Some(mysql::Value::Int(number)), _, DataType::Int64) => Some(Cell::Int(*number)),
        (Some(mysql::Value::Double(number)), _, DataType::Float64) => Some(Cell::Float(*number)),
        (
            Some(mysql::Value::Date(year, month, day, ..)),
            Some(MYSQL_TYPE_DATE),
            DataType::Date32,
        ) => days(*year, *month, *day).map(Cell::Days),
        (Some(mysql::Value::Date(year, month, day, h, m, s, micros)), Some(kind), at)
            if has_zone(at) == Some(kind == MYSQL_TYPE_TIMESTAMP) =>
        {
            let seconds = i64::from(*h) * 3600 + i64::from(*m) * 60 + i64::from(*s);
            days(*year, *month, *day).map(|days| {
                Cell::Micros((i64::from(days) * 86_400 + seconds) * 1_000_000 + i64::from(*micros))
            })
        }
        (Some(mysql::Value::Bytes(bytes)), Some(MYSQL_TYPE_NEWDECIMAL), _) => text(bytes),
        (Some(mysql::Value::Bytes(bytes)), Some(kind), DataType::Utf8)
            if column.kind == Kind::Text
                && matches!(kind, MYSQL_TYPE_VAR_STRING | MYSQL_TYPE_STRING | MYSQL_TYPE_BLOB)
                && info.is_some_and(|info| info.character_set() != BINARY) =>
        {
            text(bytes)
        }
        _ => None,
    };
    let unread = |error: crate::ConnectorError| InvalidValue {
        value: String::new(),
        why: error.to_string(),
    };
    match known {
        Some(cell) => Ok(cell),
        None => Ok(Cell::Value(Cow::Owned(value(row, index, Some(column)).map_err(unread)?))),
    }
}

/// Whether a timestamp field has a time zone. `None` for other fields.
fn has_zone(kind: &DataType) -> Option<bool> {
    match kind {
        DataType::Timestamp(_, zone) => Some(zone.is_some()),
        _ => None,
    }
}

/// The days since 1970. `None` for an invalid date, which MySQL may store.
fn days(year: u16, month: u8, day: u8) -> Option<i32> {
    let date = NaiveDate::from_ymd_opt(year.into(), month.into(), day.into())?;
    Some(date.num_days_from_ce() - EPOCH_DAYS)
}

/// The days from the year 1 to 1970.
const EPOCH_DAYS: i32 = 719_163;

fn text(bytes: &[u8]) -> Option<Cell<'_>> {
    std::str::from_utf8(bytes).ok().map(Cell::Text)
}
