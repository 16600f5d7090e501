//! Output rows as CSV (RFC 4180), converted from JSON lines in pieces.
//!
//! A missing field and null are empty, and the empty text is `""`, as in the files of reports and exports. Lists and
//! objects are JSON.

use bytes::Bytes;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// The header line.
pub(crate) fn header(columns: &[String]) -> Bytes {
    let mut line = String::new();
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            line.push(',');
        }
        quote(column, &mut line);
    }
    line.push('\n');
    line.into()
}

/// Adds the fields of JSON lines that are not among the columns yet.
pub(crate) fn add_columns(lines: &[u8], columns: &mut Vec<String>) -> serde_json::Result<()> {
    for line in rows(lines) {
        let row: HashMap<String, &RawValue> = serde_json::from_slice(line)?;
        let mut new: Vec<String> = row.into_keys().filter(|name| !columns.contains(name)).collect();
        new.sort_unstable();
        columns.extend(new);
    }
    Ok(())
}

/// JSON lines as lines of these columns.
pub(crate) fn convert(lines: &[u8], columns: &[String]) -> serde_json::Result<Bytes> {
    let mut out = String::new();
    for line in rows(lines) {
        let row: HashMap<String, &RawValue> = serde_json::from_slice(line)?;
        for (index, column) in columns.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            if let Some(value) = row.get(column) {
                field(value.get(), &mut out)?;
            }
        }
        out.push('\n');
    }
    Ok(out.into())
}

fn rows(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

fn field(json: &str, out: &mut String) -> serde_json::Result<()> {
    match json.as_bytes().first() {
        Some(b'n') => {}
        Some(b'"') => quote(&serde_json::from_str::<String>(json)?, out),
        _ => quote(json, out),
    }
    Ok(())
}

/// Adds a text, quoted if necessary.
fn quote(text: &str, out: &mut String) {
    if !text.is_empty() && !text.contains([',', '"', '\n', '\r']) {
        return out.push_str(text);
    }
    out.push('"');
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_converted_with_the_columns_of_all_of_them() {
        let lines = b"{\"b\":\"x,y\",\"a\":1.10}\n{\"a\":null,\"c\":\"\",\"b\":[1,\"q\"]}\n{\"a\":true,\"b\":\"\\\"\\n\"}\n";
        let mut columns = Vec::new();
        add_columns(lines, &mut columns).unwrap();
        assert_eq!(columns, ["a", "b", "c"]);
        let text = [header(&columns), convert(lines, &columns).unwrap()].concat();
        let expected = "a,b,c\n1.10,\"x,y\",\n,\"[1,\"\"q\"\"]\",\"\"\ntrue,\"\"\"\n\",\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
