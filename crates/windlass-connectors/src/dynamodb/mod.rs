//! DynamoDB. Chunks are lists of keys instead of key ranges, and a transaction has at most a hundred actions.

mod cancel;
mod catalog;
mod commit;
mod counted;
mod cut;
mod deferred;
mod describe;
mod expression;
mod fan_in;
mod fence;
mod history;
mod job_ledger;
mod outbox;
mod preview;
mod progress;
mod read;
mod records;
mod rows;
mod source;
pub mod value;
mod write;

pub use counted::{Ending, ItemOutcome, KnownOutcomes};
pub use progress::{JobPlan, JobProgress, SegmentPlan};
pub use records::{JOBS, Records, TrackedItem, Written};

use crate::{ConnectorError, Result};
use describe::TableSchema;
use parking_lot::Mutex;
use rand::Rng as _;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use windlass_core::Problem;
use windlass_core::problem::Code;
use windlass_drivers::dynamodb::sdk::config::retry::RetryConfig;
use windlass_drivers::dynamodb::sdk::{Client, config};
use windlass_drivers::dynamodb::{self, SdkConfig};
use windlass_drivers::{Error, ErrorClass};

/// The ledger's table.
const LEDGER: &str = "windlass_ledger";

/// The tables of one account and region.
pub(crate) struct DynamodbConnection {
    /// Retries requests that may be repeated.
    client: Client,
    /// Sends every request once.
    no_retry_client: Client,
    schemas: Mutex<HashMap<String, Arc<TableSchema>>>,
}

impl DynamodbConnection {
    pub(crate) async fn open(url: &str) -> Result<DynamodbConnection> {
        Ok(DynamodbConnection::new(&dynamodb::settings(url).await?))
    }

    fn new(settings: &SdkConfig) -> DynamodbConnection {
        let no_retry =
            config::Builder::from(settings).retry_config(RetryConfig::disabled()).build();
        DynamodbConnection {
            client: Client::new(settings),
            no_retry_client: Client::from_conf(no_retry),
            schemas: Mutex::default(),
        }
    }

    /// The keys and indexes of a table, read once.
    async fn schema(&self, table: &str) -> Result<Arc<TableSchema>> {
        let known = self.schemas.lock().get(table).cloned();
        match known {
            Some(schema) => Ok(schema),
            None => {
                let description = describe::describe_table(self, table).await?;
                Ok(self.remember_schema(table, describe::schema(&description)))
            }
        }
    }

    fn remember_schema(&self, table: &str, schema: TableSchema) -> Arc<TableSchema> {
        let schema = Arc::new(schema);
        self.schemas.lock().insert(table.to_owned(), schema.clone());
        schema
    }
}

/// Waits between retries of a throttled request, each time about twice as long.
#[derive(Default)]
struct ThrottleBackoff {
    retries: u32,
}

impl ThrottleBackoff {
    /// All waits together take about 15 seconds. Then the worker hands the chunk back, and it is
    /// retried later without a limit.
    const MAX_RETRIES: u32 = 11;
    const MIN_DELAY: Duration = Duration::from_millis(20);
    const MAX_DELAY: Duration = Duration::from_secs(3);

    /// Waits before the next retry. An error means that no retry is left.
    async fn wait(&mut self) -> std::result::Result<(), ()> {
        if self.retries == ThrottleBackoff::MAX_RETRIES {
            return Err(());
        }
        let delay = ThrottleBackoff::MIN_DELAY * 2u32.pow(self.retries);
        self.retries += 1;
        // Random, so that writers that collided do not collide again.
        let jitter = rand::rng().random_range(0.5..1.0);
        tokio::time::sleep(delay.min(ThrottleBackoff::MAX_DELAY).mul_f64(jitter)).await;
        Ok(())
    }
}

fn throttled() -> Error {
    let message = "DynamoDB is throttling: its capacity is used up, or other writers write the \
                   same items";
    Error::new(ErrorClass::Busy, message)
}

/// A request lacks a field, which only a bug can cause.
fn invalid_request(error: &dyn std::error::Error) -> Error {
    Error::new(ErrorClass::Other, format!("invalid DynamoDB request: {error}"))
}

fn no_marks() -> ConnectorError {
    let detail = "needs step.sql, which DynamoDB does not support";
    Problem::field(Code::Source, "step.mark", detail).into()
}
