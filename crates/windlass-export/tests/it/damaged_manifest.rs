//! Manifests that were changed at random, truncated or made by another program: each is read as it was written, or
//! refused with the destination and the reason.

use crate::common::{columns, folder_destination};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;
use std::fs;
use windlass_export::{
    Compression, Format, Manifest, ManifestPart, Output, PartName, Written, schema,
};

/// Values that no writer of a manifest writes, or only elsewhere.
const VALUES: [&str; 16] = [
    "null",
    "true",
    "-1",
    "0",
    "1",
    "1.5",
    "1e400",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    r#""""#,
    r#""../manifest.json""#,
    r#""/etc/passwd""#,
    r#""\u0000""#,
    "[]",
    "{}",
];

/// What failed once: a place in the text, what stands there instead, and why it is refused.
const FOUND: [(&str, &str, &str); 4] = [
    (
        r#""rows": 4,"#,
        r#""rows": 18446744073709551615,"#,
        "its parts have more than 18446744073709551615 rows",
    ),
    (
        r#""bytes": 9,"#,
        r#""bytes": 18446744073709551615,"#,
        "its parts have more than 18446744073709551615 bytes",
    ),
    // Its rows would count twice.
    (r#""chunk": 1,"#, r#""chunk": 0,"#, "belong to the same chunk"),
    // It leads out of the destination.
    (r#""name": "part-000001"#, r#""name": "../part-000001"#, "is not the name of a part"),
];

fn manifest() -> Manifest {
    let output = Output::with(Format::Csv, Compression::Gzip).unwrap();
    let part = |chunk| {
        let name = PartName { chunk, epoch: 1, nonce: 7 };
        let (sha256, content_hash) = ("ab".repeat(32), format!("{chunk:064}"));
        let written = Written { name: name.file(output), rows: 4, bytes: 9, sha256, content_hash };
        ManifestPart::new(name, written)
    };
    Manifest::new("j", "EXPORT", output, &schema(&columns()), (0..3).map(part).collect()).unwrap()
}

/// A change of the text.
#[derive(Clone, Debug)]
enum Change {
    Truncate(Index),
    Byte(Index, u8),
    /// Another value, after the colon or comma at this place.
    Value(Index, &'static str),
    /// A line removed or repeated.
    Remove(Index),
    Repeat(Index),
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<Index>().prop_map(Change::Truncate),
        any::<(Index, u8)>().prop_map(|(place, byte)| Change::Byte(place, byte)),
        (any::<Index>(), select(&VALUES[..])).prop_map(|(place, to)| Change::Value(place, to)),
        any::<Index>().prop_map(Change::Remove),
        any::<Index>().prop_map(Change::Repeat),
    ]
}

fn changed(text: &str, changes: &[Change]) -> Vec<u8> {
    let mut text = text.as_bytes().to_vec();
    for change in changes {
        let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        text = match change {
            Change::Truncate(end) => text[..end.index(text.len() + 1)].to_vec(),
            Change::Byte(place, to) => {
                let mut text = text.clone();
                if !text.is_empty() {
                    let place = place.index(text.len());
                    text[place] = *to;
                }
                text
            }
            Change::Value(place, to) => {
                let place = place.index(lines.len());
                let line = String::from_utf8_lossy(lines[place]).into_owned();
                let (key, value) = line.split_once(": ").unwrap_or((&line, ""));
                let comma = if value.ends_with(',') { "," } else { "" };
                let line = format!("{key}: {to}{comma}");
                lines[place] = line.as_bytes();
                lines.join(&b'\n')
            }
            Change::Remove(place) => {
                lines.remove(place.index(lines.len()));
                lines.join(&b'\n')
            }
            Change::Repeat(place) => {
                let place = place.index(lines.len());
                lines.insert(place, lines[place]);
                lines.join(&b'\n')
            }
        };
    }
    text
}

/// Reads a text as a manifest: what it is, or why it is refused.
fn read(text: &[u8]) -> Result<Manifest, String> {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    fs::write(folder.path().join("manifest.json"), text).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let read = runtime.block_on(Manifest::read(&destination));
    let error = match read {
        Ok(manifest) => return Ok(manifest.unwrap()),
        Err(error) => error.to_string(),
    };
    assert!(error.contains(destination.url()), "does not name the destination: {error}");
    Err(error)
}

fn written() -> String {
    serde_json::to_string_pretty(&manifest()).unwrap()
}

#[test]
fn what_failed_once_is_refused() {
    let text = written();
    for (from, to, why) in FOUND {
        assert!(text.contains(from), "{from}: {text}");
        let error = read(text.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    assert_eq!(read(text.as_bytes()), Ok(manifest()));
}

proptest! {
    #[test]
    fn a_damaged_manifest_is_read_as_written_or_refused(
        changes in prop::collection::vec(any_change(), 1..4)
    ) {
        let changed = changed(&written(), &changes);
        if let Ok(read) = read(&changed) {
            // Nothing was left out or added on the way.
            let text: Value = serde_json::from_slice(&changed).unwrap();
            let kept = serde_json::to_value(&read).unwrap();
            prop_assert_eq!(&kept["parts"], &text["parts"]);
            prop_assert_eq!(&kept["totals"], &text["totals"]);
            for part in &read.parts {
                prop_assert!(!part.name.contains(['/', '\\', '\0']) && !part.name.is_empty());
            }
            let mut chunks: Vec<_> = read.parts.iter().map(|part| part.chunk).collect();
            chunks.dedup();
            prop_assert_eq!(chunks.len(), read.parts.len());
        }
    }
}
