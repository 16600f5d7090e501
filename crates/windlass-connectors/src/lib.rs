//! Connectors to the user's data: reading records and committing effects.
//!
//! A [`Connection`] is one database. Its methods are grouped in traits by role: [`Source`] plans chunks
//! and reads records, [`Target`] fences and commits under the ledger, [`FanIn`] reads the rows of parts,
//! [`Merge`] reduces parts and loads the result, [`Catalog`] describes tables, [`Outbox`] receives
//! requests of applications. A job holds only the roles that it needs, so each role can have another
//! implementation: [`InlineSource`] reads records that came with the request, [`ReplicaReader`] spreads
//! reads over replicas, [`NoLedger`] is the target of jobs that only read.
//!
//! `sqlite/`, `postgres/` and `mysql/` have the same files. `redshift/` is only loaded.

// The databases use every shared function between them; a build without some leaves others unused.
#![cfg_attr(
    not(all(feature = "export", feature = "mysql", feature = "postgres", feature = "sqlite")),
    allow(dead_code, unreachable_code, unused_imports, unused_variables)
)]

mod array;
mod array_text;
mod chunk_binding;
mod chunk_cutter;
mod column_cache;
mod commit;
mod connect;
mod connection;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
mod emitted;
mod error;
mod fan_in;
mod guard;
mod history;
mod inline_source;
mod item_reader;
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
mod no_ledger;
pub mod outbox;
#[cfg(feature = "postgres")]
mod postgres;
mod predicate;
mod prepare;
#[cfg(feature = "postgres")]
mod redshift;
mod replicas;
mod row_count;
mod scope;
mod source;
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
mod statement;
mod target;
mod validate;
mod value_lookup;
mod write;

pub use commit::{Commit, Committed, Effect, WriteItem};
pub use connect::{connect, connect_gated};
pub use connection::{Catalog, Connection, HeldSnapshot, Replication};
pub use emitted::{Emitted, EmittedCursor, keep_emitted};
pub use error::{ConnectorError, Result};
#[cfg(feature = "export")]
pub use fan_in::Extraction;
pub use fan_in::{
    Bound, CopyRequest, FanIn, LoadRequest, Mapped, Merge, Params, Parts, Reduction, Rows,
    StagedColumn,
};
pub use history::LedgerHistory;
pub use inline_source::InlineSource;
pub use ledger::{DeferredItem, DeferredState, Fence, Ledger, LedgerRow};
pub use no_ledger::NoLedger;
pub use outbox::{Outbox, OutboxRow, OutboxType, Relayed, SubmitResult, Submitter, Waiting};
pub use replicas::{ReplicaReader, Replicas};
pub use row_count::RowCount;
pub use scope::{ReadSnapshot, Scope};
pub use source::{
    Batch, BlockCount, ChunkPage, CutLimits, CutRange, FilterValues, Item, Preview, ReadLimits,
    RecordReader, RowSet, ScanSegment, Source, ValuePages,
};
pub use target::{
    Committing, DeferredItems, DeferredPage, DryRun, Fencing, LedgerSchema, Marked, Target,
};
pub use validate::validate;
pub use write::settable_columns;
