//! Creates files and folders that only their owner can read: they hold records, errors and settings.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Result, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Opens a file for writing and truncates it. An existing file keeps its permissions.
pub(super) fn create(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Writes a whole file.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    create(path)?.write_all(text.as_bytes())
}

/// Creates a folder and its missing parents.
pub(super) fn create_folder(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
