//! Files and folders that only their owner may read: they hold records, errors and settings.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Result, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Opens a file to be written from its beginning. One that is there keeps its permissions.
pub(super) fn create(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Writes a whole file.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    create(path)?.write_all(text.as_bytes())
}

/// Makes a folder, with those above it that are missing.
pub(super) fn create_folder(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
