//! One part or report, written as its rows come.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use ring::digest::{Context, SHA256};

use crate::content::Content;
use crate::encode::Encoder;
use crate::rebatch::Cut;
use crate::upload::Upload;
use crate::{Destination, Error, Output, Result};

/// What a writer has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The object's name in its place.
    pub name: String,
    /// How many rows it has.
    pub rows: u64,
    /// How many bytes.
    pub bytes: u64,
    /// SHA-256 of these bytes, in hex.
    pub sha256: String,
    /// A hash of the rows, in hex: the same for the same rows in the same order, whatever the
    /// format and the compression.
    pub content_hash: String,
}

/// Streams batches into one object. The memory it takes does not grow with their number. The
/// object is there when [`PartWriter::finish`] has returned, and not before; a writer that is
/// dropped leaves nothing. The same rows give the same bytes.
pub struct PartWriter {
    name: String,
    schema: SchemaRef,
    upload: Upload,
    /// `None` after an error, or while it is at work elsewhere.
    work: Option<Box<Work>>,
}

/// What is done with rows before they are sent. It is work for a processor, so that it is done
/// where it holds nobody up.
struct Work {
    cut: Cut,
    content: Content,
    encoder: Encoder,
    stored: Context,
    rows: u64,
    bytes: u64,
}

impl PartWriter {
    /// Begins an object of that name. Nothing is sent yet.
    pub fn new(
        place: &Destination,
        name: impl Into<String>,
        schema: SchemaRef,
        output: Output,
    ) -> Result<PartWriter> {
        let name = name.into();
        let upload = Upload::new(place, &name)?;
        let work = Work {
            cut: Cut::default(),
            content: Content::new(schema.clone()),
            encoder: Encoder::new(&schema, output)?,
            stored: Context::new(&SHA256),
            rows: 0,
            bytes: 0,
        };
        Ok(PartWriter { name, schema, upload, work: Some(Box::new(work)) })
    }

    /// Adds rows. After an error the writer is of no more use.
    pub async fn write(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.schema_ref() != &self.schema {
            let why = "a batch has other columns than the part";
            return Err(Error::Encoding(why.into()));
        }
        let mut work = self.take()?;
        let (work, ready) = aside(move || {
            let ready = work.add(&batch)?;
            Ok((work, ready))
        })
        .await?;
        if !ready.is_empty() {
            self.upload.push(ready).await?;
        }
        self.work = Some(work);
        Ok(())
    }

    /// Ends the object and makes it visible.
    pub async fn finish(mut self) -> Result<Written> {
        let work = self.take()?;
        let (rest, mut written) = aside(move || work.finish()).await?;
        self.upload.push(rest).await?;
        self.upload.finish().await?;
        written.name = self.name;
        Ok(written)
    }

    /// Gives up, and returns when what was sent is removed. Dropping the writer does the same a
    /// little later.
    pub async fn abort(self) -> Result<()> {
        self.upload.abort().await
    }

    fn take(&mut self) -> Result<Box<Work>> {
        self.work.take().ok_or_else(|| Error::GivenUp(self.name.clone()))
    }
}

impl Work {
    /// Takes rows in and gives the bytes that are ready.
    fn add(&mut self, batch: &RecordBatch) -> Result<Vec<u8>> {
        self.rows += batch.num_rows() as u64;
        self.content.add(batch)?;
        for batch in self.cut.push(batch).map_err(failed)? {
            self.encoder.write(&batch)?;
        }
        let ready = self.encoder.take();
        self.count(&ready);
        Ok(ready)
    }

    fn finish(mut self: Box<Self>) -> Result<(Vec<u8>, Written)> {
        if let Some(batch) = self.cut.rest().map_err(failed)? {
            self.encoder.write(&batch)?;
        }
        let mut work = *self;
        let rest = work.encoder.finish()?;
        work.stored.update(&rest);
        let written = Written {
            name: String::new(),
            rows: work.rows,
            bytes: work.bytes + rest.len() as u64,
            sha256: hex::encode(work.stored.finish()),
            content_hash: work.content.finish(),
        };
        Ok((rest, written))
    }

    fn count(&mut self, bytes: &[u8]) {
        self.stored.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Encoding(error.to_string())
}
