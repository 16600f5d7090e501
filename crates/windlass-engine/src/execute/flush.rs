//! Makes the commits of chunks durable before the store learns of their end.
//!
//! With `chunk.durability = "group"` a commit does not wait for the disk, and a crash of the database may undo the last
//! ones: effects and ledger row together. So nothing that the ledger says may be written to the store as the end of a
//! chunk before a later write of the same database is on disk, and before the row was seen to be as it was committed.

use crate::EngineError;
use crate::execute::chunk_runner::{ChunkResult, ChunkRunner, StopReason};
use windlass_connectors::Ledger;
use windlass_core::Durability;

/// Makes the commits of finished chunks durable, which are all in one database. Returns the chunks that can be completed, and those that
/// cannot with the reason.
pub(super) async fn flush_all(results: Vec<ChunkResult>) -> (Vec<ChunkResult>, Vec<ChunkResult>) {
    let waits = |result: &ChunkResult| result.chunk.has_unflushed_commits();
    let (waiting, mut durable): (Vec<_>, Vec<_>) = results.into_iter().partition(waits);
    let Some(first) = waiting.first() else { return (durable, waiting) };
    let rows: Vec<Ledger> = waiting.iter().map(|result| result.chunk.ledger.clone()).collect();
    let mut stopped = Vec::new();
    match first.chunk.job.target.flush(&rows).await {
        Ok(kept) => {
            for (mut result, kept) in waiting.into_iter().zip(kept) {
                if kept {
                    durable.push(result);
                } else {
                    result.stop = Some(result.chunk.lost_commits().await);
                    stopped.push(result);
                }
            }
        }
        Err(error) => {
            let error = EngineError::from(error);
            let stop = |result| ChunkResult { stop: Some(error.clone().into()), ..result };
            stopped.extend(waiting.into_iter().map(stop));
        }
    }
    (durable, stopped)
}

impl ChunkRunner {
    /// Makes the commits of this lease durable.
    pub(super) async fn flush(&mut self) -> Result<(), StopReason> {
        if !self.has_unflushed_commits() {
            return Ok(());
        }
        match self.job.target.flush(std::slice::from_ref(&self.ledger)).await?.first() {
            Some(true) => Ok(()),
            _ => Err(self.lost_commits().await),
        }
    }

    /// The fence is durable, and with it the commits of earlier leases.
    fn has_unflushed_commits(&self) -> bool {
        let definition = self.job.definition();
        definition.chunk.durability == Durability::Group
            && !definition.step.kind.makes_parts()
            && self.made_progress()
    }

    /// The row is not as this lease committed it. If the lease still has it, the next leaseholder continues from what it
    /// says.
    async fn lost_commits(&mut self) -> StopReason {
        self.fence_again().await.err().unwrap_or(StopReason::HandBack)
    }
}
