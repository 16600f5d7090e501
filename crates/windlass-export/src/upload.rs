//! Bytes on their way to one object: in one request if they are few, else in pieces, a few of
//! which are under way at once. Nothing is visible under the object's name before the end.

use bytes::Bytes;
use object_store::WriteMultipart;
use object_store::path::Path;
use tokio::runtime::Handle;

use crate::{Destination, Error, Result};

/// Bytes in a piece. S3 takes ten thousand of them, none but the last under 5 MiB.
const PIECE: usize = 8 * 1024 * 1024;
/// Pieces under way at once, besides the one that fills: a writer per slot is in memory.
const AT_ONCE: usize = 1;

/// An object in the making. Dropped before its end, it leaves nothing behind.
pub(crate) struct Upload {
    place: Destination,
    path: Path,
    /// What has not been sent, as long as it fits one request.
    waiting: Vec<u8>,
    pieces: Option<WriteMultipart>,
}

impl Upload {
    pub(crate) fn new(place: &Destination, name: &str) -> Result<Upload> {
        let path = place.path(name)?;
        Ok(Upload { place: place.clone(), path, waiting: Vec::new(), pieces: None })
    }

    pub(crate) async fn push(&mut self, bytes: Vec<u8>) -> Result<()> {
        if self.pieces.is_none() {
            self.waiting.extend_from_slice(&bytes);
            if self.waiting.len() < PIECE {
                return Ok(());
            }
            let begun = self.place.begin_at(&self.path).await;
            let begun = begun.map_err(|error| self.place.failed(error))?;
            self.pieces = Some(WriteMultipart::new_with_chunk_size(begun, PIECE));
            let waiting = std::mem::take(&mut self.waiting);
            return self.send(waiting).await;
        }
        self.send(bytes).await
    }

    async fn send(&mut self, bytes: Vec<u8>) -> Result<()> {
        let Some(pieces) = &mut self.pieces else { return Ok(()) };
        let mut bytes = Bytes::from(bytes);
        while !bytes.is_empty() {
            // The pieces take what they are given at once, so they are given little at a time.
            let capacity = pieces.wait_for_capacity(AT_ONCE).await;
            capacity.map_err(|error| Error::of(self.place.url(), error))?;
            pieces.put(bytes.split_to(bytes.len().min(PIECE)));
        }
        Ok(())
    }

    /// Sends the rest, and makes the object visible.
    pub(crate) async fn finish(mut self) -> Result<()> {
        let place = self.place.clone();
        let done = match self.pieces.take() {
            // In a task of its own: whoever waits may be gone before it ends, and pieces that
            // nobody completes or gives up would stay.
            Some(pieces) => match tokio::spawn(pieces.finish()).await {
                Ok(done) => done.map(drop),
                Err(error) => Err(error.into()),
            },
            None => {
                let bytes = Bytes::from(std::mem::take(&mut self.waiting));
                place.put_at(&self.path, bytes).await
            }
        };
        done.map_err(|error| place.failed(error))
    }

    /// Removes what was sent.
    pub(crate) async fn abort(mut self) -> Result<()> {
        let Some(pieces) = self.pieces.take() else { return Ok(()) };
        let done = tokio::spawn(pieces.abort()).await;
        done.map_err(object_store::Error::from)
            .and_then(|done| done)
            .map_err(|error| self.place.failed(error))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // Without a runtime the process is at its end; what is left then is as after a crash.
        if let (Some(pieces), Ok(runtime)) = (self.pieces.take(), Handle::try_current()) {
            drop(runtime.spawn(pieces.abort()));
        }
    }
}
