//! The history of a ledger across jobs and stores.
//!
//! A store that was restored from a backup is older than the ledger next to the data. The generation
//! recorded here detects that, and the rows tell from which epochs its chunks can continue.

use crate::{Ledger, Result};
use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::JobId;

/// The ledger of a connection across jobs. Without tables, every answer is empty.
#[async_trait]
pub trait LedgerHistory: Send + Sync {
    /// The highest generation that this store recorded under this name of the connection. Zero if it never
    /// recorded one.
    async fn generation(&self, store: Uuid, connection: &str) -> Result<i64>;
    /// Raises that generation. A higher one stays.
    async fn raise_generation(&self, store: Uuid, connection: &str, generation: i64) -> Result<()>;
    /// Ledger rows of a job in order of chunk number, after the given one.
    async fn rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<Ledger>>;
    /// The jobs that have ledger rows, with the number of rows.
    async fn jobs(&self) -> Result<Vec<(JobId, u64)>>;
}
