//! Records straight from `COPY … (FORMAT binary)` into batches.

use super::binary::{Reader, Wire};
use crate::fan_in::{BATCH, BATCH_BYTES, misfit};
use crate::sql::{Dialect, Sql, quote};
use crate::{Result, Scope, statement};
use futures::TryStreamExt;
use std::pin::pin;
use tokio::sync::mpsc::Sender;
use windlass_core::{Column, KeySet};
use windlass_drivers::{Error, Transaction};
use windlass_export::{RecordBatch, RowBuilder};

/// Sends the rows of an key_set as batches of these columns.
pub(super) async fn extract(
    transaction: &Transaction,
    scope: &Scope,
    key_set: &KeySet,
    columns: &[Column],
    to: Sender<RecordBatch>,
) -> Result<()> {
    let schema = windlass_export::schema(columns);
    let wires: Vec<Wire> = columns
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| Wire::of(column, field))
        .collect();
    let expressions: Vec<String> =
        columns.iter().zip(&wires).map(|(column, wire)| expression(column, *wire)).collect();
    let sql = Sql::with_literals(Dialect::Postgres, "COPY (");
    let mut sql = statement::extract_into(sql, scope, key_set, &expressions);
    sql.push(") TO STDOUT (FORMAT binary)");
    let mut builder = RowBuilder::new(schema).map_err(misfit)?;
    let mut reader = Reader::new(wires);
    let mut pieces = pin!(transaction.copy_out(sql.literal_text()?).await?);
    while let Some(piece) = pieces.try_next().await.map_err(Error::from)? {
        let mut rows = reader.feed(piece);
        while reader.next(&mut rows, &mut builder)? {
            if builder.rows() >= BATCH || builder.bytes() >= BATCH_BYTES {
                let batch = builder.finish().map_err(misfit)?;
                if to.send(batch).await.is_err() {
                    return Ok(());
                }
            }
        }
    }
    reader.end()?;
    let _ = to.send(builder.finish().map_err(misfit)?).await;
    Ok(())
}

/// What is selected of a column: itself where its bytes are understood, otherwise its text.
fn expression(column: &Column, wire: Wire) -> String {
    let name = quote(&column.name);
    match wire {
        Wire::Json => format!("{name}::text"),
        Wire::Written => Dialect::Postgres.render(column, &name),
        _ => name,
    }
}
