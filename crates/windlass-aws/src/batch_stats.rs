//! What became of a batch of messages, for the log.

use std::ops::AddAssign;

/// Counts of one batch, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStats {
    /// Items written.
    pub processed: u64,
    /// Items that this job had been done to before.
    pub repeated: u64,
    /// Items that needed nothing.
    pub skipped: u64,
    /// Items that failed, and whose messages come back.
    pub failed: u64,
    /// Writes that met another writer's.
    pub conflicts: u64,
    /// Records asked for.
    pub reads: u64,
    /// Writes asked for.
    pub writes: u64,
}

impl AddAssign for BatchStats {
    fn add_assign(&mut self, other: BatchStats) {
        self.processed += other.processed;
        self.repeated += other.repeated;
        self.skipped += other.skipped;
        self.failed += other.failed;
        self.conflicts += other.conflicts;
        self.reads += other.reads;
        self.writes += other.writes;
    }
}
