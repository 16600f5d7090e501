//! Dry runs. A write cannot be rolled back here, so its effect is computed.

use super::{DynamodbConnection, write};
use crate::{DryRun, Preview, ReadLimits, RecordReader as _, Result, Scope, WriteItem};
use async_trait::async_trait;
use windlass_core::{ChunkId, Columns, JobId, KeySet, Record, Value};

#[async_trait]
impl DryRun for DynamodbConnection {
    /// A write cannot be rolled back here, so the effect of a refresh is computed.
    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
        let version = write::version(scope)?;
        let batch = self
            .read(scope, key_set, ReadLimits::new(Preview::MAX_RECORDS as u32, usize::MAX))
            .await?;
        let raised = |(name, value): (&str, &Value)| match value {
            Value::Int(number) if name == version => Value::Int(number + 1),
            other => other.clone(),
        };
        let preview = |item: crate::Item| {
            let columns: Columns = item.record.iter().map(|(name, _)| name.to_owned()).collect();
            let after = Record::new(columns, item.record.iter().map(raised).collect());
            Preview { key: item.key, before: item.record, after: Some(after) }
        };
        Ok(batch.items.into_iter().map(preview).collect())
    }

    /// A write cannot be rolled back here, so only what needs no database is checked.
    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        let chunk = ChunkId { job: JobId::nil(), number: 0 };
        write::actions(self, scope, chunk, 0, &item).await.map(drop)
    }
}
