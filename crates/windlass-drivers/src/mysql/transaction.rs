//! One transaction on one connection, ended by `commit` or `rollback` and by nothing else.

use std::{future::Future, ops::ControlFlow};

use futures::future::BoxFuture;
use mysql_async::{Column, Conn, Params, Row, Value, consts::StatusFlags, prelude::Queryable as _};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    Mysql,
    pool::{Access, Session},
};
use crate::{Class, Error};

/// An open transaction.
///
/// Dropped without `commit` or `rollback`, as happens when a task is cancelled, it takes its
/// connection out of the pool and closes it: the server rolls back, and nobody inherits an open
/// transaction. A statement that was still running is killed first, since MySQL would run it to
/// its end with all its locks.
pub struct Transaction {
    /// Empty only once the connection has been given away.
    session: Option<Session>,
    db: Mysql,
    _place: OwnedSemaphorePermit,
    /// Whether a statement was sent whose answer has perhaps not come to its end.
    running: bool,
    /// Whether a statement failed. The server may have rolled back by then, and what follows would
    /// be in no transaction: it must not be committed.
    failed: bool,
}

/// What whoever takes rows says to each.
pub enum Flow {
    /// It takes more.
    More,
    /// It has enough.
    Enough,
    /// It takes more after this, if that says so.
    Wait(BoxFuture<'static, bool>),
}

impl Transaction {
    pub(super) async fn begin(
        session: Session,
        place: OwnedSemaphorePermit,
        db: Mysql,
        access: Access,
        variables: &str,
    ) -> Result<Self, Error> {
        let changed = session.variables != variables;
        let mut transaction = Transaction {
            session: Some(session),
            db,
            _place: place,
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
            // What the session has is not known until the answer is there.
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

    /// Runs a statement and gathers its rows.
    pub async fn query(&mut self, sql: &str, params: Vec<Value>) -> Result<Vec<Row>, Error> {
        self.watch(async |conn| conn.exec(sql, bound(params)).await).await
    }

    /// Runs a statement. Its rows go to `take` as they arrive, until it has enough.
    pub async fn read<E: From<Error>>(
        &mut self,
        sql: &str,
        params: Vec<Value>,
        mut take: impl FnMut(Row) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let flow = move |row| Ok(if take(row)?.is_continue() { Flow::More } else { Flow::Enough });
        self.stream(sql, params, flow).await
    }

    /// The same for one that may have to wait before it takes more.
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

    /// Runs a statement and gives the number of rows it matched. One that commits by itself, as
    /// DDL does, is an error: what was to happen together has come apart.
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
                Class::Definition,
                "the statement ended the transaction around it, as DDL and LOCK TABLES do in \
                 MySQL; only statements that leave it open can be run",
            ));
        }
        Ok(matched)
    }

    /// The columns that a statement would give, without running it.
    pub async fn columns(&mut self, sql: &str) -> Result<Vec<Column>, Error> {
        self.watch(async |conn| Ok(conn.prep(sql).await?.columns().to_vec())).await
    }

    /// Runs one or more statements without parameters; rows are thrown away.
    pub async fn batch(&mut self, sql: &str) -> Result<(), Error> {
        self.watch(async |conn| conn.query_drop(sql).await).await
    }

    /// Commits. With an error of class `Connection` the outcome is unknown; with any other, the
    /// transaction was rolled back.
    pub async fn commit(mut self) -> Result<(), Error> {
        if self.failed {
            self.rollback().await?;
            return Err(Error::new(Class::Other, "a statement of the transaction has failed"));
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

    /// After an error the connection is good, unless that is what broke, and the transaction
    /// perhaps still open. If the rollback fails as well, the drop closes the connection, and its
    /// error would say less than the first one.
    async fn roll_back_after(self, error: &Error) {
        if error.class != Class::Connection {
            let _ = self.rollback().await;
        }
    }

    /// Marks the statement as running for as long as the answer is awaited.
    async fn watch<T, F>(&mut self, ask: F) -> Result<T, Error>
    where
        F: AsyncFnOnce(&mut Conn) -> Result<T, mysql_async::Error>,
    {
        let Some(session) = &mut self.session else {
            // Both methods that empty it consume the transaction, so no caller can see this.
            return Err(Error::new(Class::Other, "the transaction has ended"));
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
        // Dropping the connection closes it. Without a runtime there is nobody to ask for more.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if !self.running || session.conn.is_disconnected() {
            return;
        }
        let db = self.db.clone();
        runtime.spawn(async move {
            if let Err(error) = kill(&db, session.conn.id()).await {
                tracing::debug!(%error, "a statement could not be killed");
            }
            drop(session);
        });
    }
}

/// Ends a connection from another one, with whatever runs on it.
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
