//! The connection pool. Connections are made on demand and checked when a transaction begins.

use std::{fmt, sync::Arc, time::Duration};

use mysql_async::Conn;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Transaction, settings::Settings};
use crate::gate::Gate;
use crate::{ConnectionGate, Error, ErrorClass};

/// A MySQL or MariaDB database with a pool of connections. A clone shares the pool.
#[derive(Clone)]
pub struct Mysql {
    inner: Arc<Inner>,
    gate: Gate,
}

/// The access mode of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read-only, on one snapshot.
    Read,
    /// Read and write, with read committed isolation.
    Write,
}

struct Inner {
    settings: Settings,
    max_connections: usize,
    free: Arc<Semaphore>,
    idle: Mutex<Vec<Session>>,
}

/// A connection, and the session variables that were set last.
pub(super) struct Session {
    pub(super) conn: Conn,
    pub(super) variables: String,
}

impl Mysql {
    /// Configures the database of this URL. Does not connect yet.
    pub fn new(url: &str, max_connections: usize) -> Result<Self, Error> {
        let max_connections = max_connections.max(1);
        let (settings, free) = (Settings::parse(url)?, Arc::new(Semaphore::new(max_connections)));
        Ok(Mysql {
            inner: Arc::new(Inner { settings, max_connections, free, idle: Mutex::default() }),
            gate: Gate::default(),
        })
    }

    /// Waits for this gate before it uses a connection.
    pub fn with_gate(self, gate: Option<Arc<dyn ConnectionGate>>) -> Self {
        Mysql { gate: Gate::new(gate), ..self }
    }

    /// Begins a transaction in a session with these variables (`a = 1, b = 2`), in one round trip.
    ///
    /// A pooled connection may be dead, as all of them are after a restart of the server. Nothing is
    /// committed at that point, so the next connection is used instead.
    pub async fn begin(&self, access: Access, variables: &str) -> Result<Transaction, Error> {
        self.gate.wait_until_open().await;
        let mut dead = 0;
        loop {
            let permit = self.acquire().await?;
            let idle = self.inner.idle.lock().pop();
            let fresh = idle.is_none();
            let session = match idle {
                Some(session) => session,
                None => Session { conn: self.connect().await?, variables: String::new() },
            };
            match Transaction::begin(session, permit, self.clone(), access, variables).await {
                Err(error)
                    if error.class == ErrorClass::Connection
                        && !fresh
                        && dead < self.inner.max_connections =>
                {
                    dead += 1;
                    tracing::debug!(%error, "pooled connection is dead; using another");
                }
                outcome => return outcome,
            }
        }
    }

    /// The most connections of the pool.
    pub fn max_connections(&self) -> usize {
        self.inner.max_connections
    }

    pub(super) async fn connect(&self) -> Result<Conn, Error> {
        self.inner.settings.connect().await
    }

    pub(super) fn give_back(&self, session: Session) {
        self.inner.idle.lock().push(session);
    }

    async fn acquire(&self) -> Result<OwnedSemaphorePermit, Error> {
        match tokio::time::timeout(ACQUIRE_TIMEOUT, self.inner.free.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Error::new(
                ErrorClass::Retry,
                "timed out waiting for a free database connection: all of them are in use",
            )),
        }
    }
}

/// Omits the settings, which contain the password.
impl fmt::Debug for Mysql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mysql")
            .field("max_connections", &self.inner.max_connections)
            .finish_non_exhaustive()
    }
}

/// The timeout of waiting for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
