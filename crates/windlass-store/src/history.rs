//! What tells that a store was restored to an older state, and how its epochs catch up.

use crate::Result;
use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::JobId;

/// The store's identity, and the generations and epochs that a restored store falls behind with.
#[async_trait]
pub trait StoreHistory: Send + Sync {
    /// The identity of this store. A copy of it that was restored has the same.
    async fn identity(&self) -> Result<Uuid>;
    /// How often a process began to work on a connection, or renewed that; zero for none.
    async fn generation(&self, connection: &str) -> Result<i64>;
    /// Raises that by one, above `above` at least, and says what it is then. Durable.
    async fn raise_generation(&self, connection: &str, above: i64) -> Result<i64>;
    /// Raises the epochs of a job's chunks to these, by chunk number, where they are lower;
    /// [`MERGED`](crate::MERGED) stands for its merge. Says how many chunks it raised.
    async fn raise_epochs(&self, job: JobId, epochs: &[(i64, i64)]) -> Result<u64>;
}
