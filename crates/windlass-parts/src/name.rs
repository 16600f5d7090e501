//! The names of parts, which say whose work they are: one per chunk and epoch, so that a worker
//! that lost its chunk never writes over its successor's part.

use std::fmt;

use crate::Output;

/// What a part's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartName {
    /// The chunk's number.
    pub chunk: i64,
    /// The epoch of the claim under which it was written.
    pub epoch: i64,
}

impl PartName {
    /// The name of the object: `part-000042-3.parquet`.
    pub fn file(self, output: Output) -> String {
        format!("{self}.{}", output.extension())
    }

    /// Reads the name of an object back; `None` for what is no part of ours.
    pub fn parse(name: &str) -> Option<PartName> {
        let (stem, extension) = name.strip_prefix("part-")?.split_once('.')?;
        let (chunk, epoch) = stem.split_once('-')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_ours = Output::of_file(name).is_ok_and(|output| output.extension() == extension);
        if !is_ours || chunk.len() < 6 || !is_number(chunk) || !is_number(epoch) {
            return None;
        }
        Some(PartName { chunk: chunk.parse().ok()?, epoch: epoch.parse().ok()? })
    }
}

impl fmt::Display for PartName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part-{:06}-{}", self.chunk, self.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compression, Format};

    #[test]
    fn names_are_read_back_and_others_are_nobodys() {
        let gzip = Output::with(Format::Csv, Compression::Gzip).unwrap();
        for (chunk, epoch) in [(0, 1), (42, 3), (1_234_567, 12)] {
            let name = PartName { chunk, epoch };
            assert_eq!(PartName::parse(&name.file(gzip)), Some(name));
            assert_eq!(PartName::parse(&name.file(Output::of(Format::Parquet))), Some(name));
        }
        assert_eq!(PartName { chunk: 42, epoch: 3 }.file(gzip), "part-000042-3.csv.gz");
        for other in [
            "manifest.json",
            "part-42-3.csv",
            "part-000042.csv",
            "part-000042-3",
            "part-000042-x.csv",
            "part-000042-3.txt",
            "part-000042-3.csv.bak",
            "my-part-000042-3.csv",
            "part-000042--3.csv",
        ] {
            assert_eq!(PartName::parse(other), None, "{other}");
        }
    }
}
