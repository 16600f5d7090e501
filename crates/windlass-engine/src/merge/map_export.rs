//! Runs a chunk of `map` or `export`: reads it once and produces its part.
//!
//! These steps do not change the source, so they need no ledger there. The part and the completion of
//! its chunk are committed in one store transaction.

use crate::EngineError;
use crate::Result;
use crate::execute::chunk_runner::{ChunkRunner, StopReason};
#[cfg(feature = "export")]
use crate::merge::bad_records;
use crate::merge::bad_rows;
use crate::merge::destination::JobDestination;
use sha2::{Digest, Sha256};
use windlass_core::problem::Code;
use windlass_core::{Counts, Cursor, ExactValue, KeySet, Keys, Problem, Value};
#[cfg(feature = "export")]
use windlass_export::PartName;
use windlass_store::NewPart;

/// Maximum size of a part that is kept in the store, compressed.
const MAX_STORED_PART_BYTES: usize = 16 << 20;

/// Batches that may be read ahead of the writer.
#[cfg(feature = "export")]
const READ_AHEAD_BATCHES: usize = 2;

/// Produces the part of a chunk.
pub(crate) async fn run_batch(
    chunk: &mut ChunkRunner,
    remaining: KeySet,
) -> std::result::Result<(), StopReason> {
    let job = chunk.job.clone();
    let (part, processed, skipped) = match JobDestination::of(&job)? {
        Some(destination) => {
            let part = export(chunk, &destination, &remaining).await?;
            let rows = part.rows;
            (part, rows, 0)
        }
        None => {
            let mapped = match job.fan_in.map(&job.scope, &job.part_columns, &remaining).await {
                Err(error) if bad_rows::makes_dead_letter(chunk, &error) => {
                    bad_rows::map(chunk, &remaining).await?
                }
                mapped => mapped?,
            };
            // Listed keys without a record are skipped.
            let dead = chunk.dead_letters.len() as i64;
            let missing = match &remaining.keys {
                Keys::List(keys) => (keys.len() as i64 - mapped.read - dead).max(0),
                Keys::Range(_) => 0,
            };
            (encode(&mapped.rows)?, mapped.read, missing)
        }
    };
    chunk.part = Some(part);
    let dead = chunk.dead_letters.len() as i64;
    let read = processed + skipped + dead;
    chunk.ledger.counts = Counts { read, processed, skipped, dead, ..Counts::default() };
    chunk.ledger.cursor = Cursor::End;
    chunk.record_progress();
    Ok(())
}

/// Writes the records of a chunk while they are read. A record that the format cannot represent becomes a dead
/// letter, and the part is written without it.
#[cfg(feature = "export")]
async fn export(
    chunk: &mut ChunkRunner,
    destination: &JobDestination,
    remaining: &KeySet,
) -> Result<NewPart> {
    let windlass_store::Lease { chunk: id, epoch, nonce } = chunk.lease();
    let name = PartName { chunk: id.number, epoch, nonce };
    let (batches, rows) = tokio::sync::mpsc::channel(READ_AHEAD_BATCHES);
    let columns = &destination.columns;
    let extraction = windlass_connectors::Extraction { key_set: remaining, columns, batches };
    let reading = chunk.job.fan_in.extract(&chunk.job.scope, extraction);
    let (read, written) = tokio::join!(reading, destination.write(name, rows));
    match read {
        Err(error) if bad_rows::makes_dead_letter(chunk, &error) => {}
        read => {
            read?;
            return written;
        }
    }
    // The part is written again under the same name, so nothing of the first attempt stays.
    let (batches, rows) = tokio::sync::mpsc::channel(READ_AHEAD_BATCHES);
    let reading = bad_records::extract(chunk, columns, remaining, batches);
    let (letters, written) = tokio::join!(reading, destination.write(name, rows));
    chunk.dead_letters = letters?;
    written
}

/// No chunk has a destination in this build.
#[cfg(not(feature = "export"))]
async fn export(_: &mut ChunkRunner, destination: &JobDestination, _: &KeySet) -> Result<NewPart> {
    match *destination {}
}

/// Encodes rows as a part that is kept in the store.
pub(crate) fn encode(rows: &[Vec<Value>]) -> Result<NewPart> {
    let text = serde_json::to_vec(rows).map_err(unreadable)?;
    let content = zstd::encode_all(text.as_slice(), 3).map_err(unreadable)?;
    new_part(rows.len(), &text, content)
}

/// A part of this many rows, from its uncompressed text and the content to store.
pub(crate) fn new_part(rows: usize, text: &[u8], content: Vec<u8>) -> Result<NewPart> {
    if content.len() > MAX_STORED_PART_BYTES {
        let detail = format!(
            "the part of a chunk has {} bytes, and the store keeps at most {MAX_STORED_PART_BYTES}; \
             let `map` group by fewer values, or use step.export",
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

/// Whether the content of a stored part matches its recorded size and hash.
pub(crate) fn is_intact(part: &NewPart) -> bool {
    let content = part.content.as_deref().unwrap_or_default();
    content.len() as i64 == part.bytes && hex::encode(Sha256::digest(content)) == part.sha256
}

/// Decodes the rows of a part that is kept in the store.
pub(crate) fn decode(part: &NewPart) -> Result<Vec<Vec<Value>>> {
    if !is_intact(part) {
        return Err(unreadable("its content is damaged: it does not match its hash"));
    }
    let content = part.content.as_deref().unwrap_or_default();
    let text = zstd::decode_all(content).map_err(unreadable)?;
    let rows: Vec<Vec<ExactValue>> = serde_json::from_slice(&text).map_err(unreadable)?;
    Ok(rows.into_iter().map(|row| row.into_iter().map(|value| value.0).collect()).collect())
}

pub(crate) fn unreadable(error: impl std::fmt::Display) -> EngineError {
    Problem::new(Code::Source, format!("cannot read a stored part: {error}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_a_part_returns_the_encoded_rows() {
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
