//! Specifics of MySQL and MariaDB: types, collations, engines and invalid dates.

use crate::harness::{Db, effect, everything, job_type, key};
use futures::StreamExt;
use windlass_connectors::{
    ConnectorError, CutLimits, CutRange, Effect, ReadLimits, Reduction, Scope, connect, validate,
};
use windlass_core::problem::Code;
use windlass_core::{Change, Identity, Key, KeySet, Request, Template, Value};
use windlass_drivers::ErrorClass;
use windlass_testkit::{MariaServer, eventually};

const HANDLER: &str = "source.table = \"t\"\nstep.handler = \"h\"\nstep.version = \"version\"";
const MAP: &str = "source.table = \"t\"\nstep.map = \"SELECT id % 2 AS odd, min(at) AS first, \
                   max(plain) AS last FROM {source} WHERE {chunk} GROUP BY id % 2\"\n\
                   report = { to = \"file:x.csv\" }";
const DELETE: &str = "source.table = \"t\"\nstep.sql = \"DELETE FROM t WHERE {chunk}\"";

#[tokio::test]
async fn types_of_mariadb_survive_a_round_trip() {
    let db = Db::mariadb().await;
    db.run(
        "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, flag BIT(1), bits BIT(12), small TINYINT, \
         odd BOOLEAN, y YEAR, span TIME(3), money DECIMAL(65, 30), latin VARCHAR(20) CHARACTER SET \
         latin1, choice SET('a', 'b'), place POINT, doc JSON, at DATETIME(2), version INT UNSIGNED \
         NOT NULL)",
    )
    .await;
    db.run(
        "INSERT INTO t VALUES (18446744073709551615, b'1', b'100000000001', -3, 5, 2025, \
         '-25:00:00.125', 12345678901234567890123456789012345.000000000000000000000000000001, \
         'Müßig', 'a,b', POINT(1, 2), '{\"big\":9007199254740993}', '2025-01-31 03:00:00.25', 1), \
         (7, b'0', b'0', 0, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1)",
    )
    .await;
    let scope = db.scope(HANDLER).await;
    let items =
        db.data.read(&scope, &everything(), ReadLimits::new(10, usize::MAX)).await.unwrap().items;
    assert_eq!(items[0].key, key(7));
    assert_eq!(items[0].record.get("odd"), Some(&Value::Bool(true)));
    let get = |column: &str| items[1].record.get(column).unwrap().clone();
    assert_eq!(get("id"), Value::from("18446744073709551615"));
    assert_eq!((get("flag"), get("bits")), (Value::Bool(true), Value::Int(2049)));
    assert_eq!(
        (get("small"), get("odd"), get("y")),
        (Value::Int(-3), Value::Int(5), Value::Int(2025))
    );
    assert_eq!(get("span"), Value::from("-25:00:00.125"));
    let money = "12345678901234567890123456789012345.000000000000000000000000000001";
    assert_eq!(get("money"), Value::from(money));
    assert_eq!((get("latin"), get("choice")), (Value::from("Müßig"), Value::from("a,b")));
    assert_eq!(
        get("doc"),
        Value::Json(serde_json::json!({"big": 9_007_199_254_740_993_i64}).into())
    );
    assert_eq!(get("at"), Value::from("2025-01-31 03:00:00.25"));
    // The greatest unsigned number works in ranges and in lists.
    let top = items[1].key.clone();
    let count = async |key_set: KeySet| db.data.count(&scope, &key_set).await.unwrap();
    assert_eq!(count(KeySet::range(Some(key(7)), Some(top.clone()))).await, 1);
    assert_eq!(count(KeySet::keys(vec![top, key(7), key(8)])).await, 2);
    let text = "SELECT id, flag + 0, bits + 0, small, odd, y, span, money, latin, choice, \
                ST_AsText(place), doc, at FROM t ORDER BY id";
    let before = db.rows(text).await;
    let items = items.into_iter().map(|item| crate::writing::rewrite(item, &scope)).collect();
    let ledger = db.fenced(1).await;
    let counts = db.data.commit(&scope, &ledger, effect(Effect::Write(items))).await.unwrap();
    assert_eq!(counts.ledger.counts.processed, 2);
    assert_eq!(db.rows(text).await, before);
    assert_eq!(db.number("SELECT sum(version) FROM t").await, 4);
}

#[tokio::test]
async fn an_invalid_date_is_refused() {
    let db = Db::mariadb().await;
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, day DATE NOT NULL, version INT NOT NULL)").await;
    db.run("CREATE UNIQUE INDEX days ON t (day)").await;
    db.run("SET sql_mode = ''; INSERT INTO t VALUES (1, '2025-01-31', 1), (2, '0000-00-00', 1)")
        .await;
    // As a field it is returned unchanged, and cannot be written.
    let scope = db.scope(HANDLER).await;
    let items =
        db.data.read(&scope, &everything(), ReadLimits::new(10, usize::MAX)).await.unwrap().items;
    assert_eq!(items[1].record.get("day"), Some(&Value::from("0000-00-00")));
    let item = crate::writing::item(items[1].clone(), Change::default().set("day", "0000-00-00"));
    let ledger = db.fenced(1).await;
    let error =
        db.data.commit(&scope, &ledger, effect(Effect::Write(vec![item]))).await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Data), "{error}");
    assert!(error.to_string().contains("Incorrect date value: '0000-00-00'"), "{error}");
    // As a key it would hide the records behind it.
    let scope = db.scope(&format!("source.key = [\"day\"]\n{HANDLER}")).await;
    for error in [
        db.data.read(&scope, &everything(), ReadLimits::new(10, usize::MAX)).await.err().unwrap(),
        db.data
            .cut(
                &scope,
                CutRange::new(None, &windlass_core::KeyRange::ALL),
                CutLimits::new(1, 5, None),
            )
            .await
            .err()
            .unwrap(),
    ] {
        let ConnectorError::Problem(problem) = error else { panic!("{error}") };
        assert!(problem.detail.contains("has the invalid date `0000-00-00`"), "{problem}");
    }
}

#[tokio::test]
async fn a_table_without_transactions_is_refused() {
    let db = Db::mariadb().await;
    db.run(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, version INT NOT NULL); INSERT INTO t VALUES (1, 1)",
    )
    .await;
    db.run("CREATE TABLE old (id BIGINT PRIMARY KEY) ENGINE = MyISAM").await;
    let source =
        job_type("source.table = \"old\"\nstep.sql = \"DELETE FROM old WHERE {chunk}\"").source;
    let error = db.data.describe(&source).await.unwrap_err();
    let ConnectorError::Problem(problem) = error else { panic!("{error}") };
    assert!(problem.detail.contains("ALTER TABLE `old` ENGINE = InnoDB"), "{problem}");
    let scope = db.scope(HANDLER).await;
    let item =
        db.data.read(&scope, &everything(), ReadLimits::new(1, 1)).await.unwrap().items.remove(0);
    let item = crate::writing::item(item, Change::default().insert("old", [("id", Value::Int(1))]));
    let ledger = db.fenced(1).await;
    let error =
        db.data.commit(&scope, &ledger, effect(Effect::Write(vec![item]))).await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Definition), "{error}");
    assert_eq!(db.number("SELECT count(*) FROM old").await, 0);
}

#[tokio::test]
async fn a_key_with_different_sort_and_comparison_order_is_refused() {
    let db = Db::mariadb().await;
    db.run("CREATE TABLE t (kind ENUM('b', 'a') PRIMARY KEY)").await;
    let mut job_type = job_type(DELETE);
    let table = db.data.describe(&job_type.source).await.unwrap();
    let problems = validate(&mut job_type, &table);
    assert!(problems.iter().any(|p| p.detail.contains("sorts by number")), "{problems:?}");
}

#[tokio::test]
async fn a_claim_does_not_match_by_a_numeric_prefix() {
    let db = Db::mariadb().await;
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, branch INT NOT NULL, county TEXT NOT NULL)")
        .await;
    db.run("INSERT INTO t VALUES (1, 5, '7north'), (2, 0, 'north'), (3, 6, '7')").await;
    for (column, claim, expected) in [
        ("branch", Value::from("5"), Some(1)),
        ("branch", Value::from("5 or more"), None),
        ("branch", Value::from("none"), None),
        ("county", Value::Int(7), Some(1)),
        ("county", Value::Int(0), Some(0)),
        ("county", Value::from("north"), Some(1)),
        ("county", Value::from("NORTH"), Some(0)),
        ("county", Value::from("north "), Some(0)),
    ] {
        let toml = format!("source.claims = {{ c = \"{column}\" }}\n{DELETE}");
        let claims = [("c".to_owned(), vec![claim.clone()])].into();
        let identity = Identity { name: "clerk".into(), claims, ..Identity::default() };
        let (job_type, table) = db.job_type(&toml).await;
        let scope = Scope::new(job_type, table, &Request::new("J"), &identity);
        let count = match &scope {
            Ok(scope) => Some(db.data.count(scope, &everything()).await.unwrap()),
            Err(_) => None,
        };
        assert_eq!(count, expected, "{column} {claim:?}");
    }
}

#[tokio::test]
async fn values_equal_by_collation_are_one() {
    let db = Db::mariadb().await;
    db.run("CREATE TABLE t (id VARCHAR(20) CHARACTER SET latin1 PRIMARY KEY)").await;
    db.run("INSERT INTO t VALUES ('Müller'), ('b')").await;
    let scope = db.scope(DELETE).await;
    let rows = ["MÜLLER", "müller", "B", "b", "c"].map(|text| vec![Value::from(text)]);
    let once = db.data.distinct(&scope, &["id".to_owned()], rows.to_vec()).await.unwrap();
    assert_eq!(once, ["Müller", "b", "c"].map(|text| vec![Value::from(text)]));
}

/// By default the server sorts texts by their first 1024 bytes only.
#[tokio::test]
async fn long_keys_of_a_query_are_sorted_by_all_their_characters() {
    let db = Db::mariadb().await;
    db.run("CREATE TABLE t (k VARCHAR(700) NOT NULL, v INT)").await;
    let row = |n: u32| format!("(CONCAT(REPEAT('é', 600), {}), 0)", n * 17 % 40);
    let rows: Vec<String> = (0..40).map(row).collect();
    db.run(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    let toml = "source.query = \"SELECT k, v FROM t\"\nsource.key = [\"k\"]\n\
                step.sql = \"UPDATE t SET v = 1 WHERE {chunk}\"";
    let scope = db.scope(toml).await;
    let ranges = db.data.split(&scope, 1).await.unwrap();
    crate::cutting::covers(&db, &scope, &ranges, 40).await;
    // No setting makes it compare any number of bytes.
    db.run("DROP TABLE t; CREATE TABLE t (k LONGTEXT NOT NULL, v INT)").await;
    db.run("INSERT INTO t VALUES (REPEAT('x', 4000), 0)").await;
    let scope = db.scope(toml).await;
    let error = db.data.split(&scope, 1).await.unwrap_err().to_string();
    assert!(error.contains("4000 bytes, and a key has at most 3072"), "{error}");
}

/// 0.1 as a float of 32 bits is not 0.1 as one of 64 bits.
#[tokio::test]
async fn the_floats_of_a_query_can_be_its_keys() {
    let db = Db::mariadb().await;
    for sql_type in ["FLOAT", "FLOAT(7, 3)", "DOUBLE", "DOUBLE(9, 3)"] {
        db.run(&format!("DROP TABLE IF EXISTS t; CREATE TABLE t (k {sql_type} NOT NULL)")).await;
        db.run("INSERT INTO t VALUES (0.1), (0.2), (0.3), (-0.1), (16777217), (1234.567)").await;
        let scope = db.scope("source.query = \"SELECT k FROM t\"\nsource.key = [\"k\"]\nstep.sql = \"DELETE FROM t WHERE {chunk}\"").await;
        let ranges = db.data.split(&scope, 1).await.unwrap();
        crate::cutting::covers(&db, &scope, &ranges, 6).await;
    }
}

#[tokio::test]
async fn more_keys_than_can_be_bound() {
    let db = Db::mariadb().await;
    let rows: Vec<String> = (1..=100).map(|id| format!("({id})")).collect();
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY)").await;
    db.run(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    let scope = db.scope(DELETE).await;
    let key_set = KeySet::keys((51..=70_000).map(key).collect());
    assert_eq!(db.data.count(&scope, &key_set).await.unwrap(), 50);
    assert_eq!(db.data.count(&scope, &KeySet::keys(Vec::<Key>::new())).await.unwrap(), 0);
}

#[tokio::test]
async fn a_step_with_an_implicit_commit_fails() {
    let db = Db::mariadb().await;
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT)").await;
    let toml =
        "source.table = \"t\"\nstep.sql = \"CREATE TABLE u AS SELECT * FROM t WHERE {chunk}\"";
    let scope = db.scope(toml).await;
    let ledger = db.fenced(1).await;
    let commit = effect(Effect::Statement(everything()));
    let error = db.data.commit(&scope, &ledger, commit).await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Definition), "{error}");
}

/// Another writer locks the row and commits while the commit waits for the lock. Its write must survive.
#[tokio::test]
async fn a_write_committed_while_waiting_for_its_lock_is_a_conflict() {
    let db = Db::mariadb().await;
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, version INT NOT NULL)").await;
    db.run("INSERT INTO t VALUES (1, 0, 1), (2, 0, 1)").await;
    let scope = db.scope(HANDLER).await;
    let items =
        db.data.read(&scope, &everything(), ReadLimits::new(10, usize::MAX)).await.unwrap().items;
    let items =
        items.into_iter().map(|item| crate::writing::item(item, Change::default().set("v", 5)));
    let ledger = db.fenced(1).await;
    let mut writer = db.maria().client().await;
    let run = async |writer: &mut _, sql: &str| db.maria().run_on(writer, sql).await;
    run(&mut writer, "START TRANSACTION; UPDATE t SET v = 9, version = version + 1 WHERE id = 2")
        .await;
    let commit = effect(Effect::Write(items.collect()));
    let (data, scope) = (db.data.clone(), scope.clone());
    let committing = tokio::spawn(async move { data.commit(&scope, &ledger, commit).await });
    // While the writer has the lock, a statement on the row waits. (InnoDB does not update its list of waits for
    // frequent queries.)
    let long = if MariaServer::uses_mysql() { "time > 0" } else { "time_ms > 20" };
    let waits = format!(
        "SELECT count(*) FROM information_schema.processlist WHERE db = database() \
         AND command = 'Execute' AND info LIKE '%JSON_TABLE%' AND {long}"
    );
    let limit = std::time::Duration::from_secs(30);
    eventually("it waits", limit, async || db.number(&waits).await == 1).await;
    run(&mut writer, "COMMIT").await;
    let counts = committing.await.unwrap().unwrap().ledger.counts;
    assert_eq!((counts.processed, counts.conflicts), (1, 1));
    assert_eq!(db.rows("SELECT v, version FROM t ORDER BY id").await, [["5", "2"], ["9", "2"]]);
}

#[tokio::test]
async fn a_missing_privilege_for_the_ledger_is_explained() {
    let db = Db::mariadb().await;
    let name = format!("poor_{}", db.maria().name());
    db.run(&format!(
        "DROP TABLE windlass_emitted, windlass_deferred, windlass_ledger, windlass_stores; \
         CREATE USER {name} IDENTIFIED BY 'p'; GRANT SELECT ON *.* TO {name}"
    ))
    .await;
    let url = db.maria().url().replace("windlass:wind%40lass", &format!("{name}:p"));
    let poor = connect(&url, 1).await.unwrap();
    for error in [poor.check_ledger().await.unwrap_err(), poor.prepare().await.unwrap_err()] {
        let ConnectorError::Problem(problem) = error else { panic!("{error}") };
        assert_eq!(problem.code, Code::Ledger);
        assert!(problem.detail.contains("windlass migrate --print"), "{problem}");
    }
    db.data.check_ledger().await.unwrap();
    // Tables that an administrator created are used.
    db.run(db.data.ledger_ddl()).await;
    for table in ["windlass_ledger", "windlass_deferred", "windlass_emitted", "windlass_stores"] {
        db.run(&format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {name}")).await;
    }
    poor.check_ledger().await.unwrap();
    poor.prepare().await.unwrap();
}

/// A `timestamp` is an instant and a `datetime` is not. Both keep their type from chunk to report.
#[tokio::test]
async fn a_timestamp_of_a_map_keeps_its_time_zone() {
    let db = Db::mariadb().await;
    db.run("CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP(3) NULL, plain DATETIME)").await;
    db.run(
        "SET time_zone = '+09:00'; INSERT INTO t VALUES (1, '2025-01-31 09:00:00.5', '2025-01-31'), \
         (2, NULL, NULL), (3, '2025-02-01', '2025-02-01 10:00:00')",
    )
    .await;
    let scope = db.scope(MAP).await;
    let columns = db.data.map_columns(&scope).await.unwrap();
    let rows = db.data.map(&scope, &columns, &everything()).await.unwrap().rows;
    let parts = futures::stream::iter([Ok(rows)]).boxed();
    let select = Template::parse("SELECT * FROM parts ORDER BY odd DESC").unwrap();
    let result = db
        .data
        .reduce(Reduction {
            columns: &columns,
            parts,
            select: &select,
            params: &Default::default(),
        })
        .await
        .unwrap();
    let schema = windlass_export::schema_of(&result.columns, &result.rows);
    let kinds: Vec<String> =
        schema.fields().iter().map(|field| windlass_export::type_name(field)).collect();
    assert_eq!(kinds[1..], ["timestamp with time zone", "timestamp"]);
    let first: Vec<Option<String>> = result.rows[0].iter().map(Value::to_text).collect();
    let first: Vec<&str> = first.iter().map(|text| text.as_deref().unwrap()).collect();
    assert_eq!(first, ["1", "2025-01-31 00:00:00.500000+00", "2025-02-01 10:00:00.000000"]);
    assert_eq!(result.rows[1][1..], [Value::Null, Value::Null]);
    let mut builder = windlass_export::RowBuilder::new(schema).unwrap();
    result.rows.iter().for_each(|row| builder.push(row).unwrap());
}
