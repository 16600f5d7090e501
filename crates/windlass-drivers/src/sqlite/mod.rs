//! SQLite: one writer per file and process, a few readers beside it.

mod busy;
mod cell;
mod connection;
mod file;
mod holder;
mod readers;
mod writer;

use std::{
    collections::HashMap,
    fmt, panic,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
};

use self::{file::Identity, readers::Readers, writer::Writer};
use crate::{Class, Error};

/// A SQLite file. A clone, and a second opening of the same file, share its one writer.
#[derive(Clone)]
pub struct Sqlite {
    database: Arc<Database>,
}

struct Database {
    path: PathBuf,
    writer: Writer,
    readers: Readers,
}

impl Sqlite {
    /// Opens a file that exists.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::shared(path, false)
    }

    /// Opens a file, and makes it when it is absent.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::shared(path, true)
    }

    /// Runs a piece of work in a write transaction: committed when it gives `Ok`, rolled back when
    /// it gives an error or panics. Pieces of work run one after the other, in the order they came.
    ///
    /// A call dropped before its turn does nothing; once begun, the work goes on to its end.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.database.writer.run(work).await
    }

    /// Runs a piece of work that reads, on one snapshot: of everything committed before it begins,
    /// and of nothing that comes later.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.database.readers.run(work).await
    }

    /// The file, by its canonical path.
    pub fn path(&self) -> &Path {
        &self.database.path
    }

    fn shared(path: &Path, create: bool) -> Result<Self, Error> {
        // Held while the file is opened, so that two openings at once cannot make two writers.
        let mut open = registry();
        if !path.exists() {
            file::check_absent(path, create)?;
            file::create_private(path)?;
        } else if let Some(database) = open.get(&Identity::of(path)?).and_then(Weak::upgrade) {
            return Ok(Sqlite { database });
        }
        let first = connection::writer(path)?;
        let path = path.canonicalize().map_err(|error| file::unreachable(path, &error))?;
        let database = Arc::new(Database {
            writer: Writer::start(first, path.clone())?,
            readers: Readers::new(path.clone()),
            path,
        });
        open.retain(|_, database| database.strong_count() > 0);
        open.insert(Identity::of(&database.path)?, Arc::downgrade(&database));
        Ok(Sqlite { database })
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sqlite").field(&self.database.path).finish()
    }
}

/// The databases that this process has open.
fn registry() -> MutexGuard<'static, HashMap<Identity, Weak<Database>>> {
    static OPEN: LazyLock<Mutex<HashMap<Identity, Weak<Database>>>> = LazyLock::new(Mutex::default);
    // A panic cannot leave the map half changed, so a poisoned lock is as good as any.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a caller's work and makes an error of its panic, which is not to take the thread with it.
fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    panic::catch_unwind(panic::AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        Err(Error::new(Class::Other, format!("the work on the database panicked: {text}")))
    })
}

#[cfg(test)]
mod tests;
