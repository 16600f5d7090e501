//! The file behind a database: which one it is, and why it cannot be used.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{Class, Error};

/// Tells whether two paths are the same file.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// Device and inode: right also for links, and for a file made anew under an old name.
    #[cfg(unix)]
    Inode(u64, u64),
    #[cfg(not(unix))]
    Path(PathBuf),
}

impl Identity {
    // It must not open the file: closing it again would drop the locks SQLite holds on it.
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

/// What to say of a path at which there is no file.
pub(super) fn check_absent(path: &Path, create: bool) -> Result<(), Error> {
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(Error::new(
            Class::Definition,
            format!("the folder {} does not exist; create it first", folder.display()),
        ));
    }
    if !create {
        return Err(Error::new(
            Class::Definition,
            format!(
                "there is no SQLite database at {}; check the path, or create the database first",
                path.display()
            ),
        ));
    }
    Ok(())
}

/// Makes an empty database that only its owner may read and write: by itself SQLite would let
/// everyone read it. SQLite gives the log and its index the permissions of the file.
pub(super) fn create_private(path: &Path) -> Result<(), Error> {
    match private().open(path) {
        // Another process may have made it meanwhile.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(explain(path, Error::new(Class::Connection, error.to_string())))
        }
        _ => Ok(()),
    }
}

/// Makes a file that was not there before.
fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A file that is there and cannot be looked at.
pub(super) fn unreachable(path: &Path, error: &io::Error) -> Error {
    Error::new(Class::Connection, format!("cannot reach {}: {error}", path.display()))
}

/// A file that SQLite opened for reading only.
pub(super) fn read_only(path: &Path) -> Error {
    Error::new(
        Class::ReadOnly,
        format!("{} cannot be written; check its permissions and the file system", path.display()),
    )
}

/// Adds the path to an error of opening, and tells a folder that cannot be written from the rest:
/// SQLite keeps a log beside the file and reports a missing right to make it in several ways.
pub(super) fn explain(path: &Path, error: Error) -> Error {
    let folder = folder_of(path);
    let refused = matches!(error.class, Class::Connection | Class::ReadOnly);
    if refused && folder.is_dir() && !can_create_in(&folder) {
        return Error {
            class: Class::ReadOnly,
            message: format!(
                "the folder {} cannot be written, and SQLite keeps its log beside the file; \
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
            // What remains if this fails is an empty file that says what it is.
            let _ = fs::remove_file(&probe);
            true
        }
        Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
    }
}
