//! What a ledger remembers of the stores that worked on it, and of jobs a store may have forgotten.
//!
//! A store that was restored from a backup is older than the ledger beside the data. The generation
//! recorded here proves it; the rows say at which epochs its chunks can go on.

use crate::{Ledger, Result};
use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::JobId;

/// The ledger of a connection across jobs. Where its tables are missing there is nothing to tell.
#[async_trait]
pub trait LedgerHistory: Send + Sync {
    /// The highest generation that this store had when it began to work here, by the name it gives
    /// the connection; zero where it never has.
    async fn generation(&self, store: Uuid, connection: &str) -> Result<i64>;
    /// Raises that generation; a higher one stays.
    async fn raise_generation(&self, store: Uuid, connection: &str, generation: i64) -> Result<()>;
    /// Ledger rows of a job in order of chunk number, after the given one.
    async fn rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<Ledger>>;
    /// The jobs that have ledger rows, and how many.
    async fn jobs(&self) -> Result<Vec<(JobId, u64)>>;
}
