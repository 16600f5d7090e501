//! Numbers in the answers of a handler are stored as the database reads the same digits, or refused if the column cannot
//! hold them. `PROPTEST_CASES` raises the number of rows.

use super::table::{run, texts, try_run};
use super::values::{json_numbers, quoted};
use crate::protocol::common::*;
use proptest::sample::select;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use std::collections::HashSet;

const ROWS: u32 = 120;

/// Answers each item with the digits of `given` for the column `target`.
const PROGRAM: &str = r#"
import json, sys
for line in sys.stdin:
    results = []
    for item in json.loads(line)["items"]:
        record = item["record"]
        results.append('{"key": %d, "update": {"%s": %s}}' % (item["key"], record["target"], record["given"]))
    print('{"results": [%s]}' % ", ".join(results), flush=True)
"#;

/// A column type, the expression that shows a value of it, and the one that makes a value of a text.
type NumberColumn = (&'static str, &'static str, &'static str);

/// `$c` is the column, `$t` the quoted digits. A number with decimal places is no integer.
const POSTGRES: [NumberColumn; 10] = [
    ("smallint", "$c::text", "trim_scale($t::numeric)::text::smallint"),
    ("int", "$c::text", "trim_scale($t::numeric)::text::int"),
    ("bigint", "$c::text", "trim_scale($t::numeric)::text::bigint"),
    ("numeric", "$c::text", "$t::numeric"),
    ("numeric(20,5)", "$c::text", "$t::numeric"),
    ("real", "$c::text", "$t::real"),
    ("double precision", "$c::text", "$t::double precision"),
    ("json", "$c::text", "$t::json"),
    ("jsonb", "$c::text", "$t::jsonb"),
    ("text", "$c", "$t"),
];

const MARIADB: [NumberColumn; 9] = [
    ("SMALLINT", "CAST($c AS CHAR)", "$t"),
    ("BIGINT", "CAST($c AS CHAR)", "$t"),
    ("BIGINT UNSIGNED", "CAST($c AS CHAR)", "$t"),
    ("DECIMAL(65,30)", "CAST($c AS CHAR)", "$t"),
    ("DECIMAL(20,5)", "CAST($c AS CHAR)", "$t"),
    ("FLOAT", "CAST($c AS CHAR)", "$t"),
    ("DOUBLE", "CAST($c AS CHAR)", "$t"),
    ("JSON", "CAST($c AS CHAR)", "$t"),
    ("LONGTEXT", "$c", "$t"),
];

/// `quote` shows 17 digits of a float.
const SQLITE_SHOWN: &str = "CASE typeof($c) WHEN 'text' THEN $c ELSE typeof($c) || quote($c) END";

const SQLITE: [NumberColumn; 5] = [
    ("INTEGER", SQLITE_SHOWN, "CAST($t AS NUMERIC)"),
    ("REAL", SQLITE_SHOWN, "CAST($t AS REAL)"),
    ("NUMERIC", SQLITE_SHOWN, "CAST($t AS NUMERIC)"),
    ("TEXT", SQLITE_SHOWN, "$t"),
    ("VARCHAR(9)", SQLITE_SHOWN, "$t"),
];

async fn stored_as_the_database_reads_them(fixture: EngineFixture, columns: &[NumberColumn]) {
    let rows = generated_rows(columns.len());
    for table in ["numbers", "expected"] {
        let defined: Vec<String> =
            columns.iter().enumerate().map(|(n, column)| format!("c{n} {}", column.0)).collect();
        let text = "VARCHAR(600) NOT NULL";
        let create = format!(
            "CREATE TABLE {table} (id BIGINT NOT NULL PRIMARY KEY, version BIGINT NOT NULL, \
             target {text}, given {text}, {})",
            defined.join(", ")
        );
        run(&fixture, &create).await;
        let row = |(id, (column, digits)): (usize, &(usize, String))| {
            format!("({id}, 0, 'c{column}', '{digits}')")
        };
        let rows: Vec<String> = rows.iter().enumerate().map(row).collect();
        let columns = "(id, version, target, given)";
        run(&fixture, &format!("INSERT INTO {table} {columns} VALUES {}", rows.join(", "))).await;
    }
    let refused = refused_by_windlass(&fixture).await;
    for (id, (n, digits)) in rows.iter().enumerate() {
        let (sql_type, shown, made) = columns[*n];
        let made = made.replace("$t", &quoted(digits));
        let update = format!("UPDATE expected SET c{n} = {made} WHERE id = {id}");
        let accepts = try_run(&fixture, &update).await;
        let place = format!("{digits} in a column of type {sql_type}");
        let is_refused = refused.contains(&(id as i64));
        // An integer may be refused in another notation.
        if is_refused && sql_type.ends_with("int") && digits.contains(['.', 'e', 'E']) {
            continue;
        }
        assert_eq!(!is_refused, accepts, "{place}: accepted by Windlass");
        let shown = shown.replace("$c", &format!("c{n}"));
        let mut values = Vec::new();
        for table in ["numbers", "expected"] {
            let sql = format!("SELECT {shown} FROM {table} WHERE id = {id}");
            values.push(texts(&fixture.app, &sql).await.remove(0));
        }
        let normal = |text: &Option<String>| text.as_deref().map(without_notation);
        assert_eq!(normal(&values[0]), normal(&values[1]), "{place}");
    }
}

/// A number as its digits and the power of ten behind the last one: `1.10`, `11e-1` and `0.11E1` are the same. Other
/// texts stay as they are.
fn without_notation(text: &str) -> String {
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, places) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{places}");
    let Ok(power) = power.parse::<i64>() else { return text.to_owned() };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return text.to_owned();
    }
    let shortest = digits.trim_end_matches('0');
    let power = power - places.len() as i64 + (digits.len() - shortest.len()) as i64;
    match shortest.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => format!("{sign}{digits}e{power}"),
    }
}

/// The columns and digits of the rows.
fn generated_rows(columns: usize) -> Vec<(usize, String)> {
    let rows = std::env::var("PROPTEST_CASES").ok().and_then(|rows| rows.parse().ok());
    let row = (select((0..columns).collect::<Vec<_>>()), json_numbers());
    let mut runner = TestRunner::default();
    let mut next = || row.new_tree(&mut runner).unwrap().current();
    (0..rows.unwrap_or(ROWS)).map(|_| next()).collect()
}

/// Runs the job; returns the ids of the records whose update was refused.
async fn refused_by_windlass(fixture: &EngineFixture) -> HashSet<i64> {
    let program = fixture.folder.path().join("numbers.py");
    std::fs::write(&program, PROGRAM).unwrap();
    let step = format!(
        "source.table = \"numbers\"\nstep.command = [\"python3\", \"{}\"]\nstep.version = \"version\"",
        program.display()
    );
    let definition = job(&step, "").replace("source.table = \"visits\"\n", "");
    let engine = fixture.engine(&definition).await;
    let done = complete(&engine).await;
    keys(&letters(&engine, done.id).await).into_iter().collect()
}

#[tokio::test]
async fn postgres_stores_numbers_of_handlers_as_it_reads_them() {
    stored_as_the_database_reads_them(EngineFixture::postgres().await, &POSTGRES).await;
}

#[tokio::test]
async fn mariadb_stores_numbers_of_handlers_as_it_reads_them() {
    stored_as_the_database_reads_them(EngineFixture::mariadb().await, &MARIADB).await;
}

#[tokio::test]
async fn sqlite_stores_numbers_of_handlers_as_it_reads_them() {
    stored_as_the_database_reads_them(EngineFixture::sqlite().await, &SQLITE).await;
}
