//! The pool: connections are made when first needed and checked when a transaction begins.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mysql_async::Conn;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Transaction, settings::Settings};
use crate::{Class, Error};

/// A MySQL or MariaDB database, reached through a pool of connections; a clone shares the pool.
#[derive(Clone)]
pub struct Mysql {
    inner: Arc<Inner>,
}

/// What a transaction may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only read, everything as of one moment.
    Read,
    /// Write, and see what others commit meanwhile.
    Write,
}

struct Inner {
    settings: Settings,
    most: usize,
    free: Arc<Semaphore>,
    idle: Mutex<Vec<Session>>,
}

/// A connection, and the variables it was given last.
pub(super) struct Session {
    pub(super) conn: Conn,
    pub(super) variables: String,
}

impl Mysql {
    /// Prepares to reach the database of this URL; no connection is made yet.
    pub fn new(url: &str, max_connections: usize) -> Result<Self, Error> {
        let most = max_connections.max(1);
        let (settings, free) = (Settings::parse(url)?, Arc::new(Semaphore::new(most)));
        Ok(Mysql { inner: Arc::new(Inner { settings, most, free, idle: Mutex::default() }) })
    }

    /// Begins a transaction in a session with these variables (`a = 1, b = 2`), in one round trip.
    ///
    /// A pooled connection can have died since its last use, as all of them do when the server
    /// restarts. Nothing is committed at that point, so the next connection is taken instead.
    pub async fn begin(&self, access: Access, variables: &str) -> Result<Transaction, Error> {
        let mut dead = 0;
        loop {
            let place = self.place().await?;
            let kept = self.idle().pop();
            let fresh = kept.is_none();
            let session = match kept {
                Some(session) => session,
                None => Session { conn: self.connect().await?, variables: String::new() },
            };
            match Transaction::begin(session, place, self.clone(), access, variables).await {
                Err(error)
                    if error.class == Class::Connection && !fresh && dead < self.inner.most =>
                {
                    dead += 1;
                    tracing::debug!(%error, "a pooled connection was dead, taking another");
                }
                outcome => return outcome,
            }
        }
    }

    /// How many connections the pool makes at most.
    pub fn max_connections(&self) -> usize {
        self.inner.most
    }

    pub(super) async fn connect(&self) -> Result<Conn, Error> {
        self.inner.settings.connect().await
    }

    pub(super) fn give_back(&self, session: Session) {
        self.idle().push(session);
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        match tokio::time::timeout(WAIT, self.inner.free.clone().acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(Error::new(
                Class::Retry,
                "no database connection became free in time: all of them are in use",
            )),
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        // A panic cannot leave the list half changed, so a poisoned lock is as good as any.
        self.inner.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The settings hold the password, so this says nothing of them.
impl fmt::Debug for Mysql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mysql").field("max_connections", &self.inner.most).finish_non_exhaustive()
    }
}

/// How long to wait for a connection that somebody else is using.
const WAIT: Duration = Duration::from_secs(30);
