//! Reads objects of a destination in pieces.

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::{GetOptions, ObjectStoreExt as _};
use ring::digest::{Context, SHA256};

use crate::{Destination, Result};

/// An object that is being read.
pub struct StoredObject {
    /// Its size.
    pub bytes: u64,
    /// Its version: another content has another one.
    pub version: Option<String>,
    /// Its content, in pieces.
    pub content: BoxStream<'static, Result<Bytes>>,
}

impl Destination {
    /// Opens an object; with a version, only if it still has that version. `None` if there is none.
    pub async fn open_object(
        &self,
        name: &str,
        version: Option<String>,
    ) -> Result<Option<StoredObject>> {
        let path = self.path(name)?;
        let options = GetOptions { if_match: version, ..GetOptions::default() };
        let found = match self.store.get_opts(&path, options).await {
            Ok(found) => found,
            Err(object_store::Error::Precondition { .. }) => return Ok(None),
            Err(error) => return self.none_if_missing(error),
        };
        let (bytes, version) = (found.meta.size, found.meta.e_tag.clone());
        let destination = self.clone();
        let content = found.into_stream().map_err(move |error| destination.failed(error)).boxed();
        Ok(Some(StoredObject { bytes, version, content }))
    }

    /// Whether there is an object with this name.
    pub async fn exists(&self, name: &str) -> Result<bool> {
        match self.store.head(&self.path(name)?).await {
            Ok(_) => Ok(true),
            Err(error) => Ok(self.none_if_missing::<()>(error)?.is_some()),
        }
    }

    /// The SHA-256 of an object in hex, and the version that has it. `None` if there is none.
    pub async fn sha256(&self, name: &str) -> Result<Option<(String, Option<String>)>> {
        let Some(mut object) = self.open_object(name, None).await? else { return Ok(None) };
        let mut hash = Context::new(&SHA256);
        while let Some(piece) = object.content.try_next().await? {
            hash.update(&piece);
        }
        Ok(Some((hex::encode(hash.finish()), object.version)))
    }
}
