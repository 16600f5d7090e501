//! The names of parts. Each lease of a chunk has its own name, so that a worker that lost its lease never overwrites
//! the part of its successor. The nonce keeps names unique even if the store was restored from a backup and issued
//! the same epoch twice.

use std::fmt;

use crate::Output;

/// The parts of a part's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartName {
    /// The chunk's number.
    pub chunk: i64,
    /// The epoch of the lease under which it was written.
    pub epoch: i64,
    /// The random number of that lease.
    pub nonce: i64,
}

impl PartName {
    /// The name of the object: `part-000042-3-00c0ffee00c0ffee.parquet`.
    pub fn file(self, output: Output) -> String {
        format!("{self}.{}", output.extension())
    }

    /// Parses the name of an object. `None` if it is not the name of a part.
    pub fn parse(name: &str) -> Option<PartName> {
        let (stem, extension) = name.strip_prefix("part-")?.split_once('.')?;
        let (chunk, claim) = stem.split_once('-')?;
        let (epoch, nonce) = claim.split_once('-')?;
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let is_nonce = nonce.len() == 16 && nonce.bytes().all(is_hex);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_ours = Output::of_file(name).is_ok_and(|output| output.extension() == extension);
        if !is_ours || chunk.len() < 6 || !is_number(chunk) || !is_number(epoch) || !is_nonce {
            return None;
        }
        let nonce = u64::from_str_radix(nonce, 16).ok()?.cast_signed();
        Some(PartName { chunk: chunk.parse().ok()?, epoch: epoch.parse().ok()?, nonce })
    }
}

impl fmt::Display for PartName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part-{:06}-{}-{:016x}", self.chunk, self.epoch, self.nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compression, Format};

    #[test]
    fn names_are_parsed_and_others_are_ignored() {
        let gzip = Output::with(Format::Csv, Compression::Gzip).unwrap();
        for (chunk, epoch, nonce) in [(0, 1, 0), (42, 3, -1), (1_234_567, 12, i64::MIN)] {
            let name = PartName { chunk, epoch, nonce };
            assert_eq!(PartName::parse(&name.file(gzip)), Some(name));
            assert_eq!(PartName::parse(&name.file(Output::of(Format::Parquet))), Some(name));
        }
        let name = PartName { chunk: 42, epoch: 3, nonce: 0xbeef };
        assert_eq!(name.file(gzip), "part-000042-3-000000000000beef.csv.gz");
        for other in [
            "manifest.json",
            "part-42-3-000000000000beef.csv",
            "part-000042.csv",
            "part-000042-3.csv",
            "part-000042-3-beef.csv",
            "part-000042-3-000000000000BEEF.csv",
            "part-000042-3-000000000000beef",
            "part-000042-x-000000000000beef.csv",
            "part-000042-3-000000000000beef.txt",
            "part-000042-3-000000000000beef.csv.bak",
            "my-part-000042-3-000000000000beef.csv",
            "part-000042--3-000000000000beef.csv",
        ] {
            assert_eq!(PartName::parse(other), None, "{other}");
        }
    }
}
