//! Connectors to the user's data: where records are read, and where effects are committed.
//!
//! [`Source`] splits, cuts and reads; [`Target`] fences and commits under the ledger; [`FanIn`]
//! computes parts and brings them together; [`Outbox`] is where applications put requests. One
//! [`Connection`] is all of it; [`Items`] is one whose records came with the request,
//! [`Replicated`] one that others help to read. `sqlite/`, `postgres/` and `mysql/` mirror each other file by file.

// The databases use every shared function between them; a build without some leaves others unused.
#![cfg_attr(
    not(all(feature = "export", feature = "mysql", feature = "postgres", feature = "sqlite")),
    allow(dead_code, unreachable_code, unused_imports, unused_variables)
)]

mod array;
mod by_value;
mod chunk_binding;
mod chunk_cutter;
mod commit;
mod connect;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
mod emitted;
mod error;
mod fan_in;
mod history;
mod inline_source;
mod key_check;
mod key_walk;
mod ledger;
mod literal;
#[cfg(feature = "mysql")]
mod mysql;
// The SQL builder writes every dialect. Without the driver it needs the literals of MySQL alone.
#[cfg(not(feature = "mysql"))]
mod mysql {
    mod cells;
    mod value;
    pub(crate) use cells::Cells;
    pub(crate) use value::{cast, compared};
}
mod names;
pub mod outbox;
#[cfg(feature = "postgres")]
mod postgres;
mod predicate;
mod read_only;
mod replicas;
mod scope;
mod source;
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
mod statement;
mod validate;
mod write;

pub use commit::{Commit, Committed, Effect, WriteItem};
pub use connect::connect;
pub use emitted::{Emitted, FIRST, keep_emitted};
pub use error::{DataError, Result};
pub use fan_in::{Bound, FanIn, Params, Parts, Rows};
pub use history::LedgerHistory;
pub use inline_source::Items;
pub use ledger::{DeferredItem, DeferredState, Fence, Ledger, LedgerRow};
pub use outbox::{Outbox, OutboxRow, Relayed, SubmitResult, Submitter, Waiting};
pub use read_only::ReadOnly;
pub use replicas::{Reads, Replicas, Replicated, Standing};
pub use scope::Scope;
pub use source::{Batch, ChunkPage, Item, Preview, ScanSegment};
pub use validate::fit;

use async_trait::async_trait;
use windlass_core::problem::{Code, Problem};
use windlass_core::{ChunkId, FilterValue, JobId, Key, KeyRange, KeySet, Table, Value};

/// A database with records.
#[async_trait]
pub trait Connection: Source + Target + FanIn {
    /// Where applications put requests.
    fn outbox(&self) -> &dyn Outbox;
    /// What its ledger remembers across jobs.
    fn history(&self) -> &dyn LedgerHistory;
    /// The number of its latest write; nothing where writes have no numbers that copies know.
    async fn position(&self) -> Result<Option<i64>> {
        Ok(None)
    }
    /// Why a commit that the server has confirmed could be lost when its machine stops, by settings
    /// that only the server's administrator can change. None where it could not.
    async fn durability_risk(&self) -> Result<Option<String>> {
        Ok(None)
    }
    /// What it is as a copy of another.
    async fn standing(&self) -> Result<Standing> {
        Ok(Standing::Primary)
    }
}

/// Reads records.
#[async_trait]
pub trait Source: Send + Sync {
    /// The names of the tables there are, Windlass's own left out.
    async fn tables(&self) -> Result<Vec<String>>;
    /// What the database says of the source's table or query.
    async fn describe(&self, source: &windlass_core::Source) -> Result<Table>;
    /// Refuses a `sql` or `map` step whose statement `{chunk}` does not bind.
    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        let _ = job_type;
        Ok(())
    }
    /// Refuses a source in which a record has no key, or two have the same where the step needs it
    /// unique. Looks at the rows only where the schema does not promise it: at the first `most`, or
    /// at all that the job may reach.
    async fn check_keys(&self, scope: &Scope, most: Option<u64>) -> Result<()>;
    /// Splits the source into at most so many ranges of about equal size, without a full sort.
    /// They tile everything up to the greatest key there is now; none when there are no records.
    /// Where keys have no order, [`KeyRange::ALL`] for each part that [`Source::scan`] takes by number.
    async fn split(&self, scope: &Scope, segments: u32) -> Result<Vec<KeyRange>>;
    /// ChunkPage the next chunks of `items` records out of a range, inside the server, at most
    /// `most_chunks` of them and at most `most_items` records. The chunks tile the range as far
    /// as they go.
    async fn cut(
        &self,
        scope: &Scope,
        within: Option<&FilterValue>,
        range: &KeyRange,
        items: u32,
        most_chunks: u32,
        most_items: Option<u64>,
    ) -> Result<ChunkPage>;
    /// Looks up many values of a filter at once: for each value its one chunk, or no chunk where it
    /// has no records. `None` where it has more records than a chunk and [`Source::cut`] is needed.
    async fn cut_values(
        &self,
        scope: &Scope,
        filter: &str,
        values: &[Value],
        items: u32,
    ) -> Result<Vec<Option<ChunkPage>>> {
        let _ = (scope, filter, items);
        Ok(vec![None; values.len()])
    }
    /// ChunkPage the next chunks out of a part that the database itself numbers, where keys have no order
    /// and [`Source::split`] gives [`KeyRange::ALL`] for each part: lists of keys, from behind `after`.
    async fn scan(
        &self,
        scope: &Scope,
        share: ScanSegment,
        after: Option<&Key>,
        items: u32,
        most_chunks: u32,
        most_items: Option<u64>,
    ) -> Result<ChunkPage> {
        let _ = (scope, share, after, items, most_chunks, most_items);
        Err(Problem::new(Code::Source, "this database is cut by ranges of its keys").into())
    }
    /// Reads records of an key_set in key order, at most so many and about so many bytes.
    async fn read(
        &self,
        scope: &Scope,
        key_set: &KeySet,
        limit: u32,
        bytes: usize,
    ) -> Result<Batch>;
    /// The one number that a SELECT of the user's gives; none where it is NULL.
    async fn measure(&self, sql: &str) -> Result<Option<f64>>;
    /// How many records an key_set has now.
    async fn count(&self, scope: &Scope, key_set: &KeySet) -> Result<i64>;
    /// How many records each of several key_sets has now, on one snapshot where the database has them.
    async fn count_each(&self, scope: &Scope, key_sets: &[KeySet]) -> Result<Vec<i64>> {
        let mut counts = Vec::with_capacity(key_sets.len());
        for key_set in key_sets {
            counts.push(self.count(scope, key_set).await?);
        }
        Ok(counts)
    }
    /// The rows without those that the database holds equal to an earlier one, each as the
    /// database itself writes it. Serves `ids` and filter values.
    async fn distinct(
        &self,
        scope: &Scope,
        columns: &[String],
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Value>>>;
}

/// Commits effects under the ledger.
#[async_trait]
pub trait Target: Send + Sync {
    /// Makes the ledger's tables where they are missing.
    async fn prepare(&self) -> Result<()>;
    /// Whether [`Target::prepare`] has nothing to do, or may do what it has to. Changes nothing.
    async fn check_ledger(&self) -> Result<()>;
    /// The statements [`Target::prepare`] runs, for those who may not create tables themselves.
    fn ledger_ddl(&self) -> &'static str;
    /// Raises the ledger rows of several chunks to these epochs, creating what is missing, and
    /// reads them. `None` where the row's epoch is higher already: that lease is lost.
    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>>;
    /// Commits one batch: compare-and-set on the ledger, effects, held items, in one transaction.
    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed>;
    /// How many items one commit may have.
    fn most_items(&self) -> u32 {
        u32::MAX
    }
    /// Marks the rows of a running chunk in the column `step.mark`, in a transaction of its own
    /// that first makes sure of the epoch.
    async fn mark(&self, scope: &Scope, ledger: &Ledger, key_set: &KeySet) -> Result<()>;
    /// DeferredItem items of a chunk in one state, in key order after the given key text.
    async fn held(
        &self,
        chunk: ChunkId,
        state: DeferredState,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<DeferredItem>>;
    /// The ledger rows of a job's chunks in order after this chunk, for the audit. Changes nothing.
    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>>;
    /// The rows that the items of a job emitted, in order after the given place.
    async fn emitted(
        &self,
        job: JobId,
        after: &(i64, String, i64),
        limit: u32,
    ) -> Result<Vec<Emitted>>;
    /// Removes the rows that the items of a job emitted; says how many.
    async fn discard(&self, job: JobId) -> Result<u64>;
    /// Forgets the ledger of a job all of whose chunks are completed; says how many rows went.
    async fn prune(&self, job: JobId) -> Result<u64>;
    /// Runs the statement on an key_set and takes it back: the records before and after.
    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>>;
    /// Writes an item back and takes it back: the error it would become a dead letter with.
    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()>;
}
