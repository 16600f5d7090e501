//! Items whose dead letters the database does not accept.
//!
//! The cursor passes such an item, so that the rest of its chunk continues, and keeps its key as an exception
//! in the same commit. At the end the chunk fails and names these items. The next attempt tries them first; the
//! commit of an item's outcome removes its exception.

use crate::EngineError;
use crate::execute::chunk_runner::{ChunkRunner, StopReason};
use crate::execute::set_based;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use windlass_connectors::{Commit, ConnectorError, Effect};
use windlass_core::{Counts, Cursor, Key};

/// The most exceptions of a cursor. A database that accepts no dead letter at all fails the chunk here.
const MAX_EXCEPTIONS: usize = 100;
/// Items that the error of a chunk names.
const MAX_NAMED: usize = 10;

/// An item whose dead letter was refused.
pub(crate) struct Unwritten<'a> {
    pub(crate) key: &'a Key,
    pub(crate) record: &'a Json,
    pub(crate) error: ConnectorError,
}

/// Passes an item whose dead letter was refused: commits that the cursor moves beyond it, with these counts,
/// and that its outcome is missing. An item that is an exception already stays one.
pub(crate) async fn pass(
    chunk: &mut ChunkRunner,
    Unwritten { key, record, error }: Unwritten<'_>,
    commit: Commit,
) -> Result<(), StopReason> {
    log(chunk, key, record, &error.to_string());
    chunk.unwritten_error = Some(error.to_string());
    let mut exceptions = chunk.ledger.cursor.exceptions().to_vec();
    if exceptions.contains(key) {
        return Ok(());
    }
    if exceptions.len() >= MAX_EXCEPTIONS {
        return Err(error.into());
    }
    exceptions.push(key.clone());
    Ok(chunk.commit_except(commit, exceptions).await?)
}

/// Logs a dead letter that could not be written. The hash identifies the data, which may not be logged.
pub(crate) fn log(chunk: &ChunkRunner, key: impl std::fmt::Display, record: &Json, error: &str) {
    let chunk = chunk.lease().chunk;
    let data_sha256 = hex::encode(Sha256::digest(record.to_string()));
    tracing::error!(%chunk, %key, data_sha256, error,
        "failed to write a dead letter; the other items continue and the chunk will fail");
}

/// Tries the exceptions of earlier attempts again.
pub(crate) async fn resume(chunk: &mut ChunkRunner) -> Result<(), StopReason> {
    let keys = chunk.ledger.cursor.exceptions().to_vec();
    for key in keys {
        match chunk.job.step {
            Some(_) => chunk.work_exception(key).await?,
            None => set_based::work_exception(chunk, key).await?,
        }
    }
    Ok(())
}

/// The error of a chunk that is at its end, if some of its items are exceptions.
pub(crate) fn error(chunk: &ChunkRunner) -> Option<EngineError> {
    let keys = chunk.ledger.cursor.exceptions();
    let why = chunk.unwritten_error.as_deref().unwrap_or("the database refused them");
    let keys: Vec<String> = keys.iter().map(Key::to_string).collect();
    (!keys.is_empty()).then(|| not_written(&keys, why))
}

/// The error that names the items whose dead letters could not be written.
pub(crate) fn not_written(keys: &[String], why: &str) -> EngineError {
    let mut named = keys.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if keys.len() > MAX_NAMED {
        named += &format!(" and {} more", keys.len() - MAX_NAMED);
    }
    let items = if keys.len() == 1 { "item" } else { "items" };
    EngineError::DeadLetters(format!("the dead letter of {items} {named} cannot be written: {why}"))
}

/// The commit of an exception whose item no longer exists.
pub(crate) fn skip(position: Cursor) -> Commit {
    let counts = Counts { read: 1, skipped: 1, ..Counts::default() };
    Commit { counts, ..Commit::new(position, Effect::Nothing) }
}
