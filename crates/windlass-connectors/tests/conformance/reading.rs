//! Records are read completely, in key order and within the limits. Values that the database considers equal are one.

use crate::harness::{Db, everything, key, on_every_backend};
use windlass_connectors::ReadLimits;
use windlass_core::{Key, KeySet, Value};

on_every_backend!(
    every_type_survives_a_round_trip,
    the_byte_limit_is_respected,
    a_limited_batch_tells_whether_there_is_more,
    listed_keys_that_exist,
    distinct_uses_the_equality_of_the_database,
    distinct_compares_values_without_a_record_by_the_collation_of_the_column,
);

async fn every_type_survives_a_round_trip(db: Db) {
    let columns = db.pick(
        "id int, small smallint, big bigint, yes boolean, single real, double double precision, \
         money numeric(12,2), name varchar(20), padded char(4), day date, at timestamptz, \
         plain timestamp, uid uuid, raw bytea, doc jsonb, mood mood, tags text[], during interval",
        "id INTEGER, small SMALLINT, big BIGINT, yes BOOLEAN, single REAL, double DOUBLE, \
         money NUMERIC, name VARCHAR(20), padded CHAR(4), day DATE, at TIMESTAMP, \
         plain TIMESTAMP, uid UUID, raw BLOB, doc JSON, mood TEXT, tags TEXT, during TEXT",
        "id INT, small SMALLINT, big BIGINT, yes BOOLEAN, single FLOAT, \"double\" DOUBLE, \
         money NUMERIC(12,2), name VARCHAR(20), padded CHAR(4), day DATE, at TIMESTAMP(6) NULL, \
         plain DATETIME, uid UUID, raw VARBINARY(20), doc JSON, mood ENUM('sad', 'glad'), \
         tags TEXT, during TEXT",
    );
    if db.is_postgres() {
        db.run("CREATE TYPE mood AS ENUM ('sad', 'glad')").await;
        db.run(&format!("ALTER DATABASE {} SET timezone = 'Asia/Tokyo'", db.database().name()))
            .await;
    }
    db.run(&format!("CREATE TABLE t ({columns}, version INT NOT NULL, PRIMARY KEY (id))")).await;
    let raw = db.pick("'\\x00ff'", "x'00ff'", "x'00ff'");
    let at = db.pick("03:00:00.123456+00", "03:00:00.123456+00", "12:00:00.123456");
    let zone = db.pick("", "", "SET time_zone = '+09:00'; ");
    db.run(&format!(
        "{zone}INSERT INTO t VALUES (1, -2, 9007199254740993, true, 0.1, 1e300, 12.50, 'it''s', \
         'ab', '2025-01-31', '2025-01-31 {at}', '2025-01-31 03:00:00', \
         '018f3c2a-0000-7000-8000-000000000001', {raw}, '{{\"a\":[1,null]}}', 'glad', '{{x,y}}', \
         '1 day', 5)"
    ))
    .await;
    let nulls = vec!["NULL"; 17].join(", ");
    db.run(&format!("INSERT INTO t VALUES (2, {nulls}, 5)")).await;
    let scope =
        db.scope("source.table = \"t\"\nstep.handler = \"h\"\nstep.version = \"version\"").await;
    let batch = db.data.read(&scope, &everything(), ReadLimits::new(10, usize::MAX)).await.unwrap();
    assert!(batch.end);
    let item = &batch.items[0];
    assert_eq!((&item.key, &item.guard), (&key(1), &Value::Int(5)));
    let get = |column: &str| item.record.get(column).unwrap().clone();
    assert_eq!(get("big"), Value::Int(9_007_199_254_740_993));
    assert_eq!(get("double"), Value::Float(1e300));
    assert_eq!(get("name"), Value::from("it's"));
    assert_eq!(get("raw"), Value::Bytes(vec![0, 255]));
    assert_eq!(get("at"), Value::from("2025-01-31 03:00:00.123456+00"));
    assert_eq!(get("uid"), Value::from("018f3c2a-0000-7000-8000-000000000001"));
    assert_eq!(get("mood"), Value::from("glad"));
    if !db.is_sqlite() {
        assert_eq!(get("yes"), Value::Bool(true));
        assert_eq!(get("money"), Value::from("12.50"));
        assert_eq!(get("doc"), Value::Json(serde_json::json!({"a": [1, null]}).into()));
        assert_eq!(get("single"), Value::Float(0.1), "as it prints");
        let tags = serde_json::to_string(&get("tags")).unwrap();
        assert_eq!(tags, db.pick("[\"x\",\"y\"]", "", "\"{x,y}\""), "arrays are JSON arrays");
    }
    assert!(batch.items[1].record.iter().filter(|(_, value)| value.is_null()).count() == 17);
    // Writing back what was read changes nothing.
    let text = "SELECT * FROM t ORDER BY id";
    let before = db.rows(text).await;
    let items = batch.items.into_iter().map(|item| crate::writing::rewrite(item, &scope)).collect();
    let ledger = db.fenced(1).await;
    let commit = crate::harness::effect(windlass_connectors::Effect::Write(items));
    let counts = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger.counts;
    assert_eq!((counts.processed, counts.conflicts), (2, 0));
    let without_version = |mut rows: Vec<Vec<String>>| {
        rows.iter_mut().for_each(|row| drop(row.pop()));
        rows
    };
    let after = db.rows(text).await;
    assert_eq!(after[0].last().unwrap(), "6");
    assert_eq!(without_version(after), without_version(before));
}

async fn the_byte_limit_is_respected(db: Db) {
    let wide = db.pick("TEXT", "TEXT", "LONGTEXT");
    db.run(&format!("CREATE TABLE t (id BIGINT PRIMARY KEY, wide {wide})")).await;
    for id in 0..20 {
        db.run(&format!("INSERT INTO t VALUES ({id}, '{}')", "x".repeat(1000))).await;
    }
    let scope = db.scope("source.table = \"t\"\nstep.sql = \"DELETE FROM t WHERE {chunk}\"").await;
    let batch = db.data.read(&scope, &everything(), ReadLimits::new(100, 3500)).await.unwrap();
    assert_eq!((batch.items.len(), batch.end), (4, false));
    let batch = db.data.read(&scope, &everything(), ReadLimits::new(100, 1)).await.unwrap();
    assert_eq!((batch.items.len(), batch.end), (1, false));
    let rest = KeySet::range(Some(key(18)), None);
    let batch = db.data.read(&scope, &rest, ReadLimits::new(100, 1)).await.unwrap();
    assert_eq!((batch.items.len(), batch.end), (1, true));
}

async fn a_limited_batch_tells_whether_there_is_more(db: Db) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY); INSERT INTO t VALUES (3), (1), (2)").await;
    let scope = db.scope("source.table = \"t\"\nstep.sql = \"DELETE FROM t WHERE {chunk}\"").await;
    for (limit, expected, end) in
        [(2, vec![1, 2], false), (3, vec![1, 2, 3], true), (4, vec![1, 2, 3], true)]
    {
        let batch =
            db.data.read(&scope, &everything(), ReadLimits::new(limit, usize::MAX)).await.unwrap();
        let keys: Vec<Key> = batch.items.into_iter().map(|item| item.key).collect();
        assert_eq!(keys, expected.into_iter().map(key).collect::<Vec<_>>());
        assert_eq!(batch.end, end);
    }
}

async fn listed_keys_that_exist(db: Db) {
    let blob = db.pick("BYTEA", "BLOB", "VARBINARY(20)");
    db.run(&format!("CREATE TABLE t (a {blob}, b TEXT, PRIMARY KEY (a, b))")).await;
    let raw = db.pick("'\\xff'", "x'ff'", "x'ff'");
    db.run(&format!("INSERT INTO t VALUES ({raw}, 'it''s'), ({raw}, 'other')")).await;
    let scope = db.scope("source.table = \"t\"\nstep.sql = \"DELETE FROM t WHERE {chunk}\"").await;
    let key = |text: &str| Key(vec![Value::Bytes(vec![255]), Value::from(text)]);
    let key_set = KeySet::keys(vec![key("other"), key("it's"), key("none"), key("it's")]);
    let batch = db.data.read(&scope, &key_set, ReadLimits::new(10, usize::MAX)).await.unwrap();
    let keys: Vec<Key> = batch.items.into_iter().map(|item| item.key).collect();
    assert_eq!((keys, batch.end), (vec![key("it's"), key("other")], true));
    assert_eq!(db.data.count(&scope, &key_set).await.unwrap(), 2);
}

async fn distinct_uses_the_equality_of_the_database(db: Db) {
    let kind = db.pick("NUMERIC", "NUMERIC", "NUMERIC(8,2)");
    db.run(&format!("CREATE TABLE t (id {kind} PRIMARY KEY); INSERT INTO t VALUES (1), (2.5)"))
        .await;
    let scope = db.scope("source.table = \"t\"\nstep.sql = \"DELETE FROM t WHERE {chunk}\"").await;
    let rows = ["2.50", "1", "2.5", "7", "1.0", "7"].map(|text| vec![Value::from(text)]);
    let once = db.data.distinct(&scope, &["id".to_owned()], rows.to_vec()).await.unwrap();
    let texts: Vec<String> = once.iter().map(|row| row[0].to_string()).collect();
    assert_eq!(texts, [db.pick("2.5", "2.5", "2.50"), db.pick("1", "1", "1.00"), "7"]);
}

/// Records with such a value may be inserted while the job is planned. Two values would then plan them twice.
async fn distinct_compares_values_without_a_record_by_the_collation_of_the_column(db: Db) {
    if db.is_postgres() {
        db.run("CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
            .await;
    }
    let kind = db.pick("TEXT COLLATE folded", "TEXT COLLATE NOCASE", "VARCHAR(20)");
    db.run(&format!(
        "CREATE TABLE t (id INT PRIMARY KEY, county {kind}); INSERT INTO t VALUES (1, 'Kent')"
    ))
    .await;
    let step = "step.sql = \"DELETE FROM t WHERE {chunk}\"";
    let query = "SELECT id, county FROM t";
    for source in [
        "source.table = \"t\"".to_owned(),
        format!("source.query = \"{query}\"\nsource.key = [\"id\"]"),
        format!("source.query = \"{query} UNION ALL {query}\"\nsource.key = [\"id\"]"),
    ] {
        let scope = db.scope(&format!("{source}\n{step}")).await;
        let given = ["essex", "KENT", "Essex", "kent", "wales"];
        let rows = given.map(|text| vec![Value::from(text)]).to_vec();
        let once = db.data.distinct(&scope, &["county".to_owned()], rows).await.unwrap();
        let texts: Vec<String> = once.iter().map(|row| row[0].to_string()).collect();
        assert_eq!(texts, ["essex", "Kent", "wales"], "{source}");
        let counties = ["county".to_owned(), "id".to_owned()];
        let pair = |text: &str, id: i64| vec![Value::from(text), Value::Int(id)];
        let rows = vec![pair("kent", 2), pair("Kent", 2), pair("Kent", 1), pair("kent", 1)];
        let once = db.data.distinct(&scope, &counties, rows).await.unwrap();
        assert_eq!(once, [pair("kent", 2), pair("Kent", 1)], "{source}");
    }
}
