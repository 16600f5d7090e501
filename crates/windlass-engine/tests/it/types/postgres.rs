//! The types of PostgreSQL.

use super::table::{TypeColumn, column};
use super::values::*;
use proptest::prelude::*;

/// The text of a file with a cast to the type.
fn cast(text: &str, sql_type: &str) -> String {
    format!("{}::{sql_type}", quoted(text))
}

/// The JSON array of a file as an array.
fn list(text: &str, sql_type: &str) -> String {
    let elements: Vec<&serde_json::value::RawValue> = serde_json::from_str(text).unwrap();
    let json = sql_type.starts_with("json");
    let element = |raw: &&serde_json::value::RawValue| {
        let text = match serde_json::from_str::<serde_json::Value>(raw.get()).unwrap() {
            serde_json::Value::Null => return "NULL".to_owned(),
            // Parquet has the text of each document.
            serde_json::Value::String(text) => text,
            _ if json => raw.get().to_owned(),
            serde_json::Value::Object(tagged) => match tagged.iter().next().unwrap() {
                (tag, bytes) if tag == "$bytes" => format!("\\x{}", bytes.as_str().unwrap()),
                (_, word) => word.as_str().unwrap().to_owned(),
            },
            other => other.to_string(),
        };
        format!("{}::{}", quoted(&text), sql_type.trim_end_matches("[]"))
    };
    let elements: Vec<String> = elements.iter().map(element).collect();
    format!("ARRAY[{}]::{sql_type}", elements.join(", "))
}

/// A column that is shown as its text.
fn plain(sql_type: &'static str, values: Literal) -> TypeColumn {
    column(sql_type, values, "{}::text", cast)
}

/// A column of arrays of these quoted values.
fn array(sql_type: &'static str, element: Literal) -> TypeColumn {
    let base = sql_type.trim_end_matches("[]");
    let values = proptest::collection::vec(element, 0..4).prop_map(move |elements| {
        let cast = |value: String| format!("({value})::{base}");
        let elements: Vec<String> = elements.into_iter().map(cast).collect();
        format!("ARRAY[{}]::{sql_type}", elements.join(", "))
    });
    column(sql_type, or_null(values), "{}::text", list)
}

fn point() -> impl Strategy<Value = String> {
    (doubles(), doubles()).prop_map(|(x, y)| format!("({x},{y})"))
}

/// A small number, since the server computes with the numbers of some shapes.
fn small_point() -> impl Strategy<Value = String> {
    (-1000..1000, -1000..1000).prop_map(|(x, y)| format!("({x}.5,{y}.25)"))
}

/// Values that every format can represent.
pub(super) fn columns() -> Vec<TypeColumn> {
    let floats = |finite: BoxedStrategy<String>| {
        let words = proptest::sample::select(&["NaN", "Infinity", "-Infinity", "0.1"][..]);
        texts(prop_oneof![4 => finite, 1 => words.prop_map(str::to_owned)])
    };
    vec![
        plain("boolean", one_of(&["true", "false"])),
        plain("smallint", integers(i16::MIN.into(), i16::MAX.into())),
        plain("integer", integers(i32::MIN.into(), i32::MAX.into())),
        plain("bigint", integers(i64::MIN.into(), i64::MAX.into())),
        plain("real", floats(singles().boxed())),
        plain("double precision", floats(doubles().boxed())),
        plain("numeric", floats(decimals(40, 30).boxed())),
        plain("numeric(12,2)", texts(decimals(10, 2))),
        plain("numeric(60,20)", texts(decimals(40, 20))),
        plain("money", texts(decimals(12, 2))),
        plain("text", texts(words(20))),
        plain("character varying(10)", texts(words(10))),
        plain("character(5)", texts("[a-z]{0,5}")),
        plain("name", texts("[a-z]{1,20}")),
        plain("\"char\"", texts("[a-z]")),
        plain("bytea", texts(bytes(0..=20).prop_map(|hex| format!("\\x{hex}")))),
        plain("date", texts(dates())),
        plain("timestamp", texts(moments())),
        plain("timestamp(3)", texts(moments())),
        plain("timestamp with time zone", texts(moments().prop_map(|at| at + "+05:30"))),
        plain("time", texts(times())),
        plain("time with time zone", texts(times().prop_map(|at| at + "-03"))),
        plain("interval", one_of(&["1 year -2 months 03:04:05.678901", "-7 days", "0"])),
        plain("uuid", texts(uuids())),
        plain("inet", one_of(&["10.0.0.1", "10.1.2.3/8", "::1/64"])),
        plain("cidr", one_of(&["10.0.0.0/8", "2001:db8::/32"])),
        plain("macaddr", one_of(&["08:00:2b:01:02:03"])),
        plain("macaddr8", one_of(&["08:00:2b:01:02:03:04:05"])),
        plain("bit(5)", texts("[01]{5}")),
        plain("bit varying(9)", texts("[01]{0,9}")),
        plain("point", texts(point())),
        plain("line", one_of(&["{1,2,3}", "{0.1,-1,0}"])),
        plain(
            "lseg",
            texts((small_point(), small_point()).prop_map(|(a, b)| format!("[{a},{b}]"))),
        ),
        plain("box", texts((small_point(), small_point()).prop_map(|(a, b)| format!("({a},{b})")))),
        plain(
            "path",
            texts((small_point(), small_point()).prop_map(|(a, b)| format!("[{a},{b}]"))),
        ),
        plain(
            "polygon",
            texts((small_point(), small_point()).prop_map(|(a, b)| format!("({a},{b})"))),
        ),
        plain("circle", texts(small_point().prop_map(|center| format!("<{center},2.5>")))),
        column("json", texts(documents()), "{}::jsonb::text", cast),
        plain("jsonb", texts(documents())),
        plain("jsonpath", one_of(&["$.a[*] ? (@ > 1)", "$"])),
        plain("xml", one_of(&["<a b=\"c\">d</a>", "text"])),
        plain("tsvector", one_of(&["'a':1A 'b''c':2", ""])),
        plain("tsquery", one_of(&["'a' & !'b':*", "'x' <-> 'y'"])),
        plain("int4range", one_of(&["[1,5)", "empty", "(,)", "[7,)"])),
        plain("numrange", one_of(&["(0.10,2.50]", "[,1)"])),
        plain("tstzrange", one_of(&["[\"2025-01-01 00:00:00+00\",infinity)"])),
        plain("datemultirange", one_of(&["{}", "{[2025-01-01,2025-02-01)}"])),
        plain("pg_lsn", one_of(&["16/B374D848", "0/0"])),
        plain("oid", integers(0, u32::MAX.into())),
        plain("xid8", one_of(&["18446744073709551615", "0"])),
        plain("pg_snapshot", one_of(&["10:20:10,14,15"])),
        plain("regclass", one_of(&["pg_class"])),
        array("integer[]", integers(i32::MIN.into(), i32::MAX.into())),
        array("bigint[]", integers(i64::MIN.into(), i64::MAX.into())),
        array("real[]", floats(singles().boxed())),
        array("double precision[]", floats(doubles().boxed())),
        array("numeric[]", floats(decimals(40, 30).boxed())),
        array("boolean[]", one_of(&["true", "false"])),
        array("text[]", texts(prop_oneof![words(8), Just("NULL".to_owned())])),
        array("bytea[]", texts(bytes(0..=5).prop_map(|hex| format!("\\x{hex}")))),
        array("date[]", texts(dates())),
        array("timestamp with time zone[]", texts(moments().prop_map(|at| at + "+00"))),
        array("uuid[]", texts(uuids())),
    ]
}

/// Values that some file format cannot represent, but a handler can.
pub(super) fn more_columns() -> Vec<TypeColumn> {
    vec![
        plain("numeric(9,2)", one_of(&["NaN", "1.10"])),
        plain("date", one_of(&["infinity", "-infinity", "0044-03-15 BC", "20000-01-01"])),
        plain("timestamp", one_of(&["infinity", "-infinity", "0044-03-15 12:00:00 BC"])),
        plain("timestamp with time zone", one_of(&["infinity", "0001-01-01 00:00:00+00 BC"])),
        plain("jsonb", one_of(&["1e400", "[1e-400, {\"a\": 1.10}]", "null", "\"text\"", "1.10"])),
        plain("jsonb", texts(Just(format!("{}{}", "[".repeat(500), "]".repeat(500))))),
        plain("jsonb", one_of(&["{\"$bytes\": \"00\"}", "{\"$float\": \"NaN\"}"])),
        plain("integer[]", one_of(&["{{1,NULL},{3,4}}", "[0:1]={1,2}", "{}"])),
        plain("box[]", one_of(&["{(1,1),(0,0);(2,2),(1,1)}"])),
        array("jsonb[]", texts(documents())),
        array("json[]", one_of(&["{\"a\": [1.10, 1e400]}", "[]"])),
        plain("jsonb[]", one_of(&["{{1,2},{3,4}}"])),
        array("point[]", texts(point())),
        array("int4range[]", one_of(&["[1,5)", "empty"])),
    ]
}
