//! Writes one part or report from a stream of rows.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use ring::digest::{Context, SHA256};

use crate::content::Content;
use crate::encode::Encoder;
use crate::rebatch::Rebatcher;
use crate::upload::Upload;
use crate::{Destination, Error, Output, Result};

/// The result of a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The object's name in its destination.
    pub name: String,
    /// The number of rows.
    pub rows: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// SHA-256 of these bytes, in hex.
    pub sha256: String,
    /// The content hash of the rows, in hex. It does not depend on the format or the compression.
    pub content_hash: String,
}

/// Streams batches into one object, with constant memory. The object becomes visible with [`PartWriter::finish`]. A writer
/// that is dropped leaves nothing behind. The same rows give the same bytes.
pub struct PartWriter {
    name: String,
    schema: SchemaRef,
    upload: Upload,
    /// `None` after an error, or while a blocking task has it.
    encoder: Option<Box<PartEncoder>>,
}

/// Encodes and hashes rows. Runs in blocking tasks, since it uses much CPU.
struct PartEncoder {
    rebatcher: Rebatcher,
    content: Content,
    encoder: Encoder,
    stored: Context,
    rows: u64,
    bytes: u64,
}

impl PartWriter {
    /// Begins an object with this name. Sends nothing yet.
    pub fn new(
        destination: &Destination,
        name: impl Into<String>,
        schema: SchemaRef,
        output: Output,
    ) -> Result<PartWriter> {
        let name = name.into();
        let upload = Upload::new(destination, &name)?;
        let encoder = PartEncoder {
            rebatcher: Rebatcher::default(),
            content: Content::new(schema.clone()),
            encoder: Encoder::new(&schema, output)?,
            stored: Context::new(&SHA256),
            rows: 0,
            bytes: 0,
        };
        Ok(PartWriter { name, schema, upload, encoder: Some(Box::new(encoder)) })
    }

    /// Adds rows. After an error the writer cannot be used any more.
    pub async fn write(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.schema_ref() != &self.schema {
            let why = "the columns of a batch do not match the part";
            return Err(Error::Encoding(why.into()));
        }
        let mut encoder = self.take()?;
        let (encoder, ready) = blocking(move || {
            let ready = encoder.add(&batch)?;
            Ok((encoder, ready))
        })
        .await?;
        if !ready.is_empty() {
            self.upload.push(ready).await?;
        }
        self.encoder = Some(encoder);
        Ok(())
    }

    /// Completes the object and makes it visible.
    pub async fn finish(self) -> Result<Written> {
        self.seal().await?.publish().await
    }

    /// Completes the object, which is not visible yet: its hash is known before it is published.
    pub async fn seal(mut self) -> Result<SealedPart> {
        let encoder = self.take()?;
        let (rest, mut written) = blocking(move || encoder.finish()).await?;
        self.upload.push(rest).await?;
        written.name = self.name;
        Ok(SealedPart { upload: self.upload, written })
    }

    /// Aborts, and returns when everything is deleted. Dropping the writer does the same in the background.
    pub async fn abort(self) -> Result<()> {
        self.upload.abort().await
    }

    fn take(&mut self) -> Result<Box<PartEncoder>> {
        self.encoder.take().ok_or_else(|| Error::Aborted(self.name.clone()))
    }
}

/// A complete object that is not visible yet. If it is dropped, nothing remains.
pub struct SealedPart {
    upload: Upload,
    written: Written,
}

impl SealedPart {
    /// What it will be.
    pub fn written(&self) -> &Written {
        &self.written
    }

    /// Makes it visible.
    pub async fn publish(self) -> Result<Written> {
        self.upload.finish().await?;
        Ok(self.written)
    }
}

impl PartEncoder {
    /// Adds rows and returns the encoded bytes.
    fn add(&mut self, batch: &RecordBatch) -> Result<Vec<u8>> {
        self.rows += batch.num_rows() as u64;
        self.content.add(batch)?;
        for batch in self.rebatcher.push(batch).map_err(failed)? {
            self.encoder.write(&batch)?;
        }
        let ready = self.encoder.take();
        self.count(&ready);
        Ok(ready)
    }

    fn finish(mut self: Box<Self>) -> Result<(Vec<u8>, Written)> {
        if let Some(batch) = self.rebatcher.finish().map_err(failed)? {
            self.encoder.write(&batch)?;
        }
        let mut encoder = *self;
        let rest = encoder.encoder.finish()?;
        encoder.stored.update(&rest);
        let written = Written {
            name: String::new(),
            rows: encoder.rows,
            bytes: encoder.bytes + rest.len() as u64,
            sha256: hex::encode(encoder.stored.finish()),
            content_hash: encoder.content.finish(),
        };
        Ok((rest, written))
    }

    fn count(&mut self, bytes: &[u8]) {
        self.stored.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Encoding(error.to_string())
}
