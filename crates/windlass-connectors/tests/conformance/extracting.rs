//! Extraction, by PostgreSQL's binary COPY and from MariaDB's binary rows, gives the same values as reading.

use crate::harness::{Db, Random, everything, key};
use windlass_connectors::Scope;
use windlass_core::{Identity, Key, KeySet, Request, Value};
use windlass_export::{RecordBatch, RowBuilder, schema};

const TYPES: &str = "id bigint PRIMARY KEY, small smallint, mid int, yes boolean, single real, \
    double double precision, money numeric(12,2), wide numeric(60,4), full_digits numeric(38,10), \
    whole numeric(9), hundreds numeric(5,-2), free numeric, name varchar(20), note text, \
    padded char(4), tag name, day date, at timestamptz, short timestamptz(3), plain timestamp, \
    uid uuid, raw bytea, doc jsonb, said json, mood mood, tags text[], during interval, sum cents";

/// Values of each type after the key, with special values first.
const VALUES: [&[&str]; 27] = [
    &["-32768", "32767", "0"],
    &["-2147483648", "2147483647", "7"],
    &["true", "false"],
    &["0.1", "NaN", "-Infinity", "1e-40"],
    &["1e300", "-0.0", "NaN", "Infinity", "0.30000000000000004"],
    &["-9999999999.99", "9999999999.99", "0.01", "0", "100", "-0.50", "10000.00"],
    &["-12345678901234567890123456789012345678901234567890.1234", "0.0001"],
    &["9999999999999999999999999999.9999999999", "-0.0000000001", "1e20", "12345.6789"],
    &["999999999", "-10000", "0"],
    &["9999900", "-100", "0"],
    &["1.10", "NaN", "-Infinity", "123456789012345678901234567890.00001"],
    &["it''s", "", "\\", "NULL"],
    &["ünï😀\ncode", "$1", "\"quoted\"", "a\tb"],
    &["ab", "", "wxyz"],
    &["n", "pg_class"],
    &["2025-01-31", "1969-12-31", "0044-03-15 BC", "9999-12-31", "2000-01-01"],
    &["2025-01-31 03:00:00.123456+05:30", "1969-12-31 23:59:59.999999+00", "0001-01-01 BC"],
    &["2025-01-31 03:00:00.123+00", "12000-01-01 00:00:00+00"],
    &["2025-07-01 12:00:00", "1900-01-01 00:00:00.000001"],
    &["018f3c2a-0000-7000-8000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    &["\\x00ff", "\\x", "\\x5c27"],
    &["{\"b\": [1, null], \"a\": 1.50}", "null", "\"text\"", "{}"],
    &["{\"b\" : 1,  \"a\":2}", "[]"],
    &["sad", "glad"],
    &["{x,y}", "{}", "{\"a,b\",NULL}"],
    &["1 day", "-03:04:05.6"],
    &["12.34", "0"],
];

async fn table(db: &Db) {
    db.run("CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN cents AS numeric(9,2)").await;
    let name = db.database().name();
    db.run(&format!("ALTER DATABASE {name} SET timezone = 'Asia/Tokyo'")).await;
    let types = match db.has_negative_scales().await {
        true => TYPES.to_owned(),
        // The same values, as another type of seven digits.
        false => TYPES.replace("numeric(5,-2)", "numeric(7)"),
    };
    db.run(&format!("CREATE TABLE t ({types})")).await;
}

async fn scope(db: &Db, more: &str) -> Scope {
    let toml =
        format!("source.table = \"t\"\nstep.handler = \"h\"\nstep.version = \"mid\"\n{more}");
    db.scope(&toml).await
}

/// The rows of a key set as extracted, in one batch.
async fn extracted(db: &Db, scope: &Scope, key_set: &KeySet) -> Result<RecordBatch, String> {
    let columns = &scope.table.columns;
    let (to, mut from) = tokio::sync::mpsc::channel(100);
    let done = db
        .data
        .extract(scope, windlass_connectors::Extraction { key_set, columns, batches: to })
        .await;
    done.map_err(|error| error.to_string())?;
    let batch = from.recv().await.unwrap();
    assert!(from.recv().await.is_none(), "so few rows are one batch");
    Ok(batch)
}

/// The same rows as read.
async fn read(db: &Db, scope: &Scope, key_set: &KeySet) -> RecordBatch {
    let mut builder = RowBuilder::new(schema(&scope.table.columns)).unwrap();
    let batch = db
        .data
        .read(scope, key_set, windlass_connectors::ReadLimits::new(10_000, usize::MAX))
        .await
        .unwrap();
    for item in batch.items {
        let cell = |column: &windlass_core::Column| item.record.get(&column.name).unwrap().clone();
        builder.push(&scope.table.columns.iter().map(cell).collect::<Vec<_>>()).unwrap();
    }
    builder.finish().unwrap()
}

/// Compares all of 1,500 rows, a few by their keys and some of a range.
async fn same_both_ways(db: &Db, scope: &Scope) {
    let listed = KeySet::keys(vec![key(7), key(-1), key(1400), key(3)]);
    let range = KeySet::range(Some(key(10)), Some(key(20)));
    for (key_set, count) in [(everything(), 1500), (listed, 3), (range, 10)] {
        let batch = extracted(db, scope, &key_set).await.unwrap();
        assert_eq!(batch.num_rows(), count);
        let wanted = read(db, scope, &key_set).await;
        for (place, field) in batch.schema().fields().iter().enumerate() {
            // Compares their text, since NaN is not equal to itself.
            let (ours, theirs) = (batch.column(place), wanted.column(place));
            assert!(ours == theirs || format!("{ours:?}") == format!("{theirs:?}"), "{field}");
        }
        assert_eq!(batch.schema(), wanted.schema());
    }
}

const MARIADB_TYPES: &str = "id bigint PRIMARY KEY, tiny tinyint, mid int NOT NULL, yes boolean, \
    big bigint unsigned, single float, double_ double, money decimal(12,2), wide decimal(65,30), \
    whole decimal(9), name varchar(20), latin varchar(20) CHARACTER SET latin1, note longtext, \
    padded char(4), raw varbinary(10), blob_ longblob, day date, at timestamp(6) NULL, \
    short timestamp NULL, plain datetime(6), coarse datetime(2), span time(3), y year, flag bit(1), \
    bits bit(12), choice SET('a', 'b'), mood ENUM('sad', 'glad'), doc JSON, uid UUID";

const MARIADB_VALUES: [&[&str]; 28] = [
    &["-128", "127", "0", "1"],
    &["-2147483648", "2147483647", "7"],
    &["1", "0"],
    &["18446744073709551615", "0", "9223372036854775808"],
    &["0.1", "1e-30", "-3.5"],
    &["1e300", "-0.0", "0.30000000000000004"],
    &["-9999999999.99", "9999999999.99", "0.01", "0", "-0.50"],
    &["12345678901234567890123456789012345.000000000000000000000000000001", "-1"],
    &["999999999", "-10000", "0"],
    &["it''s", "", "NULL", "12", "2025-01-31"],
    &["Müßig", ""],
    &["ünï😀\ncode", "$1", "\"quoted\"", "a\tb"],
    &["ab", "", "wxyz"],
    &["ab", "", "ÿ"],
    &["\0x", "ÿ"],
    &["2025-01-31", "1969-12-31", "9999-12-31", "0001-01-01", "2000-02-29"],
    &["2025-01-31 03:00:00.123456", "1970-01-02 00:00:00.000001"],
    &["2025-01-31 03:00:00", "2038-01-01 00:00:00"],
    &["2025-07-01 12:00:00", "1000-01-01 00:00:00.000001", "9999-12-31 23:59:59.999999"],
    &["2025-07-01 12:00:00.25", "1969-12-31 23:59:59.99"],
    &["-25:00:00.125", "838:59:59"],
    &["2025", "1901"],
    &["1", "0"],
    &["1", "0", "a"],
    &["a,b", "", "b"],
    &["sad", "glad"],
    &["{\"big\": 9007199254740993}", "null", "[1.50]"],
    &["018f3c2a-0000-7000-8000-000000000001"],
];

#[tokio::test]
async fn random_rows_of_mariadb_are_extracted_as_read() {
    let db = Db::mariadb().await;
    db.run(&format!("CREATE TABLE t ({MARIADB_TYPES})")).await;
    let mut random = Random(0x5eed_0002);
    let mut rows = Vec::new();
    for id in 0..1500 {
        let cell = |(n, values): (usize, &&[&str])| {
            let value = values[random.below(values.len() as u64) as usize];
            match random.below(5) {
                0 if n != 1 => "NULL".to_owned(),
                _ => format!("'{value}'"),
            }
        };
        let cells: Vec<String> = MARIADB_VALUES.iter().enumerate().map(cell).collect();
        rows.push(format!("({id}, {})", cells.join(", ")));
    }
    db.run(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    let scope = scope(&db, "").await;
    same_both_ways(&db, &scope).await;
    // MySQL may store invalid dates, which no part supports.
    db.run("SET sql_mode = ''; UPDATE t SET day = '0000-00-00' WHERE id = 9").await;
    let error = extracted(&db, &scope, &everything()).await.unwrap_err();
    assert!(error.contains("`day`") && error.contains("0000-00-00"), "{error}");
}

#[tokio::test]
async fn random_rows_of_postgres_are_extracted_as_read() {
    let db = Db::postgres().await;
    table(&db).await;
    let mut random = Random(0x5eed_0001);
    let mut rows = Vec::new();
    for id in 0..1500 {
        let cell = |(n, values): (usize, &&[&str])| {
            let value = values[random.below(values.len() as u64) as usize];
            match random.below(5) {
                0 => "NULL".to_owned(),
                1 if n == 4 => format!("{:?}", f64::from_bits(random.below(1 << 62))),
                1 if n == 5 => format!("{}.{:02}", random.below(10_000_000_000), random.below(100)),
                1 if n == 7 => format!("-{}.{}", random.below(1 << 60), random.below(1 << 30)),
                _ => format!("'{value}'"),
            }
        };
        let cells: Vec<String> = VALUES.iter().enumerate().map(cell).collect();
        rows.push(format!("({id}, {})", cells.join(", ")));
    }
    db.run(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    let scope = scope(&db, "").await;
    same_both_ways(&db, &scope).await;
    let kinds: Vec<String> = schema(&scope.table.columns)
        .fields()
        .iter()
        .map(|f| windlass_export::type_name(f))
        .collect();
    assert_eq!(
        kinds[6..11].join(" "),
        "decimal(12,2) decimal(60,4) decimal(38,10) decimal(9,0) decimal(7,0)"
    );
}

#[tokio::test]
async fn an_unsupported_value_is_an_error_that_names_its_column() {
    let db = Db::postgres().await;
    table(&db).await;
    let scope = scope(&db, "").await;
    for (column, value) in [
        ("money", "NaN"),
        ("full_digits", "NaN"),
        ("day", "infinity"),
        ("at", "-infinity"),
        ("plain", "infinity"),
    ] {
        db.run(&format!("TRUNCATE t; INSERT INTO t (id, {column}) VALUES (1, '{value}')")).await;
        let error = extracted(&db, &scope, &everything()).await.unwrap_err();
        assert!(error.contains(&format!("`{column}`")) && error.contains(value), "{error}");
    }
    // The connection is still usable.
    db.run("TRUNCATE t").await;
    assert_eq!(extracted(&db, &scope, &everything()).await.unwrap().num_rows(), 0);
}

#[tokio::test]
async fn hostile_values_are_not_interpreted() {
    let db = Db::postgres().await;
    db.run("CREATE TABLE t (a text, mid int, PRIMARY KEY (a, mid))").await;
    let hostile =
        ["'", "\\", "\\'", "'; DROP TABLE t; --", "$1", "ü😀", "\"}", "{a,b}", "NULL", "\n"];
    let client = db.database().client().await;
    for (n, value) in (0i32..).zip(hostile) {
        client.execute("INSERT INTO t VALUES ($1, $2)", &[&value, &n]).await.unwrap();
    }
    let whole = scope(&db, "").await;
    let two = |text: &str, n: i64| Key(vec![Value::from(text), Value::Int(n)]);
    for (n, value) in (0i64..).zip(hostile) {
        let listed = KeySet::keys(vec![two(value, n), two("missing", 0)]);
        assert_eq!(extracted(&db, &whole, &listed).await.unwrap().num_rows(), 1, "{value}");
        let upto = KeySet::range(Some(two(value, n - 1)), Some(two(value, n)));
        assert_eq!(extracted(&db, &whole, &upto).await.unwrap().num_rows(), 1, "{value}");
        for filter in [vec![value], vec![value, "missing"]] {
            let toml = "source.table = \"t\"\nsource.filters = { a = \"a\" }\n\
                        step.handler = \"h\"\nstep.version = \"mid\"";
            let request = serde_json::json!({"jobType": "J", "filter": {"a": filter}});
            let request: Request = serde_json::from_value(request).unwrap();
            let scope = db.scope_for(toml, request, Identity::default()).await;
            let batch = extracted(&db, &scope, &everything()).await.unwrap();
            assert_eq!(batch.num_rows(), 1, "{value}");
        }
    }
    let nul = KeySet::keys(vec![two("a\0", 1)]);
    let error = extracted(&db, &whole, &nul).await.unwrap_err();
    assert!(error.contains("NUL"), "{error}");
    assert_eq!(db.number("SELECT count(*) FROM t").await, hostile.len() as i64);
}

#[tokio::test]
async fn a_decimal_is_not_rounded_to_its_column_before_it_is_compared() {
    let db = Db::postgres().await;
    db.run("CREATE TABLE t (price numeric(9,2) PRIMARY KEY, mid int)").await;
    db.run("INSERT INTO t VALUES (1.00, 1), (1.01, 1)").await;
    let toml = "source.table = \"t\"\nsource.filters = { price = \"price\" }\n\
                step.handler = \"h\"\nstep.version = \"mid\"";
    for (prices, count) in [(vec!["1.005"], 0), (vec!["1.005", "7"], 0), (vec!["1.010"], 1)] {
        let request = serde_json::json!({"jobType": "J", "filter": {"price": prices}});
        let request: Request = serde_json::from_value(request).unwrap();
        let scope = db.scope_for(toml, request, Identity::default()).await;
        assert_eq!(extracted(&db, &scope, &everything()).await.unwrap().num_rows(), count);
        assert_eq!(
            db.data
                .read(&scope, &everything(), windlass_connectors::ReadLimits::new(9, 9999))
                .await
                .unwrap()
                .items
                .len(),
            count
        );
    }
    let whole = scope(&db, "").await;
    let between = KeySet::range(Some(Key(vec![Value::from("1.005")])), None);
    assert_eq!(extracted(&db, &whole, &between).await.unwrap().num_rows(), 1);
}
