//! The types of MariaDB.

use super::table::{TypeColumn, column};
use super::values::*;
use proptest::prelude::*;

/// The text of a file as a literal.
fn literal(text: &str, _: &str) -> String {
    quoted(text)
}

/// A number or boolean.
fn bare(text: &str, _: &str) -> String {
    text.to_owned()
}

/// Bytes.
fn binary(text: &str, _: &str) -> String {
    format!("X'{}'", text.strip_prefix("\\x").unwrap())
}

/// A timestamp in UTC, the time zone of the session.
fn instant(text: &str, _: &str) -> String {
    quoted(text.trim_end_matches('Z').trim_end_matches("+00:00"))
}

fn plain(sql_type: &'static str, values: Literal) -> TypeColumn {
    column(sql_type, values, "{}", literal)
}

fn number(sql_type: &'static str, values: Literal) -> TypeColumn {
    column(sql_type, values, "{} + 0", bare)
}

fn bytes_of(sql_type: &'static str, least: usize, most: usize) -> TypeColumn {
    let values = or_null(bytes(least..=most).prop_map(|hex| format!("X'{hex}'")));
    column(sql_type, values, "HEX({})", binary)
}

/// Values that every format can represent.
pub(super) fn columns() -> Vec<TypeColumn> {
    vec![
        number("boolean", integers(0, 1)),
        number("tinyint", integers(-128, 127)),
        number("smallint", integers(i16::MIN.into(), i16::MAX.into())),
        number("mediumint", integers(-8_388_608, 8_388_607)),
        number("int", integers(i32::MIN.into(), i32::MAX.into())),
        number("bigint", integers(i64::MIN.into(), i64::MAX.into())),
        number("tinyint unsigned", integers(0, 255)),
        number("int unsigned", integers(0, u32::MAX.into())),
        number("bigint unsigned", integers(0, u64::MAX.into())),
        column("float", or_null(singles()), "CAST({} AS DOUBLE)", bare),
        column("double", or_null(doubles()), "{}", bare),
        plain("decimal(12,2)", or_null(decimals(10, 2))),
        plain("decimal(65,30)", or_null(decimals(35, 30))),
        number("bit(1)", integers(0, 1)),
        number("bit(12)", integers(0, 4095)),
        number("bit(64)", integers(0, u64::MAX.into())),
        column("char(5)", texts("[a-z]{0,5}"), "HEX({})", literal),
        column("varchar(20)", texts(words(20)), "HEX({})", literal),
        column("tinytext", texts(words(20)), "HEX({})", literal),
        column("text", texts(words(20)), "HEX({})", literal),
        column("mediumtext", texts(words(20)), "HEX({})", literal),
        column("longtext", texts(words(20)), "HEX({})", literal),
        bytes_of("binary(4)", 4, 4),
        bytes_of("varbinary(20)", 0, 20),
        bytes_of("tinyblob", 0, 20),
        bytes_of("blob", 0, 20),
        bytes_of("mediumblob", 0, 20),
        bytes_of("longblob", 0, 20),
        plain("enum('a','b c','d''e')", one_of(&["a", "b c", "d'e"])),
        plain("set('x','y','z')", one_of(&["", "x", "x,z"])),
        plain("date", texts(dates())),
        plain("time(6)", one_of(&["-838:59:59.000000", "12:34:56.789012", "00:00:00.000000"])),
        plain("datetime", texts(dates().prop_map(|day| day + " 01:02:03"))),
        plain("datetime(6)", texts(moments())),
        column(
            "timestamp(6) NULL",
            texts((0..2_000_000_000i64, 0..1_000_000u32).prop_map(|(seconds, micros)| {
                let at = chrono::DateTime::from_timestamp(seconds + 1, micros * 1000).unwrap();
                at.format("%Y-%m-%d %H:%M:%S%.6f").to_string()
            })),
            "{}",
            instant,
        ),
        number("year", integers(1901, 2155)),
        column("json", texts(documents()), "JSON_COMPACT({})", literal),
        plain("uuid", texts(uuids())),
        plain("inet4", one_of(&["10.0.0.1", "255.255.255.255"])),
        plain("inet6", one_of(&["::1", "2001:db8::ff00:42:8329"])),
    ]
}

/// Values that some file format cannot represent, but a handler can.
pub(super) fn more_columns() -> Vec<TypeColumn> {
    let point = Just("ST_GeomFromText('POINT(1.5 2)', 4326)".to_owned());
    vec![
        number("tinyint(1)", integers(-128, 127)),
        column("json", one_of(&["{\"n\": 1e400}", "1.10"]), "{}", literal),
        column("point", or_null(point), "HEX({})", literal),
    ]
}
