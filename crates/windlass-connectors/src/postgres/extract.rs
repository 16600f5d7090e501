//! Converts the output of `COPY … (FORMAT binary)` directly into batches.

use super::binary::{Reader, WireFormat};
use crate::fan_in::{MAX_BATCH_BYTES, MAX_BATCH_ROWS, data_error};
use crate::sql::{Dialect, Sql, quote};
use crate::{Result, Scope, statement};
use futures::TryStreamExt;
use std::pin::pin;
use tokio::sync::mpsc::Sender;
use windlass_core::{Column, KeySet};
use windlass_drivers::{Error, Transaction};
use windlass_export::{RecordBatch, RowBuilder};

/// Sends the rows of a key set as batches of these columns.
pub(super) async fn extract(
    transaction: &Transaction,
    scope: &Scope,
    key_set: &KeySet,
    columns: &[Column],
    batches: Sender<RecordBatch>,
) -> Result<()> {
    let schema = windlass_export::schema(columns);
    let formats: Vec<WireFormat> = columns
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| WireFormat::of(column, field))
        .collect();
    let expressions: Vec<String> =
        columns.iter().zip(&formats).map(|(column, format)| expression(column, *format)).collect();
    let sql = Sql::with_literals(Dialect::Postgres, "COPY (");
    let mut sql = statement::extract_into(sql, scope, key_set, &expressions);
    sql.push(") TO STDOUT (FORMAT binary)");
    let mut builder = RowBuilder::new(schema).map_err(data_error)?;
    let mut reader = Reader::new(columns, formats);
    let mut pieces = pin!(transaction.copy_out(sql.literal_text()?).await?);
    while let Some(piece) = pieces.try_next().await.map_err(Error::from)? {
        let mut rows = reader.feed(piece);
        while reader.next(&mut rows, &mut builder)? {
            if builder.rows() >= MAX_BATCH_ROWS || builder.bytes() >= MAX_BATCH_BYTES {
                let batch = builder.finish().map_err(data_error)?;
                if batches.send(batch).await.is_err() {
                    return Ok(());
                }
            }
        }
    }
    reader.end()?;
    let _ = batches.send(builder.finish().map_err(data_error)?).await;
    Ok(())
}

/// Selects a column itself where its binary format is known, otherwise its text.
fn expression(column: &Column, format: WireFormat) -> String {
    let name = quote(&column.name);
    match format {
        WireFormat::Json | WireFormat::List => format!("{name}::text"),
        WireFormat::Rendered => Dialect::Postgres.render(column, &name),
        _ => name,
    }
}
