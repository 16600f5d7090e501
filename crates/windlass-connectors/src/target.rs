//! Committing effects under the ledger: one trait per topic, and [`Target`] for all of them.

use crate::{
    Commit, Committed, DeferredItem, DeferredState, Emitted, EmittedCursor, Fence, Ledger,
    LedgerRow, Preview, Result, Scope, WriteItem,
};
use async_trait::async_trait;
use windlass_core::{ChunkId, JobId, KeySet};

/// Where the effects of a job and its ledger are.
pub trait Target: Fencing + Committing + DeferredItems + DryRun {}

impl<T: Fencing + Committing + DeferredItems + DryRun> Target for T {}

/// Assigns ledger rows to leases.
#[async_trait]
pub trait Fencing: Send + Sync {
    /// Raises the ledger rows of several chunks to these epochs, creates the missing ones, and
    /// returns them. `None` stands for a row whose epoch is higher already: that lease is lost.
    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>>;
    /// Reads the row of a lease that has fenced it before, as it is after every commit in progress.
    /// `None` means that the lease is lost: another one has the row, or it was pruned. A pruned row
    /// is not created again, because it would accept a commit of this lease that is still in flight.
    async fn fence_again(&self, ledger: &Ledger) -> Result<Option<Ledger>>;
    /// The ledger rows of a job's chunks in order after this chunk number, for the audit. Changes
    /// nothing.
    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>>;
}

/// Commits effects together with the ledger rows that record them.
#[async_trait]
pub trait Committing: Send + Sync {
    /// Commits one batch in one transaction: compare-and-set on the ledger row, effects, deferred
    /// items.
    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed>;
    /// How many items one commit may have.
    fn max_commit_items(&self) -> u32 {
        u32::MAX
    }
    /// Makes the commits of these rows durable, and returns for each whether the row is as given. Otherwise the
    /// server lost commits in a crash, or another lease has the row. Commits of most databases are durable at
    /// once; see [`Durability`](windlass_core::Durability).
    async fn flush(&self, rows: &[Ledger]) -> Result<Vec<bool>> {
        Ok(vec![true; rows.len()])
    }
    /// Marks the rows of a running chunk in the column `step.mark`, in a transaction of its own
    /// that first checks the epoch. Returns what is marked afterwards, including rows that an earlier
    /// lease has marked; nothing if the job type has no mark.
    async fn mark(&self, scope: &Scope, ledger: &Ledger, key_set: &KeySet) -> Result<Marked>;
}

/// Reads and deletes the rows next to the ledger: deferred items and emitted rows.
#[async_trait]
pub trait DeferredItems: Send + Sync {
    /// A page of the deferred items of a chunk, in key order.
    async fn deferred(&self, chunk: ChunkId, page: DeferredPage<'_>) -> Result<Vec<DeferredItem>>;
    /// The rows that the items of a job emitted, in order after the cursor.
    async fn emitted(&self, job: JobId, after: &EmittedCursor, limit: u32) -> Result<Vec<Emitted>>;
    /// Deletes the rows that the items of a job emitted. Returns how many.
    async fn discard_emitted(&self, job: JobId) -> Result<u64>;
    /// Deletes the ledger of a job whose chunks are all completed. Returns how many rows.
    async fn prune(&self, job: JobId) -> Result<u64>;
}

/// The rows of a chunk that have the mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// How many rows.
    pub rows: i64,
    /// How many different values each column of the key has in these rows.
    pub values: Vec<i64>,
}

impl Marked {
    /// From the columns of the statement that counts them.
    pub(crate) fn new(mut counts: Vec<i64>) -> Marked {
        let rows = if counts.is_empty() { 0 } else { counts.remove(0) };
        Marked { rows, values: counts }
    }
}

/// Which deferred items of a chunk to read.
#[derive(Clone, Copy, Debug)]
pub struct DeferredPage<'a> {
    /// The state of the items.
    pub state: DeferredState,
    /// The text of the key after which the page begins.
    pub after: Option<&'a str>,
    /// The most items of the page.
    pub limit: u32,
}

impl DeferredPage<'_> {
    /// At most `limit` items in this state, after the given key text.
    pub fn new(state: DeferredState, after: Option<&str>, limit: u32) -> DeferredPage<'_> {
        DeferredPage { state, after, limit }
    }
}

/// Tries effects and rolls them back.
#[async_trait]
pub trait DryRun: Send + Sync {
    /// Runs the step's statement on a key set and rolls it back. Returns the records before and
    /// after.
    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>>;
    /// Writes an item and rolls back. The error is the one with which the item would become a dead
    /// letter.
    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()>;
}

/// Creates the tables of the ledger.
#[async_trait]
pub trait LedgerSchema: Send + Sync {
    /// Creates the ledger's tables where they are missing.
    async fn prepare(&self) -> Result<()>;
    /// Checks that [`LedgerSchema::prepare`] has nothing to create, or has the privilege to create
    /// it. Changes nothing.
    async fn check_ledger(&self) -> Result<()>;
    /// The statements that [`LedgerSchema::prepare`] runs, for users who may not create tables.
    fn ledger_ddl(&self) -> &'static str;
}
