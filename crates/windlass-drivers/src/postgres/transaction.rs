//! One transaction on one connection, ended by `commit` or `rollback` and by nothing else.

use std::{
    future::Future,
    ops::ControlFlow,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};

use bytes::Bytes;
use deadpool_postgres::{Client, Object};
use futures::StreamExt as _;
use tokio_postgres::{
    CopyInSink, CopyOutStream, Row,
    types::{ToSql, Type},
};

use super::{Param, Rows, cancel::cancel, settings::Settings};
use crate::{Class, Error};

/// An open transaction.
///
/// Every statement is unnamed and takes one round trip, so it is safe behind a pooler that moves
/// transactions between server connections.
///
/// Dropped without `commit` or `rollback`, as happens when a task is cancelled, it takes its
/// connection out of the pool and closes it: the server rolls back, and nobody inherits an open
/// transaction. A statement that was still running is cancelled first, so that its locks go too.
///
/// Columns of types that the database itself defines (enums, domains over them, extensions) must be
/// cast to a built-in type in the SQL, `::text` for one: the client would ask the server for such
/// a type in the middle of the answer, which blocks for ever when the answer is large.
pub struct Transaction {
    /// Empty only once the connection has been given away.
    client: Option<Client>,
    settings: Arc<Settings>,
    /// How many statements were sent whose answers have perhaps not come to their end.
    running: AtomicUsize,
}

impl Transaction {
    /// Begins, and runs the first statement, if there is one, without waiting in between.
    pub(super) async fn begin(
        client: Client,
        settings: Arc<Settings>,
        begin: &str,
        first: Option<(&str, &[Param<'_>])>,
    ) -> Result<(Self, Vec<Row>), Error> {
        // Built before the first message, so that giving up while it is on its way closes the
        // connection as well.
        let transaction = Transaction { client: Some(client), settings, running: 0.into() };
        let rows = match first {
            None => transaction.batch(begin).await.map(|()| Vec::new()),
            Some((sql, params)) => {
                let sent = tokio::join!(
                    biased;
                    transaction.batch(begin),
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

    /// Begins, runs one statement and commits, without waiting in between.
    pub(super) async fn single(
        client: Client,
        settings: Arc<Settings>,
        begin: &str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Error> {
        let mut transaction = Transaction { client: Some(client), settings, running: 0.into() };
        let (begun, rows, committed) = tokio::join!(
            biased;
            transaction.batch(begin),
            transaction.query(sql, params),
            transaction.batch("COMMIT")
        );
        match begun.and(rows).and_then(|rows| committed.map(|()| rows)) {
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

    /// Begins, runs one statement that only reads, and ends, without waiting in between. Its rows
    /// go to `take` as they arrive, until it has enough.
    pub(super) async fn read<E: From<Error>>(
        client: Client,
        settings: Arc<Settings>,
        begin: &str,
        sql: &str,
        params: &[Param<'_>],
        mut take: impl FnMut(Row) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let mut transaction = Transaction { client: Some(client), settings, running: 0.into() };
        let read = async {
            // COMMIT is sent with the rest and awaited after the rows, which are in its way.
            let mut ended = pin!(transaction.batch("COMMIT"));
            let (begun, rows, early) = tokio::join!(
                biased;
                transaction.batch(begin),
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

    /// Runs a statement and gathers its rows.
    pub async fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        let client = self.client()?;
        let params = typed(params);
        self.watch(client.query_typed(sql, &params)).await
    }

    /// Runs a statement that gives one row or none.
    pub async fn query_opt(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>, Error> {
        let client = self.client()?;
        let params = typed(params);
        self.watch(client.query_typed_opt(sql, &params)).await
    }

    /// Runs a statement that gives exactly one row.
    pub async fn query_one(&self, sql: &str, params: &[Param<'_>]) -> Result<Row, Error> {
        let client = self.client()?;
        let params = typed(params);
        self.watch(client.query_typed_one(sql, &params)).await
    }

    /// Runs a statement and gives the number of rows it touched.
    pub async fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, Error> {
        let client = self.client()?;
        let params = typed(params);
        self.watch(client.execute_typed(sql, &params)).await
    }

    /// Runs a statement and hands out its rows as they arrive, never more than a few buffers ahead.
    pub async fn stream(&self, sql: &str, params: &[Param<'_>]) -> Result<Rows, Error> {
        let client = self.client()?;
        let params = typed(params);
        let params = params.iter().map(|(value, kind)| (*value, kind.clone()));
        // It counts as running from here on, since the reader holds the rest of the answer.
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(Rows::new(client.query_typed_raw(sql, params).await?))
    }

    /// Runs one or more statements without parameters; rows are thrown away.
    pub async fn batch(&self, sql: &str) -> Result<(), Error> {
        let client = self.client()?;
        self.watch(client.batch_execute(sql)).await
    }

    /// Begins a `COPY … FROM STDIN`; call `finish` on the sink, or nothing is copied.
    ///
    /// The one statement that is prepared under a name, for the length of this call: the client
    /// knows no other way to COPY. It goes before the transaction does, so poolers do not mind.
    pub async fn copy_in(&self, sql: &str) -> Result<CopyInSink<Bytes>, Error> {
        let client = self.client()?;
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(client.copy_in(sql).await?)
    }

    /// Runs a `COPY … TO STDOUT` and hands out its bytes as they arrive. Prepared under a name like
    /// [`Transaction::copy_in`], which is gone again when the first bytes come.
    pub async fn copy_out(&self, sql: &str) -> Result<CopyOutStream, Error> {
        let client = self.client()?;
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(client.copy_out(sql).await?)
    }

    /// Commits. With an error of class `Connection` the outcome is unknown; with any other, the
    /// transaction was rolled back.
    pub async fn commit(mut self) -> Result<(), Error> {
        match self.batch(COMMIT).await {
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

    /// After an error the connection is good, unless that is what broke, and the transaction
    /// perhaps still open. If the rollback fails as well, the drop closes the connection, and its
    /// error would say less than the first one.
    async fn roll_back_after(self, error: &Error) {
        if error.class != Class::Connection {
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
        // Both methods that empty it consume the transaction, so no caller can see this.
        self.client.as_ref().ok_or_else(|| Error::new(Class::Other, "the transaction has ended"))
    }

    /// Marks the statement as running for as long as the answer is awaited.
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
        // Dropping the object is how it returns to the pool.
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
        // Without a runtime there is nobody to send the request, and closing must do.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let settings = self.settings.clone();
        runtime.spawn(async move {
            // Until then the connection stays: a pooler forgets what runs for one who has left.
            cancel(&connection.cancel_token(), &settings).await;
            drop(connection);
        });
    }
}

/// COMMIT of a transaction in which a statement failed rolls back and reports success. The empty
/// SELECT before it fails in that case, in the same round trip. Who runs a statement together with
/// its COMMIT hears of the failure from the statement.
const COMMIT: &str = "SELECT; COMMIT";

fn typed<'a>(params: &'a [Param<'_>]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    params.iter().map(|param| (param as &(dyn ToSql + Sync), param.kind())).collect()
}
