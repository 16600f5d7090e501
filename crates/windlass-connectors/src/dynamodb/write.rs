//! The actions of one item: the update of its record, on condition of its version, and its inserts.

use super::cancel::{Action, Purpose};
use super::expression::{Bound, Condition, key_of};
use super::rows;
use super::value::to_attribute;
use super::{DynamodbConnection, LEDGER, invalid_request};
use crate::emitted::TABLE as EMITTED;
use crate::write::may_set;
use crate::{Result, Scope, WriteItem, guard};
use std::collections::HashMap;
use windlass_core::{ChunkId, Row, Value};
use windlass_drivers::dynamodb::sdk::types::{AttributeValue, Put, TransactWriteItem, Update};
use windlass_drivers::{Error, ErrorClass};

/// All actions of an item.
pub(super) async fn actions(
    data: &DynamodbConnection,
    scope: &Scope,
    chunk: ChunkId,
    number: usize,
    item: &WriteItem,
) -> Result<Vec<Action>> {
    let mut actions = Vec::new();
    if !item.change.update.is_empty() {
        actions.push(Action { purpose: Purpose::Item(number), item: update(scope, item)? });
    }
    for insert in &item.change.insert {
        for row in &insert.rows {
            let (purpose, put) = match insert.table.as_str() {
                EMITTED => {
                    let put = Put::builder().table_name(LEDGER);
                    (Purpose::Row, put.set_item(Some(rows::emitted(chunk, row)?)))
                }
                table => (Purpose::Insert(table.to_owned()), self::insert(data, table, row).await?),
            };
            let put = put.build().map_err(|error| invalid_request(&error))?;
            actions.push(Action { purpose, item: TransactWriteItem::builder().put(put).build() });
        }
    }
    Ok(actions)
}

/// The number of rows that an item emits.
pub(super) fn emitted(item: &WriteItem) -> i64 {
    let emitted = item.change.insert.iter().filter(|insert| insert.table == EMITTED);
    emitted.map(|insert| insert.rows.len() as i64).sum()
}

/// The approximate size of an item in its transaction: its new record and its rows.
pub(super) fn size(item: &WriteItem) -> usize {
    let row = |row: &Row| row.iter().map(|(name, value)| name.len() + value.size()).sum::<usize>();
    let inserted =
        item.change.insert.iter().flat_map(|insert| &insert.rows).map(row).sum::<usize>();
    item.record.size() + row(&item.change.update) + inserted
}

/// The version column.
pub(super) fn version(scope: &Scope) -> Result<&str> {
    Ok(scope.job_type.step.version.as_deref().ok_or_else(|| guard::missing(scope))?)
}

/// The condition that the version is still the one that was read and that the record still matches
/// `source.match`, and the assignment that raises the version. A record without a version must still have none,
/// and gets 1.
pub(super) fn guarded(bound: &mut Bound, scope: &Scope, read: &Value) -> Result<(String, String)> {
    let version = bound.name(version(scope)?);
    let one = bound.value(AttributeValue::N("1".to_owned()));
    let (unchanged, raise) = match read {
        Value::Null => {
            let key = scope.key().first().map(|column| bound.name(column)).unwrap_or_default();
            let null = bound.value(AttributeValue::S("NULL".to_owned()));
            let condition = format!(
                "attribute_exists({key}) AND \
                 (attribute_not_exists({version}) OR attribute_type({version}, {null}))"
            );
            (condition, format!("{version} = {one}"))
        }
        read => {
            let read = bound.value(to_attribute(read)?);
            (format!("{version} = {read}"), format!("{version} = {version} + {one}"))
        }
    };
    Ok(match bound.all(&Condition::on_write(scope)?) {
        Some(matches) => (format!("{unchanged} AND {matches}"), raise),
        None => (unchanged, raise),
    })
}

/// Writes the changed columns if the version is still the one that was read.
fn update(scope: &Scope, item: &WriteItem) -> Result<TransactWriteItem> {
    for column in item.change.update.keys() {
        may_set(scope, column)?;
    }
    let mut bound = Bound::default();
    let (condition, raise) = guarded(&mut bound, scope, &item.guard)?;
    let mut set = vec![raise];
    for (column, value) in &item.change.update {
        set.push(format!("{} = {}", bound.name(column), bound.value(to_attribute(value)?)));
    }
    let update = Update::builder()
        .table_name(&scope.table.name)
        .set_key(Some(key_of(scope, &item.key)?))
        .update_expression(format!("SET {}", set.join(", ")))
        .condition_expression(condition)
        .set_expression_attribute_names(bound.names())
        .set_expression_attribute_values(bound.values());
    let update = update.build().map_err(|error| invalid_request(&error))?;
    Ok(TransactWriteItem::builder().update(update).build())
}

/// Inserts a row. Fails if an item with its key exists.
pub(super) async fn insert(
    data: &DynamodbConnection,
    table: &str,
    row: &Row,
) -> Result<windlass_drivers::dynamodb::sdk::types::builders::PutBuilder> {
    let schema = data.schema(table).await?;
    let missing = schema.key.iter().find(|key| row.get(*key).is_none_or(Value::is_null));
    if let Some(key) = missing {
        let message = format!("insert: the key `{key}` of `{table}` is missing");
        return Err(Error::new(ErrorClass::Data, message).into());
    }
    let attribute = |(name, value): (&String, &Value)| Ok((name.clone(), to_attribute(value)?));
    let item = row.iter().map(attribute).collect::<Result<HashMap<_, _>>>()?;
    let mut bound = Bound::default();
    let hash = schema.key.first().map(|key| bound.name(key)).unwrap_or_default();
    let put = Put::builder().table_name(table).set_item(Some(item));
    Ok(put
        .condition_expression(format!("attribute_not_exists({hash})"))
        .set_expression_attribute_names(bound.names()))
}
