//! Writes local files that only their owner may read. The object store library leaves permissions to the umask.
//!
//! A file is written under its name with `#` and a number, synced, and renamed. Missing folders are created. An
//! existing file is replaced by one with the same permissions.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt as _;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

/// Writes a whole file.
pub(crate) async fn put(path: PathBuf, bytes: Bytes) -> Result<()> {
    let written = spawn_blocking(move || {
        let mut staged = Staged::create(path)?;
        staged.file.write_all(&bytes)?;
        staged.publish()
    });
    flatten(written.await)
}

/// Begins a file that is written in pieces.
pub(crate) async fn begin(path: PathBuf) -> Result<Box<dyn MultipartUpload>> {
    let staged = flatten(spawn_blocking(move || Staged::create(path)).await)?;
    Ok(Box::new(Pieces { staged: Some(Arc::new(staged)), offset: 0 }))
}

/// A file under a temporary name. It is deleted if it is dropped before it is published.
#[derive(Debug)]
struct Staged {
    file: File,
    staged: PathBuf,
    path: PathBuf,
    /// Whether it has its final name.
    published: bool,
}

impl Staged {
    fn create(path: PathBuf) -> io::Result<Staged> {
        let mut number = 1;
        loop {
            let mut staged = path.clone().into_os_string();
            staged.push(format!("#{number}"));
            let staged = PathBuf::from(staged);
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&staged) {
                Ok(file) => return Ok(Staged { file, staged, path, published: false }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) if error.kind() == ErrorKind::NotFound => create_folders(&path, error)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Renames the file to its final name, durably.
    fn publish(mut self) -> io::Result<()> {
        if let Ok(replaced) = fs::symlink_metadata(&self.path)
            && replaced.is_file()
        {
            self.file.set_permissions(permissions_of(&replaced))?;
        }
        self.file.sync_all()?;
        fs::rename(&self.staged, &self.path)?;
        self.published = true;
        self.path.parent().map_or(Ok(()), sync_folder)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_file(&self.staged);
        }
    }
}

/// The permissions to read and write, without those to execute.
fn permissions_of(metadata: &fs::Metadata) -> Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    Permissions::from_mode(metadata.permissions().mode() & 0o666)
}

/// Creates the folders of a file, durably.
fn create_folders(path: &Path, missing: io::Error) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Err(missing) };
    let absent: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    if absent.is_empty() {
        // The folder exists, or another process has created it.
        return if folder.is_dir() { Ok(()) } else { Err(missing) };
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    for folder in absent {
        sync_folder(folder)?;
        folder.parent().map_or(Ok(()), sync_folder)?;
    }
    Ok(())
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// A file that is written in pieces, each at its own offset.
#[derive(Debug)]
struct Pieces {
    staged: Option<Arc<Staged>>,
    offset: u64,
}

#[async_trait]
impl MultipartUpload for Pieces {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let mut offset = self.offset;
        self.offset += data.content_length() as u64;
        let Some(staged) = self.staged.clone() else {
            return std::future::ready(Err(failed(already_ended()))).boxed();
        };
        let write = move || {
            for bytes in data.iter() {
                staged.file.write_all_at(bytes, offset)?;
                offset += bytes.len() as u64;
            }
            Ok(())
        };
        spawn_blocking(write).map(flatten).boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        // All pieces are written, and none uses the file any more.
        let staged = self.staged.take().and_then(Arc::into_inner).ok_or_else(already_ended);
        flatten(spawn_blocking(move || staged?.publish()).await)?;
        Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
    }

    async fn abort(&mut self) -> Result<()> {
        let staged = self.staged.take();
        let dropping = move || {
            drop(staged);
            Ok(())
        };
        flatten(spawn_blocking(dropping).await)
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let staged = self.staged.take();
        if let (Some(staged), Ok(runtime)) = (staged, Handle::try_current()) {
            drop(runtime.spawn_blocking(move || drop(staged)));
        }
    }
}

fn already_ended() -> io::Error {
    io::Error::other("the file is already completed or aborted")
}

fn flatten<T>(done: std::result::Result<io::Result<T>, tokio::task::JoinError>) -> Result<T> {
    done?.map_err(failed)
}

fn failed(source: io::Error) -> object_store::Error {
    object_store::Error::Generic { store: "file", source: Box::new(source) }
}
