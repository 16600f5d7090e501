//! How a part or a report is written: its format and its compression, and the name that shows both.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Apache Parquet: typed columns.
    Parquet,
    /// RFC 4180 with a header. `NULL` is nothing, the empty text is `""`.
    Csv,
    /// One JSON object a line.
    Jsonl,
    /// One JSON array of objects, for reports.
    Json,
}

/// A compression. Parquet compresses its pages, the others the whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// None.
    None,
    /// gzip, for text formats.
    Gzip,
    /// Zstandard, for Parquet.
    Zstd,
}

/// A format with a compression that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    format: Format,
    compression: Compression,
}

impl Format {
    /// The format of that name: `parquet`, `csv`, `jsonl` or `json`.
    pub fn named(name: &str) -> Result<Format> {
        Ok(match name {
            "parquet" => Format::Parquet,
            "csv" => Format::Csv,
            "jsonl" | "ndjson" => Format::Jsonl,
            "json" => Format::Json,
            _ => {
                let there = "there is `parquet`, `csv`, `jsonl` and `json`";
                return Err(Error::Wrong(format!("no format is called `{name}`; {there}")));
            }
        })
    }

    /// Its name, which is also its extension.
    pub fn name(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Csv => "csv",
            Format::Jsonl => "jsonl",
            Format::Json => "json",
        }
    }

    /// What HTTP calls it.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Parquet => "application/vnd.apache.parquet",
            Format::Csv => "text/csv; charset=utf-8",
            Format::Jsonl => "application/x-ndjson",
            Format::Json => "application/json",
        }
    }
}

impl Output {
    /// The format as it is written when nobody says more: Parquet with Zstandard, text as it is.
    pub fn of(format: Format) -> Output {
        let compression = match format {
            Format::Parquet => Compression::Zstd,
            _ => Compression::None,
        };
        Output { format, compression }
    }

    /// The format with this compression, if the two go together.
    pub fn with(format: Format, compression: Compression) -> Result<Output> {
        match (format, compression) {
            (Format::Parquet, Compression::Gzip) => {
                Err(Error::Wrong("parquet is compressed by `zstd` or `none`, not by `gzip`".into()))
            }
            (Format::Csv | Format::Jsonl | Format::Json, Compression::Zstd) => Err(Error::Wrong(
                format!("{} is compressed by `gzip` or `none`, not by `zstd`", format.name()),
            )),
            _ => Ok(Output { format, compression }),
        }
    }

    /// What the name of a file asks for: `report.parquet`, `report.csv.gz`.
    pub fn of_file(name: &str) -> Result<Output> {
        let (stem, compression) = match name.strip_suffix(".gz") {
            Some(stem) => (stem, Some(Compression::Gzip)),
            None => (name, None),
        };
        let Some((_, extension)) = stem.rsplit_once('.') else {
            let example = "such as `report.parquet`, `.csv`, `.csv.gz`, `.jsonl` or `.json`";
            return Err(Error::Wrong(format!("`{name}` does not say its format, {example}")));
        };
        let format = Format::named(&extension.to_ascii_lowercase())?;
        match compression {
            Some(compression) => Output::with(format, compression),
            None => Ok(Output::of(format)),
        }
    }

    /// The format.
    pub fn format(self) -> Format {
        self.format
    }

    /// The compression.
    pub fn compression(self) -> Compression {
        self.compression
    }

    /// How the name of such a file ends: `parquet`, `csv.gz`.
    pub fn extension(self) -> String {
        match self.compression {
            Compression::Gzip => format!("{}.gz", self.format.name()),
            _ => self.format.name().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_says_its_format() {
        for (name, extension) in [
            ("a.parquet", "parquet"),
            ("2025-01-31.csv", "csv"),
            ("a.CSV", "csv"),
            ("a.b.jsonl.gz", "jsonl.gz"),
            ("a.json", "json"),
        ] {
            assert_eq!(Output::of_file(name).unwrap().extension(), extension, "{name}");
        }
        assert_eq!(Output::of_file("a.parquet").unwrap().compression(), Compression::Zstd);
        for wrong in ["a", "a.xlsx", "a.parquet.gz"] {
            assert!(Output::of_file(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_compression_that_does_not_go_is_refused() {
        assert!(Output::with(Format::Csv, Compression::Zstd).is_err());
        assert!(Output::with(Format::Parquet, Compression::None).is_ok());
        assert!(Output::with(Format::Jsonl, Compression::Gzip).is_ok());
    }
}
