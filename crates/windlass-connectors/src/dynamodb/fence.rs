//! The ledger's table, and raising its rows to an epoch.

use super::expression::Bound;
use super::rows::{self, Row, number};
use super::{DynamodbData, LEDGER, Patience, throttled, unbuilt};
use crate::{DataError, Fence, Ledger, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use std::time::Duration;
use windlass_core::problem::{Code, Problem};
use windlass_core::{Counts, Cursor};
use windlass_drivers::dynamodb::sdk::error::ProvideErrorMetadata;
use windlass_drivers::dynamodb::sdk::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TableStatus,
};
use windlass_drivers::{Class, Error};

/// What makes the table, for those who may not.
pub(super) const DDL: &str = include_str!("../../sql/dynamodb/ledger.sh");

/// Chunks that are fenced side by side.
const SIDE_BY_SIDE: usize = 16;

/// How often a new table is looked at before somebody is told, and how long between two looks. It
/// takes some seconds.
const LOOKS: u32 = 240;
const BETWEEN: Duration = Duration::from_millis(250);

/// Makes the table where it is missing, and waits until it can be used.
pub(super) async fn prepare(data: &DynamodbData) -> Result<()> {
    let mut found = status(data).await?;
    if found.is_none() {
        create(data).await?;
        found = status(data).await?;
    }
    for _ in 0..LOOKS {
        if found == Some(TableStatus::Active) {
            return Ok(());
        }
        tokio::time::sleep(BETWEEN).await;
        found = status(data).await?;
    }
    Err(missing("it was made, and is not ready after a minute"))
}

/// Whether the table can be looked at. Whether it may be made is known only by making it.
pub(super) async fn check(data: &DynamodbData) -> Result<()> {
    status(data).await.map(drop)
}

/// How the table is; none where there is none.
async fn status(data: &DynamodbData) -> Result<Option<TableStatus>> {
    match data.client.describe_table().table_name(LEDGER).send().await {
        Ok(described) => Ok(described.table.and_then(|table| table.table_status)),
        Err(error) => match Error::from(error) {
            error if error.class == Class::Definition => Ok(None),
            error if error.class == Class::Permission => Err(missing(&error.to_string())),
            error => Err(error.into()),
        },
    }
}

async fn create(data: &DynamodbData) -> Result<()> {
    let mut create =
        data.client.create_table().table_name(LEDGER).billing_mode(BillingMode::PayPerRequest);
    for (name, kind) in [("job", KeyType::Hash), ("row", KeyType::Range)] {
        let attribute = AttributeDefinition::builder().attribute_name(name);
        let attribute = attribute.attribute_type(ScalarAttributeType::S).build();
        let key = KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
        create = create
            .attribute_definitions(attribute.map_err(|error| unbuilt(&error))?)
            .key_schema(key.map_err(|error| unbuilt(&error))?);
    }
    match create.send().await {
        Ok(_) => Ok(()),
        // Another process was faster.
        Err(error) if error.code() == Some("ResourceInUseException") => Ok(()),
        Err(error) => match Error::from(error) {
            error if error.class == Class::Permission => Err(missing(&error.to_string())),
            error => Err(error.into()),
        },
    }
}

fn missing(why: &str) -> DataError {
    let detail = format!(
        "the ledger's table `{LEDGER}` cannot be used or made: {why}; \
         run `windlass migrate --print` and have it created"
    );
    Problem::new(Code::Ledger, detail).into()
}

/// Raises several rows, and reads them.
pub(super) async fn fence(data: &DynamodbData, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
    let raised: Vec<_> = fences.iter().map(|fence| raise(data, *fence)).collect();
    stream::iter(raised).buffered(SIDE_BY_SIDE).try_collect().await
}

/// Raises one row: what it becomes depends on what it is, so it is read and then written if it is
/// still that.
async fn raise(data: &DynamodbData, fence: Fence) -> Result<Option<Ledger>> {
    let mut patience = Patience::default();
    loop {
        let key = Row::Ledger(fence.chunk).key();
        let found = data.client.get_item().table_name(LEDGER).set_key(Some(key));
        let found = found.consistent_read(true).send().await.map_err(Error::from)?;
        let known = found.item.map(|item| rows::ledger(fence.chunk, &item)).transpose()?;
        let raised = match &known {
            Some((row, _)) if row.epoch > fence.epoch => return Ok(None),
            Some((row, _)) if row.epoch == fence.epoch => {
                return Ok(Some(row.clone()).filter(|row| row.nonce == fence.nonce));
            }
            // A claim that was lost and saw no commit is a stall; any commit since ends the series.
            Some((row, opened)) => Ledger {
                epoch: fence.epoch,
                nonce: fence.nonce,
                stalls: match row.commits > *opened {
                    true => 0,
                    false => row.stalls + u32::from(fence.lost),
                },
                ..row.clone()
            },
            None => Ledger {
                chunk: fence.chunk,
                epoch: fence.epoch,
                nonce: fence.nonce,
                commits: 0,
                cursor: Cursor::Start,
                counts: Counts::default(),
                stalls: u32::from(fence.lost),
            },
        };
        if write(data, known.map(|(row, _)| row), &raised).await? {
            return Ok(Some(raised));
        }
        patience.wait().await.map_err(|()| throttled())?;
    }
}

/// Writes a raised row, if nobody has changed it since it was read.
async fn write(data: &DynamodbData, known: Option<Ledger>, raised: &Ledger) -> Result<bool> {
    let mut bound = Bound::default();
    let mut set = Vec::new();
    let own = [
        ("epoch", number(raised.epoch)),
        ("nonce", number(raised.nonce)),
        ("stalls", number(raised.stalls.into())),
        ("opened_at_commits", number(raised.commits)),
    ];
    for (name, value) in own.into_iter().chain(rows::progress(raised)) {
        set.push(format!("{} = {}", bound.name(name), bound.value(value)));
    }
    let epoch = bound.name("epoch");
    let condition = match known {
        None => format!("attribute_not_exists({epoch})"),
        Some(row) => format!(
            "{epoch} = {} AND {} = {} AND {} = {}",
            bound.value(number(row.epoch)),
            bound.name("nonce"),
            bound.value(number(row.nonce)),
            bound.name("commits"),
            bound.value(number(row.commits)),
        ),
    };
    let update = data
        .client
        .update_item()
        .table_name(LEDGER)
        .set_key(Some(Row::Ledger(raised.chunk).key()))
        .update_expression(format!("SET {}", set.join(", ")))
        .condition_expression(condition)
        .set_expression_attribute_names(bound.names())
        .set_expression_attribute_values(bound.values());
    match update.send().await {
        Ok(_) => Ok(true),
        Err(error) => match error.code() {
            Some("ConditionalCheckFailedException" | "TransactionConflictException") => Ok(false),
            _ => Err(Error::from(error).into()),
        },
    }
}
