//! DynamoDB has no outbox: its streams deliver changes instead.

use super::DynamodbConnection;
use crate::outbox::{Outbox, OutboxType, Relayed, Submitter, Waiting};
use crate::{ConnectorError, Result};
use async_trait::async_trait;
use std::time::Duration;
use windlass_core::problem::{Code, Problem};

#[async_trait]
impl Outbox for DynamodbConnection {
    async fn prepare(&self, _: &[OutboxType]) -> Result<()> {
        Err(not_supported())
    }

    fn ddl(&self) -> &'static str {
        ""
    }

    async fn relay(&self, _: &dyn Submitter) -> Result<Relayed> {
        Err(not_supported())
    }

    async fn waiting(&self, _: u32) -> Result<Option<Vec<Waiting>>> {
        Ok(None)
    }

    async fn changed(&self, timeout: Duration) {
        tokio::time::sleep(timeout).await;
    }
}

fn not_supported() -> ConnectorError {
    let detail = "DynamoDB has no outbox; submit by the API or the command line";
    Problem::new(Code::Configuration, detail).into()
}
