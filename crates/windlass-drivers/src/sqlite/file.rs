//! The file of a database: its identity, and why it cannot be used.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{Error, ErrorClass};

/// Identifies a file.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// Device and inode, which also handle links and files that were recreated.
    #[cfg(unix)]
    Inode(u64, u64),
    #[cfg(not(unix))]
    Path(PathBuf),
}

impl Identity {
    // Must not open the file, since closing it would release SQLite's own locks.
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Result<Self, Error> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path).map_err(|error| unreachable(path, &error))?;
        Ok(Identity::Inode(metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    pub(super) fn of(path: &Path) -> Result<Self, Error> {
        path.canonicalize().map(Identity::Path).map_err(|error| unreachable(path, &error))
    }
}

/// The error of a missing file.
pub(super) fn check_absent(path: &Path, create: bool) -> Result<(), Error> {
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(Error::new(
            ErrorClass::Definition,
            format!("the folder {} does not exist; create it first", folder.display()),
        ));
    }
    if !create {
        return Err(Error::new(
            ErrorClass::Definition,
            format!(
                "there is no SQLite database at {}; check the path, or create the database first",
                path.display()
            ),
        ));
    }
    Ok(())
}

/// Creates an empty database that only its owner may read and write. SQLite itself would make it readable by
/// everyone. SQLite gives the log and its index the permissions of the file.
pub(super) fn create_private(path: &Path) -> Result<(), Error> {
    match private().open(path) {
        // Another process may have created it.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(explain(path, Error::new(ErrorClass::Connection, error.to_string())))
        }
        _ => Ok(()),
    }
}

/// Creates a file that must not exist.
fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// The error of a file that exists but cannot be accessed.
pub(super) fn unreachable(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorClass::Connection, format!("cannot access {}: {error}", path.display()))
}

/// The error of a file that SQLite opened read-only.
pub(super) fn read_only(path: &Path) -> Error {
    Error::new(
        ErrorClass::ReadOnly,
        format!("{} cannot be written; check its permissions and the file system", path.display()),
    )
}

/// Adds the path to an error of opening, and detects a folder without write permission: SQLite creates a log next
/// to the file, and reports the missing permission in several ways.
pub(super) fn explain(path: &Path, error: Error) -> Error {
    let folder = folder_of(path);
    let refused = matches!(error.class, ErrorClass::Connection | ErrorClass::ReadOnly);
    if refused && folder.is_dir() && !can_create_in(&folder) {
        return Error {
            class: ErrorClass::ReadOnly,
            message: format!(
                "the folder {} is not writable, and SQLite stores its log next to the file; \
                 check its permissions and the file system",
                folder.display()
            ),
            ..error
        };
    }
    Error { message: format!("cannot open {}: {}", path.display(), error.message), ..error }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

fn can_create_in(folder: &Path) -> bool {
    let probe = folder.join(format!(".windlass-probe-{}", std::process::id()));
    match private().open(&probe) {
        Ok(_) => {
            // If this fails, an empty file remains.
            let _ = fs::remove_file(&probe);
            true
        }
        Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
    }
}
