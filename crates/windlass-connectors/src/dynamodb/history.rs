//! The history of the ledger. The generation of a store is an item in the partition `store#ID`, so that
//! reading it touches no rows of jobs.

use super::expression::{Attributes, Bound};
use super::rows::{self, number};
use super::{DynamodbConnection, LEDGER, deferred};
use crate::{ConnectorError, Ledger, LedgerHistory, Result};
use async_trait::async_trait;
use std::collections::BTreeMap;
use uuid::Uuid;
use windlass_core::JobId;
use windlass_drivers::dynamodb::sdk::error::ProvideErrorMetadata;
use windlass_drivers::dynamodb::sdk::types::AttributeValue;
use windlass_drivers::{Error, ErrorClass};

#[async_trait]
impl LedgerHistory for DynamodbConnection {
    async fn generation(&self, store: Uuid, connection: &str) -> Result<i64> {
        let get = self.client.get_item().table_name(LEDGER).set_key(Some(key(store, connection)));
        match get.consistent_read(true).send().await.map_err(Error::from) {
            Ok(found) => found.item.map_or(Ok(0), |item| rows::int(&item, "generation")),
            Err(error) if error.class == ErrorClass::Definition => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    async fn raise_generation(&self, store: Uuid, connection: &str, generation: i64) -> Result<()> {
        let mut bound = Bound::default();
        let (name, value) = (bound.name("generation"), bound.value(number(generation)));
        let raise = self
            .client
            .update_item()
            .table_name(LEDGER)
            .set_key(Some(key(store, connection)))
            .update_expression(format!("SET {name} = {value}"))
            .condition_expression(format!("attribute_not_exists({name}) OR {name} < {value}"))
            .set_expression_attribute_names(bound.names())
            .set_expression_attribute_values(bound.values());
        match raise.send().await {
            // A higher generation stays.
            Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(()),
            sent => sent.map(drop).map_err(|error| Error::from(error).into()),
        }
    }

    async fn rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<Ledger>> {
        match deferred::ledger_rows(self, job, after, limit).await {
            Err(error) if error.class() == Some(ErrorClass::Definition) => Ok(Vec::new()),
            rows => Ok(rows?.into_iter().map(|row| row.ledger).collect()),
        }
    }

    async fn jobs(&self) -> Result<Vec<(JobId, u64)>> {
        let mut found: BTreeMap<JobId, u64> = BTreeMap::new();
        let mut from = None;
        loop {
            let mut bound = Bound::default();
            let (job, row) = (bound.name("job"), bound.name("row"));
            let ledger = bound.value(AttributeValue::S("ledger#".to_owned()));
            let scan = self
                .client
                .scan()
                .table_name(LEDGER)
                .projection_expression(job)
                .filter_expression(format!("begins_with({row}, {ledger})"))
                .set_expression_attribute_names(bound.names())
                .set_expression_attribute_values(bound.values())
                .set_exclusive_start_key(from);
            let page = match scan.send().await.map_err(Error::from) {
                Err(error) if error.class == ErrorClass::Definition => return Ok(Vec::new()),
                page => page?,
            };
            for item in page.items.unwrap_or_default() {
                let job = rows::text(&item, "job")?;
                let unreadable = || ConnectorError::Unreadable(format!("`{job}` is not a job"));
                *found.entry(job.parse().map_err(|_| unreadable())?).or_default() += 1;
            }
            match page.last_evaluated_key {
                Some(last) => from = Some(last),
                None => return Ok(found.into_iter().collect()),
            }
        }
    }
}

fn key(store: Uuid, connection: &str) -> Attributes {
    Attributes::from([
        ("job".to_owned(), AttributeValue::S(format!("store#{store}"))),
        ("row".to_owned(), AttributeValue::S(format!("store#{connection}"))),
    ])
}
