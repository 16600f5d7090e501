//! One transaction on one connection, ended only by `commit` or `rollback`.

use std::{
    future::Future,
    ops::ControlFlow,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use deadpool_postgres::{Client, Object};
use futures::{StreamExt as _, future::join_all};
use tokio_postgres::{
    CopyInSink, CopyOutStream, Row, SimpleQueryMessage,
    types::{ToSql, Type},
};

use super::{Param, Rows, cancel::cancel, prepared::Sql, settings::Settings};
use crate::{Error, ErrorClass};

/// An open transaction.
///
/// Every statement takes one round trip. Statements are unnamed, so that they are safe behind a pooler that assigns
/// server connections per transaction, except those of [`Postgres::single_prepared`](super::Postgres::single_prepared).
///
/// If it is dropped without `commit` or `rollback`, as when a task is cancelled, its connection is removed
/// from the pool and closed, and the server rolls back. A running statement is cancelled first, which
/// releases its locks.
///
/// Columns of types that are defined in the database (enums, domains over them, extensions) must be cast to a
/// built-in type in the SQL, for example `::text`. Otherwise the client would query such a type in the middle
/// of the answer, which deadlocks when the answer is large.
pub struct Transaction {
    /// Empty only after the transaction has ended.
    client: Option<Client>,
    settings: Arc<Settings>,
    /// The number of statements that may still be running.
    running: AtomicUsize,
}

impl Transaction {
    fn new(client: Client, settings: Arc<Settings>) -> Self {
        Transaction { client: Some(client), settings, running: 0.into() }
    }

    /// Begins and runs the first statement, if there is one, in one round trip.
    pub(super) async fn begin(
        client: Client,
        settings: Arc<Settings>,
        begin: &str,
        first: Option<(&str, &[Param<'_>])>,
    ) -> Result<(Self, Vec<Row>), Error> {
        // Built before the first message, so that cancelling during it closes the connection too.
        let transaction = Transaction::new(client, settings);
        let rows = match first {
            None => transaction.start(begin).await.map(|()| Vec::new()),
            Some((sql, params)) => {
                let sent = tokio::join!(
                    biased;
                    transaction.start(begin),
                    transaction.query(sql, params)
                );
                sent.0.and(sent.1)
            }
        };
        match rows {
            Ok(rows) => Ok((transaction, rows)),
            Err(error) => {
                transaction.roll_back_after(&error).await;
                Err(error)
            }
        }
    }

    /// Begins, runs one statement with each of these parameters, and commits, in one round trip. Returns the rows
    /// of each.
    pub(super) async fn for_each(
        client: Client,
        settings: Arc<Settings>,
        begin: &str,
        sql: Sql<'_>,
        params: &[&[Param<'_>]],
    ) -> Result<Vec<Vec<Row>>, Error> {
        let mut transaction = Transaction::new(client, settings);
        // Each of them is sent when it is polled for the first time, and `join_all` polls all of them then.
        let queries = params.iter().map(|params| transaction.query_sql(sql, params));
        let (begun, rows, committed) = tokio::join!(
            biased;
            transaction.start(begin),
            join_all(queries),
            transaction.batch("COMMIT")
        );
        let any_ran = rows.iter().any(Result::is_ok);
        let outcome = match begun {
            // Without a transaction the server has run the statements and committed them.
            Err(error) if any_ran => Err(Error { class: ErrorClass::Connection, ..error }),
            begun => begun
                .and_then(|()| rows.into_iter().collect::<Result<Vec<_>, _>>())
                .and_then(|rows| committed.map(|()| rows)),
        };
        match outcome {
            Ok(rows) => {
                transaction.give_back();
                Ok(rows)
            }
            Err(error) => {
                transaction.roll_back_after(&error).await;
                Err(error)
            }
        }
    }

    /// Begins, runs one statement that only reads, and ends in one round trip. Calls `take` with each row
    /// until it breaks.
    pub(super) async fn read<E: From<Error>>(
        client: Client,
        settings: Arc<Settings>,
        begin: &str,
        sql: &str,
        params: &[Param<'_>],
        mut take: impl FnMut(Row) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let mut transaction = Transaction::new(client, settings);
        let read = async {
            // COMMIT is sent with the rest, and its answer follows the rows.
            let mut ended = pin!(transaction.batch("COMMIT"));
            let (begun, rows, early) = tokio::join!(
                biased;
                transaction.start(begin),
                transaction.stream(sql, params),
                async { futures::poll!(&mut ended) }
            );
            begun?;
            let mut rows = rows?;
            while let Some(row) = rows.next().await {
                match take(row?) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => break,
                    Err(refused) => return Ok(Err(refused)),
                }
            }
            drop(rows);
            match early {
                Poll::Ready(ended) => ended?,
                Poll::Pending => ended.await?,
            }
            Ok(Ok(()))
        };
        match read.await {
            Ok(taken) => {
                if taken.is_ok() {
                    transaction.running.store(0, Ordering::Relaxed);
                    transaction.give_back();
                }
                taken
            }
            Err(error) => {
                transaction.roll_back_after(&error).await;
                Err(error.into())
            }
        }
    }

    /// Runs the text that begins the transaction. Warns if that takes long: a pooler that has no free connection to
    /// the server lets its clients wait without a word.
    async fn start(&self, begin: &str) -> Result<(), Error> {
        let mut started = pin!(self.batch(begin));
        match tokio::time::timeout(START_NOTICE, &mut started).await {
            Ok(outcome) => outcome,
            Err(_) => {
                tracing::warn!(
                    "the database has not begun a transaction for {START_NOTICE:?}: a pooler in front of it has no \
                     free connection (PgBouncer: default_pool_size), the server is overloaded, or a lock is awaited"
                );
                started.await
            }
        }
    }

    /// Runs a statement and returns its rows.
    pub async fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        let client = self.client()?;
        let params = typed(params);
        self.watch(client.query_typed(sql, &params)).await
    }

    async fn query_sql(&self, sql: Sql<'_>, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        match sql {
            Sql::Text(sql) => self.query(sql, params).await,
            Sql::Prepared(statement) => {
                let client = self.client()?;
                let params: Vec<_> =
                    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect();
                self.watch(client.query(statement, &params)).await
            }
        }
    }

    /// Runs a statement that returns at most one row.
    pub async fn query_opt(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>, Error> {
        let client = self.client()?;
        let params = typed(params);
        self.watch(client.query_typed_opt(sql, &params)).await
    }

    /// Runs a statement that returns exactly one row.
    pub async fn query_one(&self, sql: &str, params: &[Param<'_>]) -> Result<Row, Error> {
        let client = self.client()?;
        let params = typed(params);
        self.watch(client.query_typed_one(sql, &params)).await
    }

    /// Runs a statement and returns the number of affected rows.
    pub async fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Error> {
        let client = self.client()?;
        let params = typed(params);
        self.watch(client.execute_typed(sql, &params)).await
    }

    /// Runs a statement and streams its rows, with at most a few buffers in memory.
    pub async fn stream(&self, sql: &str, params: &[Param<'_>]) -> Result<Rows, Error> {
        let client = self.client()?;
        let params = typed(params);
        let params = params.iter().map(|(value, kind)| (*value, kind.clone()));
        // It counts as running from here on, since the stream has the rest of the answer.
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(Rows::new(client.query_typed_raw(sql, params).await?))
    }

    /// Runs one or more statements without parameters, and discards their rows.
    pub async fn batch(&self, sql: &str) -> Result<(), Error> {
        let client = self.client()?;
        self.watch(client.batch_execute(sql)).await
    }

    /// Runs one statement in the simple protocol: no parameters, and all values as text.
    pub(super) async fn simple(&self, sql: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
        let client = self.client()?;
        self.watch(client.simple_query(sql)).await
    }

    /// Begins a `COPY … FROM STDIN`. Nothing is copied without calling `finish` on the sink.
    ///
    /// The client can only COPY with a named prepared statement. It is closed before the transaction ends, so
    /// it works behind poolers.
    pub async fn copy_in(&self, sql: &str) -> Result<CopyInSink<Bytes>, Error> {
        let client = self.client()?;
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(client.copy_in(sql).await?)
    }

    /// Runs a `COPY … TO STDOUT` and streams its bytes. Uses a named prepared statement like
    /// [`Transaction::copy_in`], which is closed before the first bytes arrive.
    pub async fn copy_out(&self, sql: &str) -> Result<CopyOutStream, Error> {
        let client = self.client()?;
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(client.copy_out(sql).await?)
    }

    /// Commits. After an error of the class `Connection` the outcome is unknown. After any other error the
    /// transaction was rolled back.
    pub async fn commit(self) -> Result<(), Error> {
        self.commit_with(COMMIT).await
    }

    /// Commits with this text.
    pub(super) async fn commit_with(mut self, commit: &str) -> Result<(), Error> {
        match self.batch(commit).await {
            Ok(()) => {
                self.give_back();
                Ok(())
            }
            Err(error) => {
                self.roll_back_after(&error).await;
                Err(error)
            }
        }
    }

    /// Runs a last statement and commits, in one round trip. Errors as of [`Transaction::commit`].
    pub async fn execute_and_commit(
        mut self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<u64, Error> {
        let (executed, committed) =
            tokio::join!(biased; self.execute(sql, params), self.batch("COMMIT"));
        match executed.and_then(|rows| committed.map(|()| rows)) {
            Ok(rows) => {
                self.give_back();
                Ok(rows)
            }
            Err(error) => {
                self.roll_back_after(&error).await;
                Err(error)
            }
        }
    }

    /// Rolls back after an error, unless the connection is lost. If the rollback fails too, dropping the
    /// transaction closes the connection, and the first error tells more.
    async fn roll_back_after(self, error: &Error) {
        if error.class != ErrorClass::Connection {
            let _ = self.rollback().await;
        }
    }

    /// Rolls back.
    pub async fn rollback(mut self) -> Result<(), Error> {
        self.batch("ROLLBACK").await?;
        self.give_back();
        Ok(())
    }

    fn client(&self) -> Result<&Client, Error> {
        // Unreachable, since the methods that empty it consume the transaction.
        self.client
            .as_ref()
            .ok_or_else(|| Error::new(ErrorClass::Other, "the transaction has ended"))
    }

    /// Marks the statement as running until the server has answered.
    async fn watch<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        self.running.fetch_add(1, Ordering::Relaxed);
        let outcome = answer.await;
        self.running.fetch_sub(1, Ordering::Relaxed);
        Ok(outcome?)
    }

    fn give_back(&mut self) {
        // Dropping the object returns it to the pool.
        drop(self.client.take());
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else {
            return;
        };
        let connection = Object::take(client);
        if self.running.load(Ordering::Relaxed) == 0 || connection.is_closed() {
            return;
        }
        // Without a runtime the request cannot be sent. Closing the connection must suffice.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let settings = self.settings.clone();
        runtime.spawn(async move {
            // Keeps the connection open until then, since a pooler ignores the cancellation of a closed one.
            cancel(&connection.cancel_token(), &settings).await;
            drop(connection);
        });
    }
}

/// How long the begin of a transaction may take without a warning.
const START_NOTICE: Duration = Duration::from_secs(5);

/// COMMIT of a failed transaction rolls back and reports success. The empty SELECT before it fails in that
/// case, in the same round trip. A statement that is sent together with its COMMIT reports its own failure.
const COMMIT: &str = "SELECT; COMMIT";

fn typed<'a>(params: &'a [Param<'_>]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    params.iter().map(|param| (param as &(dyn ToSql + Sync), param.kind())).collect()
}
