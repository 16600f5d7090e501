//! Key types and collations of SQLite with SQL literals of their values: each column has values of every storage class.

use super::tables::KeyColumn;
use super::texts::*;
use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;

fn quoted() -> BoxedStrategy<String> {
    texts().prop_map(|text| format!("'{}'", text.replace('\'', "''"))).boxed()
}

/// Numbers, texts of numbers and bytes of digits. Integers and floats are equal if their values are.
const NUMBERS: &[&str] = &[
    "0",
    "-0.0",
    "1",
    "1.0",
    "'1'",
    "'1.0'",
    "' 1'",
    "'1e0'",
    "x'31'",
    "9007199254740992",
    "9007199254740993",
    "9007199254740992.0",
    "'9007199254740993'",
    "9223372036854775807",
    "9223372036854775808.0",
    "-9223372036854775808",
    "-9223372036854775808.0",
    "0.1",
    "'0.1'",
    "0.30000000000000004",
    "9e999",
    "-9e999",
    "5e-324",
    "'9e999'",
    "x''",
    "''",
    "'a' || char(0)",
    "'a' || char(0) || ' '",
    "'a'",
    "'A'",
    "true",
];

fn mixed() -> BoxedStrategy<String> {
    let blobs = bytes().prop_map(|hex| format!("x'{hex}'"));
    prop_oneof![3 => one_of(NUMBERS), 1 => quoted(), 1 => blobs].boxed()
}

pub(super) fn columns() -> Vec<KeyColumn> {
    let mixed = [
        "",
        "INT",
        "REAL",
        "NUMERIC",
        "BLOB",
        "BOOLEAN",
        "DATETIME",
        "TEXT",
        "TEXT COLLATE NOCASE",
        "TEXT COLLATE RTRIM",
        "NUMERIC COLLATE NOCASE",
        "BLOB COLLATE RTRIM",
    ]
    .map(|sql_type| KeyColumn::new(sql_type, mixed()));
    let texts = ["TEXT", "TEXT COLLATE NOCASE", "TEXT COLLATE RTRIM", "BLOB COLLATE NOCASE"]
        .map(|sql_type| KeyColumn::new(sql_type, quoted()));
    let rowid = KeyColumn::new("INTEGER", integers(i64::MIN.into(), i64::MAX.into()));
    mixed.into_iter().chain(texts).chain([rowid]).collect()
}
