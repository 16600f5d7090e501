//! A function that decodes values in a JSON document which SQLite's JSON functions would change.

use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;
use rusqlite::{Connection, Error, Result};

/// Adds `windlass_cell(document)` to a connection. The document is an object of one field:
/// `{"float": BITS}` is the float of these 64 bits, `{"bytes": HEX}` a blob, `{"text": HEX}` a text.
pub(super) fn register(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("windlass_cell", 1, flags, |context| {
        let document: String = context.get(0)?;
        read(&document).ok_or_else(|| {
            Error::UserFunctionError(format!("`{document}` is not a valid cell of a batch").into())
        })
    })
}

fn read(document: &str) -> Option<Value> {
    let document: serde_json::Value = serde_json::from_str(document).ok()?;
    let (form, content) = document.as_object()?.iter().next()?;
    let bytes = || decode_hex(content.as_str()?);
    match form.as_str() {
        "float" => Some(Value::Real(f64::from_bits(content.as_i64()?.cast_unsigned()))),
        "bytes" => bytes().map(Value::Blob),
        "text" => bytes().and_then(|bytes| String::from_utf8(bytes).ok()).map(Value::Text),
        _ => None,
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cell_is_decoded_exactly() {
        let connection = Connection::open_in_memory().unwrap();
        register(&connection).unwrap();
        let select = |cell: serde_json::Value| -> rusqlite::Result<Value> {
            let sql = "SELECT windlass_cell(json_extract(value, '$[0]')) FROM json_each(?1)";
            connection.query_row(sql, [json!([[cell]]).to_string()], |row| row.get(0))
        };
        for float in [0.1 + 0.2, -0.0, 5e-324, f64::MAX, f64::INFINITY, f64::NEG_INFINITY] {
            let read = select(json!({"float": float.to_bits().cast_signed()})).unwrap();
            let Value::Real(read) = read else { panic!("{read:?}") };
            assert_eq!(read.to_bits(), float.to_bits());
        }
        assert_eq!(select(json!({"bytes": "00ff"})).unwrap(), Value::Blob(vec![0, 255]));
        assert_eq!(select(json!({"text": "610062"})).unwrap(), Value::Text("a\0b".into()));
        assert!(select(json!({"bytes": "0"})).is_err());
        assert!(select(json!({"other": 1})).is_err());
    }
}
