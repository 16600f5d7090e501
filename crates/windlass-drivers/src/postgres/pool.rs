//! The pool: connections are made when first needed and checked when a transaction begins.

use std::{fmt, ops::ControlFlow, sync::Arc, time::Duration};

use deadpool_postgres::{Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime};

use super::{Listener, Param, Transaction, settings::Settings};
use crate::{Class, Error, Row};

/// A PostgreSQL database, reached through a pool of connections; a clone shares the pool.
#[derive(Clone)]
pub struct Postgres {
    pool: Pool,
    pub(super) settings: Arc<Settings>,
}

impl Postgres {
    /// Prepares to reach the database of this URL; no connection is made yet.
    pub fn new(url: &str, max_connections: usize) -> Result<Self, Error> {
        let settings = Settings::parse(url)?;
        let manager = Manager::from_config(
            settings.config.clone(),
            settings.tls.clone(),
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        // The connection that was used last knows the tables already, which is a good part of what a
        // small statement costs the server.
        let pool = Pool::builder(manager)
            .queue_mode(QueueMode::Lifo)
            .max_size(max_connections.max(1))
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(settings.connect_timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::new(Class::Other, error.to_string()))?;
        Ok(Postgres { pool, settings: Arc::new(settings) })
    }

    /// Runs one statement in a durable transaction of its own with these settings, in one round
    /// trip: begin, statement and commit are sent together. With an error of class `Connection`
    /// the outcome is unknown.
    pub async fn single(
        &self,
        settings: &str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Error> {
        let client = self.pool.get().await?;
        Transaction::single(client, self.settings.clone(), &begin(settings), sql, params).await
    }

    /// Runs one statement that only reads, in a transaction of its own with these settings and in
    /// one round trip. Its rows go to `take` as they arrive, until it has enough.
    pub async fn read<E: From<Error>>(
        &self,
        settings: &str,
        sql: &str,
        params: &[Param<'_>],
        take: impl FnMut(Row) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let client = self.pool.get().await.map_err(Error::from)?;
        let begin = format!("BEGIN; {settings}");
        Transaction::read(client, self.settings.clone(), &begin, sql, params, take).await
    }

    /// Begins a durable transaction with these settings (`""` or `SET LOCAL a = b; …`), in one round
    /// trip.
    pub async fn transaction(&self, settings: &str) -> Result<Transaction, Error> {
        Ok(self.begin(settings, None).await?.0)
    }

    /// Begins a durable transaction and runs its first statement in the same round trip.
    pub async fn transaction_with(
        &self,
        settings: &str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<(Transaction, Vec<Row>), Error> {
        self.begin(settings, Some((sql, params))).await
    }

    /// A pooled connection can have died since its last use, as all of them do when the server
    /// restarts. Nothing is committed at that point, so the next connection is taken instead.
    async fn begin(
        &self,
        settings: &str,
        first: Option<(&str, &[Param<'_>])>,
    ) -> Result<(Transaction, Vec<Row>), Error> {
        let begin = begin(settings);
        let mut dead = 0;
        loop {
            let client = self.pool.get().await?;
            match Transaction::begin(client, self.settings.clone(), &begin, first).await {
                Err(error) if error.class == Class::Connection && dead < self.max_connections() => {
                    dead += 1;
                    tracing::debug!(%error, "a pooled connection was dead, taking another");
                }
                outcome => return outcome,
            }
        }
    }

    /// Listens on a channel, on a connection of its own. `None` where notifications do not arrive,
    /// as behind a pooler in transaction mode.
    pub async fn listen(&self, channel: &str) -> Result<Option<Listener>, Error> {
        Listener::connect(self, channel).await
    }

    /// How many connections the pool makes at most.
    pub fn max_connections(&self) -> usize {
        self.pool.status().max_size
    }
}

/// Every transaction states that its commit waits for the disk: the default is the server's, the
/// database's or the role's, and a pooler keeps nothing that a session has set. What may be lost
/// in a crash says so in its settings, which come later and win.
fn begin(settings: &str) -> String {
    format!("BEGIN; {DURABLE}; {settings}")
}

/// The pool prints itself with the connection's settings, so this says nothing of them.
impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("max_connections", &self.max_connections())
            .finish_non_exhaustive()
    }
}

/// From here on this transaction's commit returns when it is on the disk (and on the synchronous
/// standbys, where there are some).
pub const DURABLE: &str = "SET LOCAL synchronous_commit = on";

/// How long to wait for a connection that somebody else is using.
const WAIT: Duration = Duration::from_secs(30);
