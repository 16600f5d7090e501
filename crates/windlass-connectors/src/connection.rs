//! A database as a whole: its schema, its health, its outbox and the history of its ledger.

use crate::{
    FanIn, LedgerHistory, LedgerSchema, Merge, Outbox, ReadSnapshot, Result, RowCount, Scope,
    Source, Target,
};
use async_trait::async_trait;
use std::time::Duration;
use windlass_core::Table;
use windlass_core::problem::{Code, Problem};

/// A database with records. A job does not hold a connection: it holds one handle for each role,
/// its [`Source`], its [`Target`] and its [`FanIn`].
pub trait Connection: Catalog + Source + Target + LedgerSchema + FanIn + Merge {
    /// The table in which applications put requests.
    fn outbox(&self) -> &dyn Outbox;
    /// What its ledger remembers across jobs.
    fn history(&self) -> &dyn LedgerHistory;
}

impl<T> Connection for T
where
    T: Catalog + Source + Target + LedgerSchema + FanIn + Merge + Outbox + LedgerHistory,
{
    fn outbox(&self) -> &dyn Outbox {
        self
    }

    fn history(&self) -> &dyn LedgerHistory {
        self
    }
}

/// Describes the tables and the server of a connection.
#[async_trait]
pub trait Catalog: Send + Sync {
    /// The names of the user's tables. Windlass's own tables are left out.
    async fn tables(&self) -> Result<Vec<String>>;
    /// The names of the user's tables that have rows of their own: no views.
    async fn base_tables(&self) -> Result<Vec<String>> {
        self.tables().await
    }
    /// The schema of the source's table or query.
    async fn describe(&self, source: &windlass_core::Source) -> Result<Table>;
    /// Refuses a `sql` or `map` step whose statement is not restricted by `{chunk}`.
    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        let _ = job_type;
        Ok(())
    }
    /// Prepares the statements of a job type in every form in which they will run, without running them.
    /// Refuses the first one that the database refuses.
    async fn prepare_statements(&self, scope: &Scope) -> Result<()> {
        let _ = scope;
        Ok(())
    }
    /// Prepares the update of these columns under the guard, without running it.
    async fn prepare_update(&self, scope: &Scope, columns: &[String]) -> Result<()> {
        let _ = (scope, columns);
        Ok(())
    }
    /// The number of records of the source that match `source.where`.
    async fn row_count(&self, scope: &Scope) -> Result<RowCount> {
        Ok(RowCount::Estimated(scope.table.estimated_rows))
    }
    /// Runs a SELECT of the user's that returns one number. `None` when the number is NULL.
    async fn measure(&self, sql: &str) -> Result<Option<f64>>;
    /// The position of the latest write in the server's log. `None` where the log has no positions
    /// that replicas report too.
    async fn position(&self) -> Result<Option<i64>> {
        Ok(None)
    }
    /// Why a confirmed commit could be lost when the server's machine crashes, because of settings
    /// that only its administrator can change. `None` when commits are durable.
    async fn durability_risk(&self) -> Result<Option<String>> {
        Ok(None)
    }
    /// Refuses `source.consistency = "snapshot"` where several connections cannot read under one snapshot.
    async fn check_snapshots(&self) -> Result<()> {
        let detail = "is \"snapshot\", but only PostgreSQL 14 and later read several chunks under one \
                      snapshot; \"chunk\" would be right";
        Err(Problem::field(Code::Source, "source.consistency", detail).into())
    }
    /// Takes a snapshot and holds it. It cannot be used any more once the source's table was rewritten. `None` if
    /// this process already holds as many snapshots as its connections allow.
    async fn hold_snapshot(&self, scope: &Scope) -> Result<Option<Box<dyn HeldSnapshot>>> {
        let _ = scope;
        self.check_snapshots().await?;
        Ok(None)
    }
    /// Whether the server is a replica, and how far it has replicated.
    async fn replication(&self) -> Result<Replication> {
        Ok(Replication::Primary)
    }
}

/// A snapshot that this process holds by an open transaction. It ends when this is dropped.
#[async_trait]
pub trait HeldSnapshot: Send + Sync {
    /// What others need to read under it.
    fn snapshot(&self) -> &ReadSnapshot;
    /// Fails if the snapshot is lost.
    async fn check(&self) -> Result<()>;
    /// Ends the snapshot and returns its connection.
    async fn release(self: Box<Self>);
}

/// The replication state that a server reports about itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Replication {
    /// It is not a replica.
    Primary,
    /// It is a replica that has applied its primary's writes up to this position.
    Applied(i64),
    /// It is a replica that measures its own lag.
    Behind(Duration),
}
