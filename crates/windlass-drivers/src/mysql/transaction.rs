//! One transaction on one connection, ended only by `commit` or `rollback`.

use std::{future::Future, ops::ControlFlow};

use futures::future::BoxFuture;
use mysql_async::{Column, Conn, Params, Row, Value, consts::StatusFlags, prelude::Queryable as _};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    Mysql,
    pool::{Access, Session},
};
use crate::{Error, ErrorClass};

/// An open transaction.
///
/// If it is dropped without `commit` or `rollback`, as when a task is cancelled, its connection is removed
/// from the pool and closed, and the server rolls back. A running statement is killed first, since MySQL
/// would otherwise run it to its end with all its locks.
pub struct Transaction {
    /// Empty only after the transaction has ended.
    session: Option<Session>,
    db: Mysql,
    _permit: OwnedSemaphorePermit,
    /// Whether a statement may still be running.
    running: bool,
    /// Whether a statement failed. The server may have rolled back, and later statements would run outside
    /// of a transaction: it must not be committed.
    failed: bool,
}

/// The answer of a row handler.
pub enum Flow {
    /// Continue with the next row.
    More,
    /// Stop.
    Enough,
    /// Wait for this future, and continue if it returns true.
    Wait(BoxFuture<'static, bool>),
}

impl Transaction {
    pub(super) async fn begin(
        session: Session,
        permit: OwnedSemaphorePermit,
        db: Mysql,
        access: Access,
        variables: &str,
    ) -> Result<Self, Error> {
        let changed = session.variables != variables;
        let mut transaction = Transaction {
            session: Some(session),
            db,
            _permit: permit,
            running: false,
            failed: false,
        };
        let mut begin = String::new();
        if changed && !variables.is_empty() {
            begin.push_str(&format!("SET SESSION {variables}; "));
        }
        begin.push_str(match access {
            Access::Write => "START TRANSACTION",
            Access::Read => {
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION READ ONLY"
            }
        });
        if changed && let Some(session) = &mut transaction.session {
            // The session variables are unknown until the server answers.
            session.variables = String::from("?");
        }
        match transaction.batch(&begin).await {
            Ok(()) => {
                if let Some(session) = &mut transaction.session {
                    session.variables = variables.to_owned();
                }
                Ok(transaction)
            }
            Err(error) => {
                transaction.roll_back_after(&error).await;
                Err(error)
            }
        }
    }

    /// Runs a statement and returns its rows.
    pub async fn query(&mut self, sql: &str, params: Vec<Value>) -> Result<Vec<Row>, Error> {
        self.watch(async |conn| conn.exec(sql, bound(params)).await).await
    }

    /// Runs a statement and calls `take` with each row until it breaks.
    pub async fn read<E: From<Error>>(
        &mut self,
        sql: &str,
        params: Vec<Value>,
        mut take: impl FnMut(Row) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let flow = move |row| Ok(if take(row)?.is_continue() { Flow::More } else { Flow::Enough });
        self.stream(sql, params, flow).await
    }

    /// The same with a handler that may wait between rows.
    pub async fn stream<E: From<Error>>(
        &mut self,
        sql: &str,
        params: Vec<Value>,
        mut take: impl FnMut(Row) -> Result<Flow, E>,
    ) -> Result<(), E> {
        let mut refused = None;
        self.watch(async |conn| {
            let mut rows = conn.exec_iter(sql, bound(params)).await?;
            while let Some(row) = rows.next().await? {
                match take(row) {
                    Ok(Flow::More) => {}
                    Ok(Flow::Enough) => break,
                    Ok(Flow::Wait(until)) => {
                        if !until.await {
                            break;
                        }
                    }
                    Err(error) => {
                        refused = Some(error);
                        break;
                    }
                }
            }
            rows.drop_result().await
        })
        .await?;
        refused.map_or(Ok(()), Err)
    }

    /// Runs a statement and returns the number of matched rows. An implicit commit, as by DDL, is an error,
    /// since the transaction is no longer atomic.
    pub async fn execute(&mut self, sql: &str, params: Vec<Value>) -> Result<u64, Error> {
        let (matched, open) = self
            .watch(async |conn| {
                conn.exec_drop(sql, bound(params)).await?;
                let open = conn.last_ok_packet().is_none_or(|answer| {
                    answer.status_flags().contains(StatusFlags::SERVER_STATUS_IN_TRANS)
                });
                Ok((conn.affected_rows(), open))
            })
            .await?;
        if !open {
            self.failed = true;
            return Err(Error::new(
                ErrorClass::Definition,
                "the statement implicitly ended its transaction, as DDL and LOCK TABLES do in \
                 MySQL; only statements that leave it open can be run",
            ));
        }
        Ok(matched)
    }

    /// The columns of a statement, without running it.
    pub async fn columns(&mut self, sql: &str) -> Result<Vec<Column>, Error> {
        self.watch(async |conn| {
            let statement = conn.prep(sql).await?;
            let columns = statement.columns().to_vec();
            // A cached statement would keep these columns after the table was changed.
            conn.close(statement).await?;
            Ok(columns)
        })
        .await
    }

    /// Runs one or more statements without parameters, and discards their rows.
    pub async fn batch(&mut self, sql: &str) -> Result<(), Error> {
        self.watch(async |conn| conn.query_drop(sql).await).await
    }

    /// Commits. After an error of the class `Connection` the outcome is unknown. After any other error the
    /// transaction was rolled back.
    pub async fn commit(mut self) -> Result<(), Error> {
        if self.failed {
            self.rollback().await?;
            return Err(Error::new(ErrorClass::Other, "a statement of the transaction failed"));
        }
        match self.batch("COMMIT").await {
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

    /// Rolls back.
    pub async fn rollback(mut self) -> Result<(), Error> {
        self.batch("ROLLBACK").await?;
        self.give_back();
        Ok(())
    }

    /// Rolls back after an error, unless the connection is lost. If the rollback fails too, dropping the
    /// transaction closes the connection, and the first error tells more.
    async fn roll_back_after(self, error: &Error) {
        if error.class != ErrorClass::Connection {
            let _ = self.rollback().await;
        }
    }

    /// Marks the statement as running until the server has answered.
    async fn watch<T, F>(&mut self, ask: F) -> Result<T, Error>
    where
        F: AsyncFnOnce(&mut Conn) -> Result<T, mysql_async::Error>,
    {
        let Some(session) = &mut self.session else {
            // Unreachable, since the methods that empty it consume the transaction.
            return Err(Error::new(ErrorClass::Other, "the transaction has ended"));
        };
        self.running = true;
        let outcome = ask(&mut session.conn).await;
        self.running = false;
        outcome.map_err(|error| {
            self.failed = true;
            error.into()
        })
    }

    fn give_back(&mut self) {
        if let Some(session) = self.session.take() {
            self.db.give_back(session);
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        // Dropping the connection closes it. Without a runtime, killing the statement is not possible.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if !self.running || session.conn.is_disconnected() {
            return;
        }
        let db = self.db.clone();
        runtime.spawn(async move {
            if let Err(error) = kill(&db, session.conn.id()).await {
                tracing::debug!(%error, "failed to kill a statement");
            }
            drop(session);
        });
    }
}

/// Kills a connection and its running statement from another connection.
fn kill(db: &Mysql, id: u32) -> impl Future<Output = Result<(), Error>> {
    let db = db.clone();
    async move {
        let mut conn = db.connect().await?;
        conn.query_drop(format!("KILL {id}")).await?;
        Ok(conn.disconnect().await?)
    }
}

fn bound(params: Vec<Value>) -> Params {
    if params.is_empty() { Params::Empty } else { Params::Positional(params) }
}
