//! Fan-in: records go out as they are; statements belong to databases that have them.

use super::{DynamodbData, read};
#[cfg(feature = "export")]
use crate::fan_in::misfit;
use crate::fan_in::{BATCH, BATCH_BYTES};
use crate::{Bound, DataError, FanIn, Ledger, Params, Parts, Result, Rows, Scope};
use async_trait::async_trait;
use tokio::sync::mpsc::Sender;
use windlass_core::problem::Code;
use windlass_core::{
    Column, ColumnType, Cursor, KeySet, Keys, Load, Problem, Record, Template, Value,
};
#[cfg(feature = "export")]
use windlass_export::{RecordBatch, RowBuilder};

/// Records read at once.
const READ: u64 = 100;

#[async_trait]
impl FanIn for DynamodbData {
    async fn map_columns(&self, _: &Scope) -> Result<Vec<Column>> {
        Err(no_statements("step.map"))
    }

    async fn map(&self, _: &Scope, _: &[Column], _: &KeySet) -> Result<Vec<Vec<Value>>> {
        Err(no_statements("step.map"))
    }

    /// Each hundred records are read at an instant of their own.
    #[cfg(feature = "export")]
    async fn extract(
        &self,
        scope: &Scope,
        key_set: &KeySet,
        columns: &[Column],
        to: Sender<RecordBatch>,
    ) -> Result<()> {
        let mut builder = RowBuilder::new(windlass_export::schema(columns)).map_err(misfit)?;
        let keys = match &key_set.keys {
            Keys::List(keys) => keys.len() as u64,
            Keys::Range(_) => 0,
        };
        for done in (0..keys).step_by(READ as usize) {
            let rest =
                Cursor::Index(done).remaining(key_set).map(|rest| first(rest, READ as usize));
            let Some(some) = rest else { break };
            let batch = read::read(self, scope, &some, READ as u32, usize::MAX).await?;
            for item in batch.items {
                builder.push(&cells(&item.record, columns)).map_err(misfit)?;
            }
            let is_full = builder.rows() >= BATCH || builder.bytes() >= BATCH_BYTES;
            if is_full && to.send(builder.finish().map_err(misfit)?).await.is_err() {
                return Ok(());
            }
        }
        let _ = to.send(builder.finish().map_err(misfit)?).await;
        Ok(())
    }

    async fn reduce(&self, _: &[Column], _: Parts<'_>, _: &Template, _: &Params) -> Result<Rows> {
        Err(no_statements("reduce"))
    }

    async fn replace(
        &self,
        _: &Ledger,
        _: &Load,
        _: &Rows,
        _: &Params,
        _: &[Bound],
    ) -> Result<Ledger> {
        Err(no_statements("load"))
    }
}

/// The first keys of a list.
fn first(key_set: KeySet, most: usize) -> KeySet {
    let part = match key_set.keys {
        Keys::List(keys) => Keys::List(keys.into_iter().take(most).collect()),
        range => range,
    };
    KeySet { keys: part, ..key_set }
}

/// The values of a record in the order of the columns. What is no text is written as its JSON.
fn cells(record: &Record, columns: &[Column]) -> Vec<Value> {
    let cell = |column: &Column| match (column.kind, record.get(&column.name)) {
        (_, None | Some(Value::Null)) => Value::Null,
        (ColumnType::Bytes, Some(value)) => value.clone(),
        (_, Some(value)) => Value::Text(value.to_text().unwrap_or_default()),
    };
    columns.iter().map(cell).collect()
}

fn no_statements(field: &str) -> DataError {
    let detail = "DynamoDB runs no statements; use step.export, or a step that answers per item";
    Problem::field(Code::Source, field, detail).into()
}
