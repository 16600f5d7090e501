//! Uploads one object: in one request if it is small, otherwise in pieces. The object becomes visible when it is complete.

use bytes::Bytes;
use object_store::WriteMultipart;
use object_store::path::Path;
use tokio::runtime::Handle;

use crate::{Destination, Error, Result};

/// The size of a piece. S3 accepts ten thousand pieces, all except the last of at least 5 MiB.
const PIECE_BYTES: usize = 8 * 1024 * 1024;
/// The number of concurrent uploads of pieces, besides the piece that is being filled. Each slot has a writer in memory.
const UPLOAD_CONCURRENCY: usize = 1;

/// An object that is being uploaded. If it is dropped early, nothing remains.
pub(crate) struct Upload {
    destination: Destination,
    path: Path,
    /// The bytes that are not sent yet, if they fit one request.
    waiting: Vec<u8>,
    pieces: Option<WriteMultipart>,
}

impl Upload {
    pub(crate) fn new(destination: &Destination, name: &str) -> Result<Upload> {
        let path = destination.path(name)?;
        Ok(Upload { destination: destination.clone(), path, waiting: Vec::new(), pieces: None })
    }

    pub(crate) async fn push(&mut self, bytes: Vec<u8>) -> Result<()> {
        if self.pieces.is_none() {
            self.waiting.extend_from_slice(&bytes);
            if self.waiting.len() < PIECE_BYTES {
                return Ok(());
            }
            let begun = self.destination.begin_at(&self.path).await;
            let begun = begun.map_err(|error| self.destination.failed(error))?;
            self.pieces = Some(WriteMultipart::new_with_chunk_size(begun, PIECE_BYTES));
            let waiting = std::mem::take(&mut self.waiting);
            return self.send(waiting).await;
        }
        self.send(bytes).await
    }

    async fn send(&mut self, bytes: Vec<u8>) -> Result<()> {
        let Some(pieces) = &mut self.pieces else { return Ok(()) };
        let mut bytes = Bytes::from(bytes);
        while !bytes.is_empty() {
            // The library buffers what it gets, so it gets little at a time.
            let capacity = pieces.wait_for_capacity(UPLOAD_CONCURRENCY).await;
            capacity.map_err(|error| Error::from_store(self.destination.url(), error))?;
            pieces.put(bytes.split_to(bytes.len().min(PIECE_BYTES)));
        }
        Ok(())
    }

    /// Sends the remaining bytes, and makes the object visible.
    pub(crate) async fn finish(mut self) -> Result<()> {
        let destination = self.destination.clone();
        let done = match self.pieces.take() {
            // In a separate task, since the caller may be cancelled, and an upload that is neither completed nor
            // aborted would remain.
            Some(pieces) => match tokio::spawn(pieces.finish()).await {
                Ok(done) => done.map(drop),
                Err(error) => Err(error.into()),
            },
            None => {
                let bytes = Bytes::from(std::mem::take(&mut self.waiting));
                destination.put_at(&self.path, bytes).await
            }
        };
        done.map_err(|error| destination.failed(error))
    }

    /// Deletes what was sent.
    pub(crate) async fn abort(mut self) -> Result<()> {
        let Some(pieces) = self.pieces.take() else { return Ok(()) };
        let done = tokio::spawn(pieces.abort()).await;
        done.map_err(object_store::Error::from)
            .and_then(|done| done)
            .map_err(|error| self.destination.failed(error))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // Without a runtime the process is ending, and the result is the same as after a crash.
        if let (Some(pieces), Ok(runtime)) = (self.pieces.take(), Handle::try_current()) {
            drop(runtime.spawn(pieces.abort()));
        }
    }
}
