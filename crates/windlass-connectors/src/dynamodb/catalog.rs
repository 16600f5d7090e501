//! Tables and server state.

use super::{DynamodbConnection, describe};
use crate::{Catalog, Result};
use async_trait::async_trait;
use windlass_core::Table;
use windlass_core::problem::{Code, Problem};

#[async_trait]
impl Catalog for DynamodbConnection {
    async fn tables(&self) -> Result<Vec<String>> {
        describe::tables(self).await
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        describe::describe(self, source).await
    }

    async fn measure(&self, _: &str) -> Result<Option<f64>> {
        Err(Problem::field(Code::Source, "health", "DynamoDB does not support SQL").into())
    }
}
