//! Detecting that a store was restored from a backup, and raising its epochs afterwards.

use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::JobId;

use crate::Result;

/// The identity of a store, and the generations and epochs that a restored store is behind with.
#[async_trait]
pub trait HistoryStore: Send + Sync {
    /// Reads the identity of this store. A restored copy has the same identity.
    async fn identity(&self) -> Result<Uuid>;
    /// Reads the generation of a connection: how often a process began to work on it. Zero when
    /// none did.
    async fn generation(&self, connection: &str) -> Result<i64>;
    /// Raises the generation of a connection to one more than the larger of its value and `seen`.
    /// Returns the new generation. The change is durable when the call returns.
    async fn raise_generation(&self, connection: &str, seen: i64) -> Result<i64>;
    /// Raises the epochs of a job's chunks to these values, given by chunk number, where they are
    /// lower. [`MERGED`](crate::MERGED) stands for its merge. Returns the number of raised chunks.
    async fn raise_epochs(&self, job: JobId, epochs: &[(i64, i64)]) -> Result<u64>;
}
