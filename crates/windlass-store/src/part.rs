//! Parts as the store keeps them.

/// What a chunk has put out; or, as [`MERGED`], what was made of all the parts of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPart {
    /// Its file or object; none when the content is here.
    pub name: Option<String>,
    /// How many rows it has.
    pub rows: i64,
    /// How many bytes it has as it is kept.
    pub bytes: i64,
    /// The digest of these bytes.
    pub sha256: String,
    /// The digest of its rows, whatever they are kept in.
    pub content_hash: String,
    /// The part itself, where it is small enough to be kept here.
    pub content: Option<Vec<u8>>,
}

/// A part that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRow {
    /// The chunk it is of.
    pub chunk: i64,
    /// The epoch the chunk was completed at.
    pub epoch: i64,
    /// The nonce of that claim.
    pub nonce: i64,
    /// The rest.
    pub part: NewPart,
}

/// The number that stands for what was made of all parts, where a part has its chunk's.
pub const MERGED: i64 = -1;
