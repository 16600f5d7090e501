//! The types of SQLite: any declared type, and every storage class in it.

use super::table::{TypeColumn, column};
use super::values::*;
use proptest::prelude::*;

fn literal(text: &str, _: &str) -> String {
    quoted(text)
}

/// A number. An infinite one is beyond every float.
fn bare(text: &str, _: &str) -> String {
    text.replace("Infinity", "9e999")
}

fn boolean(text: &str, _: &str) -> String {
    i32::from(text == "true" || text == "1").to_string()
}

fn binary(text: &str, _: &str) -> String {
    format!("X'{}'", text.strip_prefix("\\x").unwrap())
}

/// A timestamp as it was written.
fn moment(text: &str, _: &str) -> String {
    quoted(&text.replace('T', " "))
}

/// `quote` shows the storage class, and 17 digits of a float.
fn shown(
    sql_type: &'static str,
    values: Literal,
    restored: fn(&str, &str) -> String,
) -> TypeColumn {
    column(sql_type, values, "typeof({}) || quote({})", restored)
}

fn reals() -> Literal {
    or_null(prop_oneof![6 => doubles(), 1 => Just("9e999".to_owned()), 1 => Just("1.0".to_owned())])
}

fn blobs() -> Literal {
    or_null(bytes(0..=20).prop_map(|hex| format!("X'{hex}'")))
}

fn integer() -> Literal {
    integers(i64::MIN.into(), i64::MAX.into())
}

/// Values that every format can represent.
pub(super) fn columns() -> Vec<TypeColumn> {
    vec![
        shown("INTEGER", integer(), bare),
        shown("REAL", reals(), bare),
        shown("TEXT", texts(words(20)), literal),
        shown("VARCHAR(10)", texts(words(10)), literal),
        shown("BLOB", blobs(), binary),
        shown("BOOLEAN", integers(0, 1), boolean),
        shown("DATE", texts(dates()), literal),
        shown("DATETIME", texts(moments()), moment),
        shown("JSON", texts(documents()), literal),
    ]
}

/// Values that some file format cannot represent, but a handler can.
pub(super) fn more_columns() -> Vec<TypeColumn> {
    let any = || prop_oneof![integer(), reals(), texts(words(20)), blobs()].boxed();
    let types =
        ["", "INTEGER", "REAL", "TEXT", "BLOB", "NUMERIC", "DECIMAL(10,5)", "BOOLEAN", "JSON"];
    types.into_iter().map(|sql_type| shown(sql_type, any(), literal)).collect()
}
