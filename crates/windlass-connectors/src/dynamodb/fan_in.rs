//! Fan-in: records can be exported, but there are no statements to map or reduce them.

use super::{DynamodbConnection, read};
#[cfg(feature = "export")]
use crate::Extraction;
#[cfg(feature = "export")]
use crate::fan_in::{MAX_BATCH_BYTES, MAX_BATCH_ROWS, data_error};
use crate::{
    ConnectorError, FanIn, Ledger, LoadRequest, Mapped, Merge, Reduction, Result, Rows, Scope,
};
use async_trait::async_trait;
use windlass_core::problem::Code;
use windlass_core::{Column, ColumnType, Cursor, KeySet, Keys, Problem, Record, Value};
#[cfg(feature = "export")]
use windlass_export::RowBuilder;

/// The number of records per request.
const READ_BATCH: u64 = 100;

#[async_trait]
impl FanIn for DynamodbConnection {
    async fn map_columns(&self, _: &Scope) -> Result<Vec<Column>> {
        Err(no_statements("step.map"))
    }

    async fn map(&self, _: &Scope, _: &[Column], _: &KeySet) -> Result<Mapped> {
        Err(no_statements("step.map"))
    }

    /// There is no common snapshot: each request of a hundred records reads its own moment.
    #[cfg(feature = "export")]
    async fn extract(&self, scope: &Scope, extraction: Extraction<'_>) -> Result<()> {
        let Extraction { key_set, columns, batches } = extraction;
        let mut builder = RowBuilder::new(windlass_export::schema(columns)).map_err(data_error)?;
        let keys = match &key_set.keys {
            Keys::List(keys) => keys.len() as u64,
            Keys::Range(_) => 0,
        };
        for done in (0..keys).step_by(READ_BATCH as usize) {
            let remaining = Cursor::Index(done).remaining(key_set);
            let Some(next) = remaining.map(|keys| first(keys, READ_BATCH as usize)) else { break };
            let batch = read::read(self, scope, &next, READ_BATCH as u32, usize::MAX).await?;
            for item in batch.items {
                builder.push(&cells(&item.record, columns)).map_err(data_error)?;
            }
            let is_full = builder.rows() >= MAX_BATCH_ROWS || builder.bytes() >= MAX_BATCH_BYTES;
            if is_full && batches.send(builder.finish().map_err(data_error)?).await.is_err() {
                return Ok(());
            }
        }
        let _ = batches.send(builder.finish().map_err(data_error)?).await;
        Ok(())
    }
}

#[async_trait]
impl Merge for DynamodbConnection {
    async fn reduce(&self, _: Reduction<'_>) -> Result<Rows> {
        Err(no_statements("reduce"))
    }

    async fn replace(&self, _: &Ledger, _: LoadRequest<'_>) -> Result<Ledger> {
        Err(no_statements("load"))
    }
}

/// The first keys of a list.
fn first(key_set: KeySet, max: usize) -> KeySet {
    let keys = match key_set.keys {
        Keys::List(keys) => Keys::List(keys.into_iter().take(max).collect()),
        range => range,
    };
    KeySet { keys, ..key_set }
}

/// The values of a record in the order of the columns. Values other than text become JSON text.
fn cells(record: &Record, columns: &[Column]) -> Vec<Value> {
    let cell = |column: &Column| match (column.kind, record.get(&column.name)) {
        (_, None | Some(Value::Null)) => Value::Null,
        (ColumnType::Bytes, Some(value)) => value.clone(),
        (_, Some(value)) => Value::Text(value.to_text().unwrap_or_default()),
    };
    columns.iter().map(cell).collect()
}

fn no_statements(field: &str) -> ConnectorError {
    let detail =
        "DynamoDB does not support SQL; use step.export, step.handler, step.command or step.http";
    Problem::field(Code::Source, field, detail).into()
}
