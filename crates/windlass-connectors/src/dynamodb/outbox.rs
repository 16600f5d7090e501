//! There is no outbox: DynamoDB has streams for what follows a write.

use super::DynamodbData;
use crate::outbox::{Outbox, Relayed, Submitter, Waiting};
use crate::{DataError, Result};
use async_trait::async_trait;
use std::time::Duration;
use windlass_core::problem::{Code, Problem};

#[async_trait]
impl Outbox for DynamodbData {
    async fn prepare(&self) -> Result<()> {
        Err(none())
    }

    fn ddl(&self) -> &'static str {
        ""
    }

    async fn relay(&self, _: &dyn Submitter) -> Result<Relayed> {
        Err(none())
    }

    async fn waiting(&self, _: u32) -> Result<Option<Vec<Waiting>>> {
        Ok(None)
    }

    async fn changed(&self, at_most: Duration) {
        tokio::time::sleep(at_most).await;
    }
}

fn none() -> DataError {
    let detail = "there is no outbox on DynamoDB; submit by the API or the command line";
    Problem::new(Code::Configuration, detail).into()
}
