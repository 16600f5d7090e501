//! SQLite: one writer and a few readers per file and process.

mod busy;
mod cell;
mod connection;
mod file;
mod hash;
mod holder;
mod memory;
mod readers;
mod writer;

use std::{
    collections::HashMap,
    fmt, panic,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Weak},
};

use parking_lot::{Mutex, MutexGuard};

pub use self::memory::{Call, Caller, Intercepted, Interceptor, MemoryDatabase};
use self::{file::Identity, memory::Memory, readers::Readers, writer::Writer};
use crate::{Error, ErrorClass};

/// A SQLite file. Clones and other handles of the same file share one writer.
#[derive(Clone)]
pub struct Sqlite {
    database: Arc<Database>,
}

struct Database {
    path: PathBuf,
    backend: Backend,
}

enum Backend {
    File { writer: Writer, readers: Readers },
    Memory(Memory),
}

impl Sqlite {
    /// Opens a file that exists.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::shared(path, false)
    }

    /// Opens a file, and creates it if it does not exist.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::shared(path, true)
    }

    /// Runs work in a write transaction, which is committed if it returns `Ok` and rolled back if it returns an
    /// error or panics. Calls run one after the other, in order.
    ///
    /// A call that is dropped before its turn does nothing. Work that has started runs to its end.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match &self.database.backend {
            Backend::File { writer, .. } => writer.run(work).await,
            Backend::Memory(memory) => memory.write(work).await,
        }
    }

    /// Runs work that only reads, on one snapshot.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match &self.database.backend {
            Backend::File { readers, .. } => readers.run(work).await,
            Backend::Memory(memory) => memory.read(work).await,
        }
    }

    /// The canonical path of the file.
    pub fn path(&self) -> &Path {
        &self.database.path
    }

    fn shared(path: &Path, create: bool) -> Result<Self, Error> {
        if let Some(memory) = Sqlite::in_memory(path) {
            return Ok(memory);
        }
        // Locked while the file is opened, so that two handles cannot start two writers.
        let open = &mut registry().files;
        if !path.exists() {
            file::check_absent(path, create)?;
            file::create_private(path)?;
        } else if let Some(database) = open.get(&Identity::of(path)?).and_then(Weak::upgrade) {
            return Ok(Sqlite { database });
        }
        let first = connection::writer(path)?;
        let path = path.canonicalize().map_err(|error| file::unreachable(path, &error))?;
        let database = Arc::new(Database {
            backend: Backend::File {
                writer: Writer::start(first, path.clone())?,
                readers: Readers::new(path.clone()),
            },
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

/// The open databases of this process.
#[derive(Default)]
struct Registry {
    files: HashMap<Identity, Weak<Database>>,
    memory: memory::Paths,
}

fn registry() -> MutexGuard<'static, Registry> {
    static OPEN: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
    OPEN.lock()
}

/// Runs a caller's work and converts a panic into an error, so that the thread survives.
fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    panic::catch_unwind(panic::AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        Err(Error::new(ErrorClass::Other, format!("the work on the database panicked: {text}")))
    })
}

#[cfg(test)]
mod tests;
