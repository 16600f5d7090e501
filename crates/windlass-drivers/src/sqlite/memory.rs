//! A database in memory whose transactions run on the caller's task. Simulations use it: nothing depends on threads,
//! and every call of a process can fail, wait or never return.

use std::{
    any,
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{Backend, Database, Sqlite, connection, readers, registry, writer};
use crate::{Error, ErrorClass};

/// What an [`Interceptor`] answers.
pub type Intercepted<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A call of a process to a database.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The path of the Rust function that contains the work.
    pub name: &'static str,
    /// Whether it is a write transaction.
    pub writes: bool,
}

/// The caller of a request that is on its way.
pub struct Caller(oneshot::Sender<()>);

impl Caller {
    /// Tells the caller that the connection is lost.
    pub fn disconnect(self) {
        // Nothing to do if it does not wait any more.
        let _ = self.0.send(());
    }
}

/// What happens to the calls of one process on their way to a database and back.
pub trait Interceptor: Send + Sync {
    /// Called before a transaction begins. After an error it does not run. The answer is needed no longer once the
    /// caller is disconnected, but the request may still arrive.
    fn request(&self, call: Call, caller: Caller) -> Intercepted<'_, Result<(), Error>>;

    /// Called at once after a transaction, which was committed unless it failed with an error.
    fn executed(&self, call: Call, error: Option<&Error>);

    /// Called before the caller gets the answer. An error replaces it.
    fn answer(&self, call: Call) -> Intercepted<'_, Result<(), Error>>;

    /// Returns when the process is notified of a change.
    fn notified(&self) -> Intercepted<'_, ()>;
}

/// A database in memory. It stands for a server: several processes open it, each under its own path.
pub struct MemoryDatabase {
    connection: Mutex<Connection>,
}

impl MemoryDatabase {
    /// Creates an empty database.
    ///
    /// # Errors
    /// SQLite reports one.
    pub fn new() -> Result<Arc<Self>, Error> {
        let mut connection = Connection::open_in_memory()?;
        connection::set_up(&mut connection)?;
        Ok(Arc::new(MemoryDatabase { connection: Mutex::new(connection) }))
    }

    /// Runs work on the database itself, past all interceptors.
    pub fn with<T>(&self, work: impl FnOnce(&mut Connection) -> T) -> T {
        work(&mut self.connection.lock())
    }

    /// Makes the database known under this path, for as long as the handle or a clone of it exists. Calls of a
    /// process that opens the path go through the interceptor.
    pub fn attach(self: &Arc<Self>, path: &Path, interceptor: Arc<dyn Interceptor>) -> Sqlite {
        let memory = Memory { database: self.clone(), interceptor };
        let database =
            Arc::new(Database { path: path.to_owned(), backend: Backend::Memory(memory) });
        registry().memory.insert(path.to_owned(), Arc::downgrade(&database));
        Sqlite { database }
    }
}

/// A database in memory as one process sees it.
pub(super) struct Memory {
    database: Arc<MemoryDatabase>,
    interceptor: Arc<dyn Interceptor>,
}

impl Memory {
    /// A request that was sent is executed even if its caller does not wait for it any more, as by a server.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&rusqlite::Transaction<'_>) -> Result<T, Error> + Send + 'static,
    {
        let call = Call { name: any::type_name::<F>(), writes: true };
        let (database, interceptor) = (self.database.clone(), self.interceptor.clone());
        let (caller, disconnected) = oneshot::channel();
        let sent = tokio::spawn(async move {
            interceptor.request(call, Caller(caller)).await?;
            let outcome = database.with(|connection| writer::in_transaction(connection, work));
            interceptor.executed(call, outcome.as_ref().err());
            Ok(outcome)
        });
        let outcome = tokio::select! {
            biased;
            Ok(()) = disconnected => return Err(lost()),
            outcome = sent => outcome.unwrap_or_else(|_| Err(readers::ended()))?,
        };
        self.interceptor.answer(call).await?;
        outcome
    }

    pub(super) async fn read<T, F>(&self, work: F) -> Result<T, Error>
    where
        F: FnOnce(&Connection) -> Result<T, Error>,
    {
        let call = Call { name: any::type_name::<F>(), writes: false };
        // A read that arrives late has no effect, so it matters only that its caller is told.
        let (caller, disconnected) = oneshot::channel();
        tokio::select! {
            biased;
            Ok(()) = disconnected => return Err(lost()),
            passed = self.interceptor.request(call, Caller(caller)) => passed?,
        }
        let outcome = self.database.with(|connection| {
            connection.pragma_update(None, "query_only", "ON")?;
            let outcome = readers::on_snapshot(connection, work);
            connection.pragma_update(None, "query_only", "OFF")?;
            outcome
        });
        self.interceptor.executed(call, outcome.as_ref().err());
        self.interceptor.answer(call).await?;
        outcome
    }

    pub(super) async fn notified(&self) {
        self.interceptor.notified().await;
    }
}

fn lost() -> Error {
    Error::new(ErrorClass::Connection, "the connection is lost")
}

impl Sqlite {
    /// The database in memory that is known under this path.
    pub fn in_memory(path: &Path) -> Option<Sqlite> {
        let database = registry().memory.get(path)?.upgrade()?;
        Some(Sqlite { database })
    }

    /// Returns when this process is notified of a change of a database in memory; `None` for a file, which must be
    /// polled.
    pub fn notified(&self) -> Option<impl Future<Output = ()> + Send + '_> {
        match &self.database.backend {
            Backend::Memory(memory) => Some(memory.notified()),
            Backend::File { .. } => None,
        }
    }
}

/// The databases in memory by path.
pub(super) type Paths = std::collections::HashMap<PathBuf, std::sync::Weak<Database>>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// Loses requests or answers.
    #[derive(Default)]
    struct Lossy {
        request: AtomicBool,
        answer: AtomicBool,
        late: AtomicBool,
    }

    fn lost_if(is_lost: &AtomicBool) -> Intercepted<'static, Result<(), Error>> {
        let is_lost = is_lost.load(Relaxed);
        Box::pin(async move { if is_lost { Err(lost()) } else { Ok(()) } })
    }

    impl Interceptor for Lossy {
        fn request(&self, call: Call, caller: Caller) -> Intercepted<'_, Result<(), Error>> {
            assert!(call.name.contains("memory::tests::"), "{}", call.name);
            if self.late.load(Relaxed) {
                caller.disconnect();
            }
            lost_if(&self.request)
        }

        fn executed(&self, _: Call, _: Option<&Error>) {}

        fn answer(&self, _: Call) -> Intercepted<'_, Result<(), Error>> {
            lost_if(&self.answer)
        }

        fn notified(&self) -> Intercepted<'_, ()> {
            Box::pin(std::future::pending())
        }
    }

    async fn insert(process: &Sqlite) -> Result<usize, Error> {
        process.write(|tx| Ok(tx.execute("INSERT INTO t VALUES (1)", [])?)).await
    }

    fn count(database: &MemoryDatabase) -> i64 {
        database.with(|db| db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap())
    }

    #[tokio::test]
    async fn a_lost_request_does_nothing_and_a_lost_answer_hides_a_commit() {
        let database = MemoryDatabase::new().unwrap();
        database.with(|db| db.execute_batch("CREATE TABLE t (id INTEGER)").unwrap());
        let (lossy, path) = (Arc::new(Lossy::default()), Path::new("/simulated/lossy.db"));
        let process = database.attach(path, lossy.clone());
        assert_eq!(insert(&Sqlite::in_memory(path).unwrap()).await, Ok(1));
        lossy.request.store(true, Relaxed);
        assert!(insert(&process).await.is_err());
        assert_eq!(count(&database), 1);
        lossy.request.store(false, Relaxed);
        lossy.answer.store(true, Relaxed);
        assert!(insert(&process).await.is_err());
        assert_eq!(count(&database), 2);
        lossy.answer.store(false, Relaxed);
        lossy.late.store(true, Relaxed);
        assert!(insert(&process).await.is_err());
        while count(&database) < 3 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_reader_cannot_write_and_a_writer_can_again_afterwards() {
        let database = MemoryDatabase::new().unwrap();
        database.with(|db| db.execute_batch("CREATE TABLE t (id INTEGER)").unwrap());
        let path = Path::new("/simulated/reader.db");
        let process = database.attach(path, Arc::new(Lossy::default()));
        let refused = process.read(|db| Ok(db.execute("INSERT INTO t VALUES (1)", [])?)).await;
        assert_eq!(refused.unwrap_err().class, ErrorClass::ReadOnly);
        assert_eq!(insert(&process).await, Ok(1));
        drop(process);
        assert!(Sqlite::in_memory(path).is_none(), "it is forgotten with its last handle");
    }
}
