//! Encodes batches incrementally into the bytes of a file.

use std::io::Write as _;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Pages, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::{Compression, Error, Format, Output, Result, csv, json};

/// The most rows of a row group. A chunk of the usual size is one group.
const MAX_GROUP_ROWS: usize = 256 * 1024;
/// The most encoded bytes of a row group in memory.
const MAX_GROUP_BYTES: usize = 8 * 1024 * 1024;
/// The most bytes of a column's dictionary. A column of many distinct values exceeds it soon and is then written
/// without a dictionary, which saves useless lookups.
const MAX_DICTIONARY_BYTES: usize = 64 * 1024;

/// A file that is being encoded.
pub(crate) enum Encoder {
    Parquet(Box<ArrowWriter<Vec<u8>>>),
    Text(Text),
}

/// A text file.
pub(crate) struct Text {
    format: Format,
    first: bool,
    out: Sink,
}

enum Sink {
    Plain(Vec<u8>),
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

impl Encoder {
    pub(crate) fn new(schema: &SchemaRef, output: Output) -> Result<Encoder> {
        if output.format() == Format::Parquet {
            let pages = match output.compression() {
                Compression::Zstd => Pages::ZSTD(ZstdLevel::default()),
                _ => Pages::UNCOMPRESSED,
            };
            let properties = WriterProperties::builder()
                .set_compression(pages)
                .set_created_by("windlass".into())
                .set_max_row_group_row_count(Some(MAX_GROUP_ROWS))
                .set_dictionary_page_size_limit(MAX_DICTIONARY_BYTES)
                .set_statistics_enabled(EnabledStatistics::Chunk)
                .build();
            let writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties));
            return Ok(Encoder::Parquet(Box::new(writer.map_err(failed)?)));
        }
        let out = match output.compression() {
            Compression::Gzip => {
                // Without a timestamp, so that the same rows give the same bytes.
                let level = flate2::Compression::default();
                Sink::Gzip(Box::new(GzEncoder::new(Vec::new(), level)))
            }
            _ => Sink::Plain(Vec::new()),
        };
        let mut text = Text { format: output.format(), first: true, out };
        let mut opening = Vec::new();
        match output.format() {
            Format::Csv => csv::header(schema, &mut opening),
            Format::Json => opening.push(b'['),
            _ => {}
        }
        text.out.write(&opening)?;
        Ok(Encoder::Text(text))
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Encoder::Parquet(writer) => {
                writer.write(batch).map_err(failed)?;
                if writer.in_progress_size() >= MAX_GROUP_BYTES {
                    writer.flush().map_err(failed)?;
                }
                Ok(())
            }
            Encoder::Text(text) => text.write(batch),
        }
    }

    /// The bytes that are ready.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        // The writer counts the bytes itself and does not read them again.
        std::mem::take(match self {
            Encoder::Parquet(writer) => writer.inner_mut(),
            Encoder::Text(text) => match &mut text.out {
                Sink::Plain(out) => out,
                Sink::Gzip(gzip) => gzip.get_mut(),
            },
        })
    }

    /// The last bytes.
    pub(crate) fn finish(self) -> Result<Vec<u8>> {
        match self {
            Encoder::Parquet(writer) => writer.into_inner().map_err(failed),
            Encoder::Text(mut text) => {
                if text.format == Format::Json {
                    text.out.write(b"\n]\n")?;
                }
                match text.out {
                    Sink::Plain(out) => Ok(out),
                    Sink::Gzip(gzip) => gzip.finish().map_err(failed),
                }
            }
        }
    }
}

impl Text {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut lines = Vec::new();
        match self.format {
            Format::Csv => csv::rows(batch, &mut lines)?,
            Format::Json => {
                // One row per line, for readability.
                if self.first && batch.num_rows() > 0 {
                    lines.push(b'\n');
                }
                json::rows(batch, (b",\n", b""), &mut self.first, &mut lines)?;
            }
            _ => json::rows(batch, (b"", b"\n"), &mut self.first, &mut lines)?,
        }
        self.out.write(&lines)
    }
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Sink::Plain(out) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            Sink::Gzip(gzip) => gzip.write_all(bytes).map_err(failed),
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Encoding(error.to_string())
}
