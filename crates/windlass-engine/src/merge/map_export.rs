//! `map` and `export`: a chunk is read once, and what comes of it is its part.
//!
//! There is no effect in the source and so no ledger there: the part and the end of its chunk are one
//! transaction of the store.

use crate::EngineError;
use crate::Result;
use crate::execute::chunk_runner::{Chunk, StopReason};
use crate::merge::destination::JobDestination;
use sha2::{Digest, Sha256};
use windlass_core::problem::Code;
use windlass_core::{Counts, Cursor, KeySet, Problem, Value};
use windlass_export::PartName;
use windlass_store::NewPart;

/// The most bytes of a part that the store keeps.
const MOST_BYTES: usize = 16 << 20;

/// Batches that are read ahead of the writer.
const AHEAD: usize = 2;

/// Makes the part of a chunk.
pub(crate) async fn run_batch(
    chunk: &mut Chunk,
    rest: KeySet,
) -> std::result::Result<(), StopReason> {
    let job = chunk.job.clone();
    let (part, read) = match JobDestination::of(&job)? {
        Some(destination) => {
            let part = export(chunk, &destination, &rest).await?;
            let rows = part.rows;
            (part, rows)
        }
        // What a chunk is added up from is not counted again.
        None => {
            let rows = job.fan_in.map(&job.scope, &job.part_columns, &rest).await?;
            (encode(&rows)?, chunk.claimed.items)
        }
    };
    chunk.part = Some(part);
    chunk.ledger.counts = Counts { read, processed: read, ..Counts::default() };
    chunk.ledger.cursor = Cursor::End;
    chunk.report_progress();
    Ok(())
}

/// Writes the records of a chunk while they are read.
async fn export(chunk: &Chunk, destination: &JobDestination, rest: &KeySet) -> Result<NewPart> {
    let windlass_store::Lease { chunk: id, epoch, nonce } = chunk.lease();
    let name = PartName { chunk: id.number, epoch, nonce };
    let (to, rows) = tokio::sync::mpsc::channel(AHEAD);
    let reading = chunk.job.fan_in.extract(
        &chunk.job.scope,
        windlass_connectors::Extraction {
            key_set: rest,
            columns: &destination.columns,
            batches: to,
        },
    );
    let (read, written) = tokio::join!(reading, destination.write(name, rows));
    read?;
    written
}

/// Rows as the store keeps them.
pub(crate) fn encode(rows: &[Vec<Value>]) -> Result<NewPart> {
    let text = serde_json::to_vec(rows).map_err(unreadable)?;
    let content = zstd::encode_all(text.as_slice(), 3).map_err(unreadable)?;
    new_part(rows.len(), &text, content)
}

/// A part with this number of rows: its uncompressed text, and the content that is stored.
pub(crate) fn new_part(rows: usize, text: &[u8], content: Vec<u8>) -> Result<NewPart> {
    if content.len() > MOST_BYTES {
        let detail = format!(
            "a part has {} bytes, and {MOST_BYTES} are the most that the store keeps; let `map` \
             group more, or use step.export",
            content.len()
        );
        return Err(Problem::field(Code::Source, "step.map", detail).into());
    }
    Ok(NewPart {
        name: None,
        rows: rows as i64,
        bytes: content.len() as i64,
        sha256: hex::encode(Sha256::digest(&content)),
        content_hash: hex::encode(Sha256::digest(text)),
        content: Some(content),
    })
}

/// The rows of a part that the store keeps.
pub(crate) fn decode(part: &NewPart) -> Result<Vec<Vec<Value>>> {
    let content = part.content.as_deref().unwrap_or_default();
    let text = zstd::decode_all(content).map_err(unreadable)?;
    serde_json::from_slice(&text).map_err(unreadable)
}

pub(crate) fn unreadable(error: impl std::fmt::Display) -> EngineError {
    Problem::new(Code::Source, format!("a part cannot be read: {error}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_read_as_it_was_written() {
        let rows = vec![
            vec![Value::Text("12345678901234567890.10".into()), Value::Null, Value::Int(-7)],
            vec![Value::Bytes(vec![0, 255]), Value::Bool(true), Value::Float(0.1)],
        ];
        let part = encode(&rows).unwrap();
        assert_eq!(part.rows, 2);
        assert_eq!(decode(&part).unwrap(), rows);
        assert_eq!(encode(&rows).unwrap(), part, "the same rows are the same part");
    }
}
