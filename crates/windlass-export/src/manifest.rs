//! The list of the valid parts of a job. It is written last, so that readers see complete parts, each once.

use arrow_schema::SchemaRef;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::{
    Compression, Destination, Error, Format, Output, PartName, Result, Written, type_name,
};

/// The name of the object.
const NAME: &str = "manifest.json";
/// The supported version of the format.
const VERSION: u32 = 1;

/// The parts of one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    version: u32,
    /// The job.
    pub job_id: String,
    /// Its type.
    pub job_type: String,
    /// The format of all parts.
    pub format: Format,
    /// Their compression.
    pub compression: Compression,
    /// Their columns in order.
    pub schema: Vec<ManifestColumn>,
    /// The parts, in the order of their chunks.
    pub parts: Vec<ManifestPart>,
    /// Their sums.
    pub totals: Totals,
}

/// A column of all parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestColumn {
    /// Its name.
    pub name: String,
    /// Its type: `int64`, `decimal(12,2)`, `timestamp with time zone` …
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it may be null.
    pub nullable: bool,
}

/// One part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestPart {
    /// The object's name, next to the manifest.
    pub name: String,
    /// Its chunk.
    pub chunk: i64,
    /// The epoch under which it was written.
    pub epoch: i64,
    /// The number of rows.
    pub rows: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes, in hex.
    pub sha256: String,
    /// The hash of the rows.
    pub content_hash: String,
}

/// The totals of all parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// The number of parts.
    pub parts: u64,
    /// The number of rows.
    pub rows: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// A hash of the parts' content hashes, independent of the order of the chunks: segments that are planned
    /// concurrently number their chunks in a random order.
    pub content_hash: String,
}

impl ManifestPart {
    /// The part that a writer has written for a chunk.
    pub fn new(part: PartName, written: Written) -> ManifestPart {
        let Written { name, rows, bytes, sha256, content_hash } = written;
        let PartName { chunk, epoch, nonce: _ } = part;
        ManifestPart { name, chunk, epoch, rows, bytes, sha256, content_hash }
    }
}

impl Manifest {
    /// A manifest of these parts. Refuses two parts of one chunk, since its rows would count twice.
    pub fn new(
        job_id: impl Into<String>,
        job_type: impl Into<String>,
        output: Output,
        schema: &SchemaRef,
        mut parts: Vec<ManifestPart>,
    ) -> Result<Manifest> {
        parts.sort_by_key(|part| (part.chunk, part.epoch));
        check_parts(&parts).map_err(Error::Invalid)?;
        let totals = totals(&parts).map_err(Error::Invalid)?;
        let columns = schema.fields().iter().map(|field| ManifestColumn {
            name: field.name().clone(),
            kind: type_name(field),
            nullable: field.is_nullable(),
        });
        Ok(Manifest {
            version: VERSION,
            job_id: job_id.into(),
            job_type: job_type.into(),
            format: output.format(),
            compression: output.compression(),
            schema: columns.collect(),
            totals,
            parts,
        })
    }

    /// Writes the manifest, which makes its parts visible to readers.
    pub async fn write(&self, destination: &Destination) -> Result<()> {
        let failed = |error: serde_json::Error| Error::Manifest {
            destination: destination.url().to_owned(),
            cause: error.to_string(),
        };
        let mut text = serde_json::to_vec_pretty(self).map_err(failed)?;
        text.push(b'\n');
        destination.put(NAME, text).await
    }

    /// Deletes the manifest of a destination, if there is one. Its parts are no longer visible to readers.
    pub async fn remove(destination: &Destination) -> Result<()> {
        destination.remove(NAME).await
    }

    /// Reads the manifest of a destination. `None` if there is none yet.
    pub async fn read(destination: &Destination) -> Result<Option<Manifest>> {
        let Some(text) = destination.get(NAME).await? else { return Ok(None) };
        let failed =
            |cause: String| Error::Manifest { destination: destination.url().to_owned(), cause };
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
        if manifest.version != VERSION {
            let version = manifest.version;
            return Err(failed(format!(
                "its version is {version}; the supported version is {VERSION}"
            )));
        }
        check_parts(&manifest.parts).map_err(failed)?;
        if manifest.totals != totals(&manifest.parts).map_err(failed)? {
            return Err(failed("its totals do not match its parts".into()));
        }
        Ok(Some(manifest))
    }
}

/// Refuses parts that are not in the order of their chunks, two parts of one chunk, since its rows would count twice, and
/// names that are not those of objects in the destination.
fn check_parts(parts: &[ManifestPart]) -> std::result::Result<(), String> {
    if let Some(two) = parts.windows(2).find(|two| two[0].chunk >= two[1].chunk) {
        let (one, other) = (&two[0].name, &two[1].name);
        return Err(match two[0].chunk == two[1].chunk {
            true => format!("`{one}` and `{other}` belong to the same chunk"),
            false => format!("`{one}` and `{other}` are not in the order of their chunks"),
        });
    }
    let is_plain = |name: &str| {
        !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
    };
    match parts.iter().find(|part| !is_plain(&part.name)) {
        Some(part) => Err(format!("`{}` is not the name of a part", part.name.escape_debug())),
        None => Ok(()),
    }
}

fn totals(parts: &[ManifestPart]) -> std::result::Result<Totals, String> {
    let mut hash = Context::new(&SHA256);
    let mut contents: Vec<&str> = parts.iter().map(|part| part.content_hash.as_str()).collect();
    contents.sort_unstable();
    for content in contents {
        hash.update(content.as_bytes());
        hash.update(b"\n");
    }
    let sum = |what: &str, of: fn(&ManifestPart) -> u64| {
        let sum = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(of(part)));
        sum.ok_or_else(|| format!("its parts have more than {} {what}", u64::MAX))
    };
    Ok(Totals {
        parts: parts.len() as u64,
        rows: sum("rows", |part| part.rows)?,
        bytes: sum("bytes", |part| part.bytes)?,
        content_hash: hex::encode(hash.finish()),
    })
}
