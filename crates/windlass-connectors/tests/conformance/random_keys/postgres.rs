//! Key types and collations of PostgreSQL with SQL literals of their values.

use super::tables::KeyColumn;
use super::texts::*;
use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;

/// What the types need.
pub(super) const BEFORE: &str = "CREATE EXTENSION citext;
    CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE COLLATION ai (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
    CREATE COLLATION digits (provider = icu, locale = 'en-u-kn-true-ks-level1', deterministic = false);
    CREATE COLLATION shifted (provider = icu, locale = 'und-u-ka-shifted', deterministic = false);
    CREATE COLLATION upper_first (provider = icu, locale = 'en-u-kf-upper');
    CREATE COLLATION phone_book (provider = icu, locale = 'de-u-co-phonebk');
    CREATE TYPE mood AS ENUM ('sad', 'it''s', 'Happy', 'happy');
    CREATE TYPE priced AS (price numeric, name citext);
    CREATE DOMAIN d_numeric AS numeric;
    CREATE DOMAIN d_folded AS text COLLATE ci;";

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn literals(sql_type: &'static str, values: BoxedStrategy<String>) -> KeyColumn {
    KeyColumn::new(sql_type, values.prop_map(|value| quoted(&value)).boxed())
}

fn listed(sql_type: &'static str, values: &'static [&'static str]) -> KeyColumn {
    literals(sql_type, one_of(values))
}

fn long(sql_type: &'static str) -> KeyColumn {
    let value =
        |(begin, end): (&str, String)| format!("repeat('{begin}', 600) || {}", quoted(&end));
    KeyColumn::new(sql_type, long_texts().prop_map(value).boxed()).alone()
}

/// A text that is cut to the length of the type, which an assignment would refuse.
fn cut_to(sql_type: &'static str) -> KeyColumn {
    let cast = move |text: String| format!("CAST({} AS {sql_type})", quoted(&text));
    KeyColumn::new(sql_type, texts().prop_map(cast).boxed())
}

pub(super) fn columns() -> Vec<KeyColumn> {
    let mut columns = vec![
        literals("text", texts()),
        long("text COLLATE \"C\""),
        cut_to("varchar(3)"),
        cut_to("char(3)"),
        cut_to("name"),
        listed("\"char\"", &["", "a", "A", " ", "~"]),
        literals("citext", texts()),
        listed("float8", FLOATS),
        listed("float8", &["NaN", "Infinity", "-Infinity", "0", "-0", "5e-324"]),
        listed("real", &["NaN", "-0", "0", "0.1", "16777216", "16777217", "1e-45", "3.4028235e38"]),
        listed("numeric", DECIMALS),
        listed("numeric", &["NaN", "Infinity", "-Infinity", "0", "0.000", "1e-100", "1e100"]),
        listed("d_numeric", DECIMALS),
        listed("numeric(30, 5)", DECIMALS),
        literals("int2", integers(i16::MIN.into(), i16::MAX.into())),
        literals("int8", integers(i64::MIN.into(), i64::MAX.into())),
        literals("oid", integers(0, u32::MAX.into())),
        listed("money", &["-92233720368547758.08", "0", "0.01", "1234.5", "1234.50"]),
        listed("bool", &["true", "false"]),
        listed("date", &["-infinity", "infinity", "0044-03-15 BC", "0001-01-01", "2025-01-31"]),
        listed("timestamp", MOMENTS),
        listed("timestamp(0)", MOMENTS),
        listed("timestamptz", MOMENTS),
        listed(
            "timestamptz",
            &[
                "2025-01-31 03:00:00+00",
                "2025-01-31 04:00:00+01",
                "2025-01-31 03:00:00.000001+00",
                "infinity",
                "0044-03-15 12:00:00+00 BC",
                "10000-01-01 00:00:00+00",
            ],
        ),
        listed("time", &["00:00", "00:00:00.000001", "23:59:59.999999", "24:00:00"]),
        listed("timetz", &["00:00+09", "15:00+00", "16:00+01", "00:00-09", "24:00:00+00"]),
        listed(
            "interval",
            &["1 mon", "30 days", "720:00:00", "1 day", "24:00:00", "0", "-1 day +24:00", "-1 mon"],
        ),
        listed("uuid", UUIDS),
        literals("bytea", bytes().prop_map(|hex| format!("\\x{hex}")).boxed()),
        listed("inet", &["10.0.0.1", "10.0.0.1/32", "10.0.0.1/24", "::", "::/64", "0.0.0.0/0"]),
        listed("cidr", &["10.0.0.0/8", "10.0.0.0/9", "::/0", "10.0.0.1"]),
        listed("macaddr", &["00:00:00:00:00:00", "08:00:2b:01:02:03", "08-00-2B-01-02-03"]),
        listed("bit(3)", &["000", "001", "100", "111"]),
        listed("varbit", &["", "0", "00", "1", "10"]),
        listed("int4[]", &["{}", "{NULL}", "{1}", "{1,2}", "{1,NULL}", "{{1},{2}}", "[0:0]={1}"]),
        listed("numeric[]", &["{1.0}", "{1.00}", "{1}", "{}", "{NaN}", "{1,0.30}"]),
        listed("text[]", &["{}", "{\"\"}", "{a}", "{A}", "{\"a,b\",NULL}", "{\"NULL\"}"]),
        listed("citext[]", &["{}", "{a}", "{A}", "{a,b}", "{A,B}", "{b}"]),
        listed("mood", &["sad", "it's", "Happy", "happy"]),
        listed("priced", &["(1.0,a)", "(1.00,A)", "(1,b)", "(,a)", "(,A)", "(2,)", "(2,\"\")"]),
        listed("numrange", &["empty", "(,)", "[1.0,2)", "[1.00,2.0)", "[1,2]", "[1,)"]),
        listed("int4range", &["empty", "[1,5)", "[1,4]", "(0,5)", "[1,)"]),
        listed("pg_lsn", &["0/0", "0/10", "FFFFFFFF/FFFFFFFF"]),
        listed("tsvector", &["", "a:1 b:2", "a b", "b:2 a:1"]),
        listed("xid8", &["0", "9223372036854775808", "18446744073709551615"]),
        // Refused: its numbers may lose digits.
        listed("jsonb", &["1", "1.0", "1.00", "\"a\"", "null", "[]"]),
    ];
    for sql_type in [
        "text COLLATE ci",
        "text COLLATE ai",
        "text COLLATE digits",
        "text COLLATE shifted",
        "text COLLATE upper_first",
        "text COLLATE \"en-x-icu\"",
        "text COLLATE \"sv-x-icu\"",
        "varchar COLLATE phone_book",
        "citext COLLATE \"tr-x-icu\"",
        "d_folded",
    ] {
        columns.push(literals(sql_type, texts()));
    }
    columns.push(listed("text[] COLLATE ci", &["{}", "{a}", "{A}", "{a,B}", "{A,b}", "{á}"]));
    columns.push(long("text COLLATE ci"));
    columns
}
