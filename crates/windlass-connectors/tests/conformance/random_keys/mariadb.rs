//! Key types and collations of MariaDB with SQL literals of their values. A value that does not fit becomes another one.

use super::tables::KeyColumn;
use super::texts::*;
use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;

/// A text as hexadecimal digits, which no mode of the server changes.
fn encoded(text: &str) -> String {
    format!("CONVERT(x'{}' USING utf8mb4)", hex::encode(text))
}

fn text(sql_type: &'static str) -> KeyColumn {
    KeyColumn::new(sql_type, texts().prop_map(|text| encoded(&text)).boxed())
}

fn long(sql_type: &'static str) -> KeyColumn {
    let value = |(begin, end): (&str, String)| {
        format!("CONCAT(REPEAT({}, 600), {})", encoded(begin), encoded(&end))
    };
    KeyColumn::new(sql_type, long_texts().prop_map(value).boxed()).alone()
}

fn bare(sql_type: &'static str, values: BoxedStrategy<String>) -> KeyColumn {
    KeyColumn::new(sql_type, values)
}

fn listed(sql_type: &'static str, values: &'static [&'static str]) -> KeyColumn {
    KeyColumn::new(sql_type, one_of(values).prop_map(|value| format!("'{value}'")).boxed())
}

fn binary(sql_type: &'static str) -> KeyColumn {
    KeyColumn::new(sql_type, bytes().prop_map(|hex| format!("x'{hex}'")).boxed())
}

pub(super) fn columns() -> Vec<KeyColumn> {
    let mut columns = vec![
        bare("TINYINT", integers(i8::MIN.into(), i8::MAX.into())),
        bare("TINYINT(1)", integers(i8::MIN.into(), i8::MAX.into())),
        bare("INT UNSIGNED ZEROFILL", integers(0, u32::MAX.into())),
        bare("BIGINT", integers(i64::MIN.into(), i64::MAX.into())),
        bare("BIGINT UNSIGNED", integers(0, u64::MAX.into())),
        bare("BIT(1)", integers(0, 1)),
        bare("BIT(64)", integers(0, u64::MAX.into())),
        bare("YEAR", one_of(&["0", "1901", "1970", "2025", "2155"])),
        listed("DECIMAL(30, 5)", DECIMALS),
        listed("DECIMAL(65, 30)", DECIMALS),
        listed("DECIMAL(30, 0) UNSIGNED", DECIMALS),
        bare("DOUBLE", one_of(FLOATS)),
        bare("DOUBLE(20, 3)", one_of(FLOATS)),
        bare("FLOAT", one_of(&["0", "-0e0", "0.1", "0.3", "16777216", "16777217", "3.4e38"])),
        bare("FLOAT(7, 3)", one_of(&["0", "0.1", "0.3", "1234.567", "1234.5671", "-1234.567"])),
        listed("DATE", MOMENTS),
        listed("DATETIME", MOMENTS),
        listed("DATETIME(6)", MOMENTS),
        listed("TIMESTAMP(3)", &MOMENTS[2..]),
        listed(
            "TIME(2)",
            &["-838:59:59", "-00:00:00.01", "00:00:00", "23:59:59.99", "24:00:00", "100:00:00"],
        ),
        listed("UUID", UUIDS),
        listed("INET6", &["::", "::1", "::0001", "ff02::1", "::ffff:10.0.0.1"]),
        binary("BINARY(3)"),
        binary("VARBINARY(9)"),
        // Refused: sorted by number, but compared as text.
        listed("ENUM('b', 'a', 'B ')", &["b", "a"]),
        listed("SET('b', 'a')", &["b", "a", "b,a", ""]),
    ];
    columns.extend(
        [
            "VARCHAR(40) COLLATE utf8mb4_general_ci",
            "VARCHAR(40) COLLATE utf8mb4_unicode_ci",
            "VARCHAR(40) COLLATE utf8mb4_unicode_520_ci",
            "VARCHAR(40) COLLATE utf8mb4_bin",
            "VARCHAR(40) COLLATE utf8mb4_nopad_bin",
            "VARCHAR(40) COLLATE utf8mb4_general_nopad_ci",
            "VARCHAR(40) COLLATE utf8mb4_unicode_520_nopad_ci",
            "VARCHAR(40) COLLATE utf8mb4_swedish_ci",
            "VARCHAR(40) COLLATE utf8mb4_german2_ci",
            "VARCHAR(40) COLLATE utf8mb4_spanish2_ci",
            "VARCHAR(40) COLLATE utf8mb4_turkish_ci",
            "VARCHAR(40) CHARACTER SET utf8mb3",
            "VARCHAR(40) CHARACTER SET latin1",
            "VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_german2_ci",
            "VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_bin",
            "VARCHAR(40) CHARACTER SET utf16",
            "VARCHAR(40) CHARACTER SET ucs2 COLLATE ucs2_bin",
            "VARCHAR(40) CHARACTER SET sjis",
            "CHAR(3) COLLATE utf8mb4_general_ci",
            "CHAR(3) COLLATE utf8mb4_bin",
        ]
        .map(text),
    );
    columns.extend(
        [
            "VARCHAR(700) COLLATE utf8mb4_general_ci",
            "VARCHAR(700) COLLATE utf8mb4_unicode_ci",
            "VARCHAR(700) COLLATE utf8mb4_bin",
        ]
        .map(long),
    );
    let long_bytes = bytes().prop_map(|hex| format!("CONCAT(REPEAT('a', 1100), x'{hex}')"));
    columns.push(KeyColumn::new("VARBINARY(3000)", long_bytes.boxed()).alone());
    columns
}
