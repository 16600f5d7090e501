//! The format and the compression of parts and reports.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Apache Parquet: typed columns.
    Parquet,
    /// RFC 4180 with a header. `NULL` is an empty field, the empty text is `""`.
    Csv,
    /// One JSON object per line.
    Jsonl,
    /// One JSON array of objects, for reports.
    Json,
}

/// A compression. Parquet compresses pages, the other formats the whole file.
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

/// A format with a supported compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    format: Format,
    compression: Compression,
}

impl Format {
    /// The format with this name: `parquet`, `csv`, `jsonl` or `json`.
    pub fn named(name: &str) -> Result<Format> {
        Ok(match name {
            "parquet" => Format::Parquet,
            "csv" => Format::Csv,
            "jsonl" | "ndjson" => Format::Jsonl,
            "json" => Format::Json,
            _ => {
                let known = "must be `parquet`, `csv`, `jsonl` or `json`";
                return Err(Error::Invalid(format!("unknown format `{name}`; {known}")));
            }
        })
    }

    /// Its name, which is also its file extension.
    pub fn name(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Csv => "csv",
            Format::Jsonl => "jsonl",
            Format::Json => "json",
        }
    }

    /// Its media type.
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
    /// The format with its default compression: Zstandard for Parquet, none for text.
    pub fn of(format: Format) -> Output {
        let compression = match format {
            Format::Parquet => Compression::Zstd,
            _ => Compression::None,
        };
        Output { format, compression }
    }

    /// The format with this compression, if it is supported.
    pub fn with(format: Format, compression: Compression) -> Result<Output> {
        match (format, compression) {
            (Format::Parquet, Compression::Gzip) => Err(Error::Invalid(
                "the compression of parquet must be `zstd` or `none`, not `gzip`".into(),
            )),
            (Format::Csv | Format::Jsonl | Format::Json, Compression::Zstd) => Err(Error::Invalid(
                format!("{} is compressed by `gzip` or `none`, not by `zstd`", format.name()),
            )),
            _ => Ok(Output { format, compression }),
        }
    }

    /// The output for a file name such as `report.parquet` or `report.csv.gz`.
    pub fn of_file(name: &str) -> Result<Output> {
        let (stem, compression) = match name.strip_suffix(".gz") {
            Some(stem) => (stem, Some(Compression::Gzip)),
            None => (name, None),
        };
        let Some((_, extension)) = stem.rsplit_once('.') else {
            let example = "such as `report.parquet`, `.csv`, `.csv.gz`, `.jsonl` or `.json`";
            return Err(Error::Invalid(format!("`{name}` has no known extension, {example}")));
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

    /// The file extension, such as `parquet` or `csv.gz`.
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
    fn the_file_name_determines_the_format() {
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
    fn an_unsupported_compression_is_refused() {
        assert!(Output::with(Format::Csv, Compression::Zstd).is_err());
        assert!(Output::with(Format::Parquet, Compression::None).is_ok());
        assert!(Output::with(Format::Jsonl, Compression::Gzip).is_ok());
    }
}
