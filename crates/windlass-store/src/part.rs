//! Parts: the output of chunks, and the merged result.

/// The output of a chunk or, as [`MERGED`] and [`REPORT`], the merged result and the report of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPart {
    /// The name of its file or object; `None` when the content is stored here.
    pub name: Option<String>,
    /// The number of rows.
    pub rows: i64,
    /// The size in bytes, as stored.
    pub bytes: i64,
    /// The SHA-256 of the stored bytes.
    pub sha256: String,
    /// The hash of the rows, independent of the file format.
    pub content_hash: String,
    /// The content, if it is small enough to be stored here.
    pub content: Option<Vec<u8>>,
}

/// A stored part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRow {
    /// The chunk, [`MERGED`] or [`REPORT`].
    pub chunk: i64,
    /// The epoch at which the chunk completed.
    pub epoch: i64,
    /// The nonce of that lease.
    pub nonce: i64,
    /// The part.
    pub part: NewPart,
}

/// The chunk number of the merged result.
pub const MERGED: i64 = -1;
/// The chunk number of the report: its file, recorded before the file becomes visible. Its content is
/// [`REPLACED`] if another file had the same name.
pub const REPORT: i64 = -2;
/// The content of a report that replaced a file.
pub const REPLACED: &[u8] = b"replaced";
