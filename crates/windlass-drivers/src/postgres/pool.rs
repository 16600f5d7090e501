//! The connection pool. Connections are made on demand and checked when a transaction begins.

use std::{fmt, ops::ControlFlow, sync::Arc, time::Duration};

use deadpool_postgres::{
    Client, Manager, ManagerConfig, Pool, PoolError, QueueMode, RecyclingMethod, Runtime,
    TimeoutType,
};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::{
    Listener, Param, Transaction,
    prepared::{Sessions, Sql},
    settings::Settings,
};
use crate::gate::Gate;
use crate::{ConnectionGate, Error, ErrorClass, Row};

/// A PostgreSQL database with a pool of connections. A clone shares the pool.
#[derive(Clone)]
pub struct Postgres {
    pool: Pool,
    pub(super) settings: Arc<Settings>,
    idle_closer: Arc<Mutex<Option<JoinHandle<()>>>>,
    sessions: Arc<Sessions>,
    gate: Gate,
}

impl Postgres {
    /// Configures the database of this URL. Does not connect yet.
    pub fn new(url: &str, max_connections: usize) -> Result<Self, Error> {
        Self::with(Settings::parse(url)?, max_connections)
    }

    pub(super) fn with(settings: Settings, max_connections: usize) -> Result<Self, Error> {
        let manager = Manager::from_config(
            settings.config.clone(),
            settings.tls.clone(),
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        // The most recently used connection has cached the tables' metadata, which is a good part of the
        // cost of a small statement.
        let pool = Pool::builder(manager)
            .queue_mode(QueueMode::Lifo)
            .max_size(max_connections.max(1))
            .wait_timeout(Some(ACQUIRE_TIMEOUT))
            .create_timeout(Some(settings.connect_timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::new(ErrorClass::Other, error.to_string()))?;
        Ok(Postgres {
            pool,
            settings: Arc::new(settings),
            idle_closer: Arc::default(),
            sessions: Arc::default(),
            gate: Gate::default(),
        })
    }

    /// Waits for this gate before it uses a connection.
    pub fn with_gate(self, gate: Option<Arc<dyn ConnectionGate>>) -> Self {
        Postgres { gate: Gate::new(gate), ..self }
    }

    /// Runs one statement in its own durable transaction with these settings, in one round trip: begin,
    /// statement and commit are sent together. After an error of the class `Connection` the outcome is
    /// unknown.
    pub async fn single(
        &self,
        settings: &str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Error> {
        only(self.for_each(settings, sql, &[params]).await?)
    }

    /// Like [`Postgres::single`], with each of these parameters: all in one transaction and one round trip. Returns
    /// the rows of each.
    async fn for_each(
        &self,
        settings: &str,
        sql: &str,
        params: &[&[Param<'_>]],
    ) -> Result<Vec<Vec<Row>>, Error> {
        let client = self.client().await?;
        let (begin, sql) = (begin(settings), Sql::Text(sql));
        Transaction::for_each(client, self.settings.clone(), &begin, sql, params).await
    }

    /// Like [`Postgres::single`], for a statement that runs often: each connection prepares it once, so that the
    /// server neither parses nor plans it again. Not before [`Postgres::listen`] has shown that there is no pooler
    /// which assigns server connections per transaction.
    ///
    /// The server may keep the plan while the tables grow, so the settings must exclude plans that are good for
    /// small tables only.
    pub async fn single_prepared(
        &self,
        settings: &str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Error> {
        only(self.for_each_prepared(settings, sql, &[params]).await?)
    }

    /// Like [`Postgres::single_prepared`], with each of these parameters: all in one transaction and one round trip.
    /// Returns the rows of each.
    pub async fn for_each_prepared(
        &self,
        settings: &str,
        sql: &str,
        params: &[&[Param<'_>]],
    ) -> Result<Vec<Vec<Row>>, Error> {
        let Some(first) = params.first() else { return Ok(Vec::new()) };
        if !self.sessions.kept() {
            return self.for_each(settings, sql, params).await;
        }
        self.sessions.expire_plans(&self.pool);
        let client = self.client().await?;
        let kinds: Vec<_> = first.iter().map(Param::kind).collect();
        let outcome = match client.prepare_typed_cached(sql, &kinds).await {
            Ok(statement) => {
                let (begin, sql) = (begin(settings), Sql::Prepared(&statement));
                Transaction::for_each(client, self.settings.clone(), &begin, sql, params).await
            }
            Err(error) => Err(error.into()),
        };
        match outcome {
            // Nothing was committed.
            Err(error) if self.sessions.lost_statement(&self.pool, &error) => {
                self.for_each(settings, sql, params).await
            }
            outcome => outcome,
        }
    }

    /// Runs one statement that only reads, in its own transaction with these settings and in one round
    /// trip. Calls `take` with each row until it breaks.
    pub async fn read<E: From<Error>>(
        &self,
        settings: &str,
        sql: &str,
        params: &[Param<'_>],
        take: impl FnMut(Row) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let client = self.client().await?;
        let begin = format!("BEGIN; {settings}");
        Transaction::read(client, self.settings.clone(), &begin, sql, params, take).await
    }

    /// Begins a durable transaction with these settings (`""` or `SET LOCAL a = b; …`), in one round
    /// trip.
    pub async fn transaction(&self, settings: &str) -> Result<Transaction, Error> {
        Ok(self.begin(&begin(settings), None).await?.0)
    }

    /// Begins a transaction with exactly this text.
    pub(super) async fn begin_with(&self, begin: &str) -> Result<Transaction, Error> {
        Ok(self.begin(begin, None).await?.0)
    }

    /// Begins a durable transaction and runs its first statement in the same round trip.
    ///
    /// The server runs the statement also if BEGIN fails, for example because it was cancelled. Without a
    /// transaction the statement would be committed alone, so it must have the condition [`IN_TRANSACTION`].
    pub async fn transaction_with(
        &self,
        settings: &str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<(Transaction, Vec<Row>), Error> {
        debug_assert!(sql.contains(IN_TRANSACTION), "no condition `{IN_TRANSACTION}` in {sql}");
        self.begin(&begin(settings), Some((sql, params))).await
    }

    /// A pooled connection may be dead, as all of them are after a restart of the server. Nothing is
    /// committed at that point, so the next connection is used instead.
    async fn begin(
        &self,
        begin: &str,
        first: Option<(&str, &[Param<'_>])>,
    ) -> Result<(Transaction, Vec<Row>), Error> {
        let mut dead = 0;
        loop {
            let client = self.client().await?;
            match Transaction::begin(client, self.settings.clone(), begin, first).await {
                Err(error)
                    if error.class == ErrorClass::Connection && dead < self.max_connections() =>
                {
                    dead += 1;
                    tracing::debug!(%error, "pooled connection is dead; using another");
                }
                outcome => return outcome,
            }
        }
    }

    /// A connection of the pool, or a new one.
    async fn client(&self) -> Result<Client, Error> {
        self.gate.wait_until_open().await;
        self.start_idle_closer();
        self.pool.get().await.map_err(|error| match error {
            PoolError::Timeout(TimeoutType::Wait) => error.into(),
            error => self.settings.connect_error(error.into()),
        })
    }

    /// Starts the task that closes idle connections, unless it runs.
    fn start_idle_closer(&self) {
        let mut task = self.idle_closer.lock();
        // The task ends with the last connection, or with the runtime that it was spawned on.
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let pool = self.pool.weak();
        *task = Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(IDLE_TIMEOUT / 2).await;
                let Some(pool) = pool.upgrade() else { return };
                pool.retain(|_, metrics| metrics.last_used() < IDLE_TIMEOUT);
                if pool.status().size == 0 {
                    return;
                }
            }
        }));
    }

    /// Listens on a channel with a separate connection. `None` if notifications do not arrive, as behind a
    /// pooler in transaction mode.
    pub async fn listen(&self, channel: &str) -> Result<Option<Listener>, Error> {
        self.gate.wait_until_open().await;
        let listener = Listener::connect(self, channel).await?;
        self.sessions.set_kept(listener.is_some());
        Ok(listener)
    }

    /// The most connections of the pool.
    pub fn max_connections(&self) -> usize {
        self.pool.status().max_size
    }
}

/// The rows of a statement that ran once.
fn only(mut rows: Vec<Vec<Row>>) -> Result<Vec<Row>, Error> {
    rows.pop().ok_or_else(|| Error::new(ErrorClass::Other, "the statement did not run"))
}

/// Every transaction sets `synchronous_commit`, since its default may differ by server, database and role, and
/// a pooler does not keep session settings. A transaction that need not be durable overrides it in its own
/// settings.
fn begin(settings: &str) -> String {
    format!("BEGIN; {SET_IN_TRANSACTION}; {DURABLE}; {settings}")
}

/// Omits the settings, which contain the password.
impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("max_connections", &self.max_connections())
            .finish_non_exhaustive()
    }
}

/// The condition of a statement that must not run outside of a transaction. BEGIN may fail although the statements
/// that are sent with it succeed.
pub const IN_TRANSACTION: &str = "current_setting('windlass.in_transaction', true) = 'on'";

/// Makes [`IN_TRANSACTION`] true until the transaction ends.
const SET_IN_TRANSACTION: &str = "SET LOCAL windlass.in_transaction = 'on'";

/// Makes the transaction's commit wait until it is on disk, and on the synchronous standbys if there are some.
pub const DURABLE: &str = "SET LOCAL synchronous_commit = on";

/// A connection that is not used for this time is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The timeout of waiting for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
