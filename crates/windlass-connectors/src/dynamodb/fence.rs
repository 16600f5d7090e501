//! Creates the ledger's table, and fences its rows.

use super::expression::Bound;
use super::rows::{self, Row, number};
use super::{DynamodbConnection, LEDGER, ThrottleBackoff, deferred, invalid_request, throttled};
use crate::{ConnectorError, Fence, Fencing, Ledger, LedgerRow, LedgerSchema, Result};
use async_trait::async_trait;
use futures::stream::{self, StreamExt, TryStreamExt};
use std::time::Duration;
use windlass_core::problem::{Code, Problem};
use windlass_core::{ChunkId, Counts, Cursor, JobId};
use windlass_drivers::dynamodb::sdk::error::ProvideErrorMetadata;
use windlass_drivers::dynamodb::sdk::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TableStatus,
};
use windlass_drivers::{Error, ErrorClass};

/// The command that creates the table, for users who may not create it.
pub(super) const DDL: &str = include_str!("../../sql/dynamodb/ledger.sh");

/// The number of chunks that are fenced concurrently.
const FENCE_CONCURRENCY: usize = 16;

/// Creating a table takes some seconds. Its status is polled this often, with this pause, before it is
/// an error.
const MAX_POLLS: u32 = 240;

#[async_trait]
impl LedgerSchema for DynamodbConnection {
    async fn prepare(&self) -> Result<()> {
        let mut found = status(self).await?;
        if found.is_none() {
            create(self).await?;
            found = status(self).await?;
        }
        for _ in 0..MAX_POLLS {
            if found == Some(TableStatus::Active) {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            found = status(self).await?;
        }
        Err(missing("it was created, but is not active after a minute"))
    }

    async fn check_ledger(&self) -> Result<()> {
        status(self).await.map(drop)
    }

    fn ledger_ddl(&self) -> &'static str {
        DDL
    }
}

#[async_trait]
impl Fencing for DynamodbConnection {
    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        let raised: Vec<_> = fences.iter().map(|fence| raise(self, *fence)).collect();
        stream::iter(raised).buffered(FENCE_CONCURRENCY).try_collect().await
    }

    async fn fence_again(&self, ledger: &Ledger) -> Result<Option<Ledger>> {
        let found = read(self, ledger.chunk).await?.map(|(row, _)| row);
        Ok(found.filter(|row| row.epoch == ledger.epoch && row.nonce == ledger.nonce))
    }

    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>> {
        deferred::ledger_rows(self, job, after, limit).await
    }
}
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The status of the table. `None` when it does not exist.
async fn status(data: &DynamodbConnection) -> Result<Option<TableStatus>> {
    match data.client.describe_table().table_name(LEDGER).send().await {
        Ok(described) => Ok(described.table.and_then(|table| table.table_status)),
        Err(error) => match Error::from(error) {
            error if error.class == ErrorClass::Definition => Ok(None),
            error if error.class == ErrorClass::Permission => Err(missing(&error.to_string())),
            error => Err(error.into()),
        },
    }
}

async fn create(data: &DynamodbConnection) -> Result<()> {
    let mut create =
        data.client.create_table().table_name(LEDGER).billing_mode(BillingMode::PayPerRequest);
    for (name, kind) in [("job", KeyType::Hash), ("row", KeyType::Range)] {
        let attribute = AttributeDefinition::builder().attribute_name(name);
        let attribute = attribute.attribute_type(ScalarAttributeType::S).build();
        let key = KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
        create = create
            .attribute_definitions(attribute.map_err(|error| invalid_request(&error))?)
            .key_schema(key.map_err(|error| invalid_request(&error))?);
    }
    match create.send().await {
        Ok(_) => Ok(()),
        // Another process has created it.
        Err(error) if error.code() == Some("ResourceInUseException") => Ok(()),
        Err(error) => match Error::from(error) {
            error if error.class == ErrorClass::Permission => Err(missing(&error.to_string())),
            error => Err(error.into()),
        },
    }
}

pub(super) fn missing(why: &str) -> ConnectorError {
    let detail = format!(
        "the ledger's table `{LEDGER}` cannot be used or created: {why}; \
         run `windlass migrate --print` and have it created"
    );
    Problem::new(Code::Ledger, detail).into()
}

/// The row of a chunk, and its number of commits when its lease fenced it.
async fn read(data: &DynamodbConnection, chunk: ChunkId) -> Result<Option<(Ledger, i64)>> {
    let key = Row::Ledger(chunk).key();
    let found = data.client.get_item().table_name(LEDGER).set_key(Some(key));
    let found = found.consistent_read(true).send().await.map_err(Error::from)?;
    found.item.map(|item| rows::ledger(chunk, &item)).transpose()
}

/// Raises one row. Its new state depends on the old one, so the row is read, and then written on
/// condition that it did not change.
async fn raise(data: &DynamodbConnection, fence: Fence) -> Result<Option<Ledger>> {
    let mut backoff = ThrottleBackoff::default();
    loop {
        let known = read(data, fence.chunk).await?;
        let raised = match &known {
            Some((row, _)) if row.epoch > fence.epoch => return Ok(None),
            Some((row, _)) if row.epoch == fence.epoch => {
                return Ok(Some(row.clone()).filter(|row| row.nonce == fence.nonce));
            }
            // A lost lease without a commit counts as a stall. Any commit resets the count.
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
        backoff.wait().await.map_err(|()| throttled())?;
    }
}

/// Writes a raised row if it did not change since it was read.
async fn write(data: &DynamodbConnection, known: Option<Ledger>, raised: &Ledger) -> Result<bool> {
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
