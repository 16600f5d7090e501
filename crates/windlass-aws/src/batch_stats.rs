//! The results of a batch of messages, for the log.

use std::ops::AddAssign;

/// Counts of one batch, or the sum of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStats {
    /// Items that were written.
    pub processed: u64,
    /// Items that this job had already processed before.
    pub repeated: u64,
    /// Items that the step skipped.
    pub skipped: u64,
    /// Items that failed. Their messages are delivered again, or become dead letters.
    pub failed: u64,
    /// Failed items that became dead letters.
    pub dead: u64,
    /// Writes that conflicted with another writer.
    pub conflicts: u64,
    /// Records read.
    pub reads: u64,
    /// Writes attempted.
    pub writes: u64,
}

impl AddAssign for BatchStats {
    fn add_assign(&mut self, other: BatchStats) {
        self.processed += other.processed;
        self.repeated += other.repeated;
        self.skipped += other.skipped;
        self.failed += other.failed;
        self.dead += other.dead;
        self.conflicts += other.conflicts;
        self.reads += other.reads;
        self.writes += other.writes;
    }
}
