//! Table `windlass_connection_shares`: how many connections each process may open to a database.

use std::time::Duration;

use async_trait::async_trait;

use crate::Result;

/// The connections that a process takes of `max_connections_total`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionShare {
    /// The name of the connection.
    pub connection: String,
    /// The process, by an id of its own.
    pub process: String,
    /// How many connections it may open.
    pub connections: i64,
}

/// What is taken of `max_connections_total`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenConnections {
    /// The connections of all shares.
    pub connections: i64,
    /// The processes that have a share.
    pub processes: i64,
}

/// Divides `max_connections_total` of each connection among processes.
#[async_trait]
pub trait ConnectionShareStore: Send + Sync {
    /// Takes a share, or extends the one that the process has, until `ttl` from now. Returns false and
    /// takes nothing if the shares of the other processes leave less than that of the total.
    async fn take_connection_share(
        &self,
        share: &ConnectionShare,
        total: i64,
        ttl: Duration,
    ) -> Result<bool>;
    /// Gives back the share of a process.
    async fn release_connection_share(&self, connection: &str, process: &str) -> Result<()>;
    /// The shares of a connection that have not expired.
    async fn taken_connections(&self, connection: &str) -> Result<TakenConnections>;
}
