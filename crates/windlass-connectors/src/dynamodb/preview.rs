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
        let preview = |item: crate::Item| {
            let next = match &item.guard {
                Value::Int(number) => Value::Int(number + 1),
                Value::Null => Value::Int(1),
                other => other.clone(),
            };
            let others = item.record.iter().filter(|(name, _)| *name != version);
            let mut fields: Vec<(&str, Value)> =
                others.map(|(name, value)| (name, value.clone())).collect();
            fields.push((version, next));
            let columns: Columns = fields.iter().map(|(name, _)| (*name).to_owned()).collect();
            let after = Record::new(columns, fields.into_iter().map(|(_, value)| value).collect());
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
