//! Keys must not be null, and must be unique if a step processes single records. Where the schema does not guarantee
//! it, the rows are checked.

use crate::harness::{Db, everything, job_type, on_every_backend};
use windlass_connectors::{CutLimits, CutRange, ReadLimits, Scope, validate};
use windlass_core::{Identity, Request, Source, Value};

on_every_backend!(
    a_query_is_checked_for_null_and_repeated_keys,
    a_batch_refuses_a_repeated_key_at_its_end_too,
    a_query_with_repeated_keys_is_cut_and_counted_exactly,
    an_enum_of_a_query_cannot_be_a_key,
    a_computed_key_of_a_query_is_found_by_its_text,
);

const HANDLER: &str = "step.handler = \"h\"";
const SQL: &str = "step.sql = \"UPDATE t SET v = 1 WHERE {chunk}\"";

fn query(sql: &str, key: &str, step: &str) -> String {
    format!("source.query = \"{sql}\"\nsource.key = [{key}]\n{step}")
}

/// The error of the check, if any. It is the same for the first rows and for all.
async fn refusal(db: &Db, toml: &str) -> String {
    let scope = db.scope(toml).await;
    let mut said = Vec::new();
    for most in [Some(1000), None] {
        let checked = db.data.check_keys(&scope, most).await;
        said.push(checked.err().map_or(String::new(), |error| error.to_string()));
    }
    assert_eq!(said[0], said[1]);
    said.remove(0)
}

async fn a_query_is_checked_for_null_and_repeated_keys(db: Db) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, b TEXT, v INT)").await;
    db.run("INSERT INTO t VALUES (1, 1, 'x', 0), (2, 1, 'y', 0), (3, NULL, 'y', 0), (4, 2, NULL, 0), (5, 3, 'x', 0), (6, 3, 'x', 0)").await;
    let all = "SELECT * FROM t";
    let cases: &[(&str, &str, &str, &str)] = &[
        (all, "'id'", HANDLER, ""),
        (all, "'id'", SQL, ""),
        (all, "'a'", HANDLER, "`a` is NULL"),
        (all, "'a'", SQL, "`a` is NULL"),
        (all, "'a', 'b'", SQL, "is NULL in a row of the query"),
        ("SELECT * FROM t WHERE id < 4", "'id', 'a'", HANDLER, "`a` is NULL"),
        ("SELECT * FROM t WHERE id < 3", "'a', 'b'", HANDLER, ""),
        ("SELECT * FROM t WHERE id < 3", "'a'", HANDLER, "(a) = (1)"),
        ("SELECT * FROM t WHERE id < 3", "'a'", SQL, ""),
        ("SELECT * FROM t WHERE id > 4", "'a', 'b'", HANDLER, "(a, b) = (3, x)"),
    ];
    for (sql, key, step, expected) in cases {
        let said = refusal(&db, &query(sql, key, step)).await;
        let right = if expected.is_empty() { said.is_empty() } else { said.contains(expected) };
        assert!(right, "{sql} by {key}, {step}: `{said}` and not `{expected}`");
    }
    // `source.where` excludes the invalid rows.
    let condition = format!("{HANDLER}\nsource.where = \"a IS NOT NULL AND id NOT IN (2, 6)\"");
    assert_eq!(refusal(&db, &query(all, "'a'", &condition)).await, "");
    let scope = db.scope(&query(all, "'a'", &condition)).await;
    let ranges = db.data.split(&scope, 1).await.unwrap();
    crate::cutting::covers(&db, &scope, &ranges, 3).await;
    // A table with a primary key needs no check.
    let toml = format!("source.table = \"t\"\n{SQL}");
    assert_eq!(refusal(&db, &toml).await, "");
}

async fn a_batch_refuses_a_repeated_key_at_its_end_too(db: Db) {
    // Equal by the collation but not by bytes.
    let kind = db.pick("TEXT COLLATE folded", "TEXT COLLATE NOCASE", "VARCHAR(20)");
    if db.is_postgres() {
        db.run("CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)").await;
    }
    db.run(&format!("CREATE TABLE t (id BIGINT PRIMARY KEY, k {kind} NOT NULL, v INT)")).await;
    db.run("INSERT INTO t VALUES (1, 'a', 0), (2, 'b', 0), (3, 'B', 0), (4, 'c', 0)").await;
    let toml = |step| query("SELECT k, v FROM t", "'k'", step);
    let scope = db.scope(&toml(HANDLER)).await;
    for (limit, bytes) in [(10, usize::MAX), (3, usize::MAX), (2, usize::MAX), (10, 40)] {
        let read = db.data.read(&scope, &everything(), ReadLimits::new(limit, bytes)).await;
        let error = read.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("more than one row"), "{limit}, {bytes}: {error}");
    }
    let batch = db.data.read(&scope, &everything(), ReadLimits::new(1, usize::MAX)).await.unwrap();
    assert_eq!((batch.items.len(), batch.end), (1, false));
    let scope = db.scope(&toml(SQL)).await;
    let batch = db.data.read(&scope, &everything(), ReadLimits::new(10, usize::MAX)).await.unwrap();
    assert_eq!(batch.items.len(), 4, "a statement may have a key that is not unique");
    db.run("CREATE TABLE w (k INT, v INT)").await;
    db.run("INSERT INTO w VALUES (1, 0), (NULL, 0)").await;
    let scope = db.scope(&query("SELECT k, v FROM w", "'k'", HANDLER)).await;
    let read = db.data.read(&scope, &everything(), ReadLimits::new(10, usize::MAX)).await;
    assert!(read.unwrap_err().to_string().contains("`k` is NULL"));
}

async fn a_query_with_repeated_keys_is_cut_and_counted_exactly(db: Db) {
    db.run("CREATE TABLE t (k INT NOT NULL, v INT)").await;
    // Key n has n records, up to 13. The last ones have more than a chunk.
    let rows: Vec<String> = (1..14).flat_map(|k| vec![format!("({k}, 0)"); k]).collect();
    db.run(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    let scope = db.scope(&query("SELECT k, v FROM t", "'k'", SQL)).await;
    let ranges = db.data.split(&scope, 1).await.unwrap();
    for most in [100, 2] {
        let (mut rest, mut total, mut chunks) = (ranges[0].clone(), 0, 0);
        loop {
            let cuts = db
                .data
                .cut(&scope, CutRange::new(None, &rest), CutLimits::new(5, most, None))
                .await
                .unwrap();
            for (key_set, items) in &cuts.chunks {
                assert_eq!(db.data.count(&scope, key_set).await.unwrap(), *items, "{key_set:?}");
                assert!((1..18).contains(items), "{items}");
                total += items;
                chunks += 1;
            }
            if cuts.done {
                break;
            }
            rest.after = cuts.last;
        }
        assert_eq!(total, rows.len() as i64);
        assert!(chunks >= 11, "{chunks}");
    }
    let cuts = db
        .data
        .cut(&scope, CutRange::new(None, &ranges[0]), CutLimits::new(5, 100, Some(7)))
        .await
        .unwrap();
    for (key_set, items) in &cuts.chunks {
        assert_eq!(db.data.count(&scope, key_set).await.unwrap(), *items, "{key_set:?}");
    }
}

async fn an_enum_of_a_query_cannot_be_a_key(db: Db) {
    let kind = db.pick("TEXT", "TEXT", "ENUM('z', 'a')");
    db.run(&format!("CREATE TABLE t (k {kind} NOT NULL, v INT)")).await;
    let mut job_type = job_type(&query("SELECT k, v FROM t", "'k'", SQL));
    let table = db.data.describe(&job_type.source).await.unwrap();
    let problems = validate(&mut job_type, &table);
    let refused = problems.iter().any(|problem| problem.detail.contains("enum"));
    assert_eq!(refused, db.pick("", "", "refused") == "refused", "{problems:?}");
}

async fn a_computed_key_of_a_query_is_found_by_its_text(db: Db) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT)").await;
    db.run("INSERT INTO t VALUES (6, 0), (7, 0)").await;
    let scope = db.scope(&query("SELECT id + 1 AS k, v FROM t", "'k'", HANDLER)).await;
    let rows = vec![vec![Value::Int(7)], vec![Value::from("7")], vec![Value::from("8")]];
    let once = db.data.distinct(&scope, scope.key(), rows).await.unwrap();
    assert_eq!(once, [[Value::Int(7)], [Value::Int(8)]]);
}

/// A job type on the table `t`, and the problems of its schema.
async fn problems(db: &Db, more: &str) -> String {
    let mut job_type = job_type(&format!("source.table = \"t\"\n{more}"));
    let table = db.data.describe(&job_type.source).await.unwrap();
    let problems = validate(&mut job_type, &table);
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn partial_and_invalid_unique_indexes_do_not_count() {
    let db = Db::postgres().await;
    let step = "source.key = [\"k\"]\nstep.handler = \"h\"\nstep.version = \"version\"";
    let cases = [
        ("k INT NOT NULL", "CREATE UNIQUE INDEX ON t (k)", ""),
        ("k INT NOT NULL", "ALTER TABLE t ADD UNIQUE (k) DEFERRABLE INITIALLY DEFERRED", ""),
        ("k INT", "CREATE UNIQUE INDEX ON t (k)", "may be null"),
        ("k INT", "CREATE UNIQUE INDEX ON t (k) NULLS NOT DISTINCT", "may be null"),
        ("k filled", "CREATE UNIQUE INDEX ON t (k)", "may be null"),
        ("k INT NOT NULL", "CREATE UNIQUE INDEX ON t (k) WHERE k > 0", "no index"),
        ("k INT NOT NULL", "CREATE UNIQUE INDEX ON t (abs(k))", "no index"),
        ("k INT NOT NULL", "CREATE UNIQUE INDEX ON t (k, abs(k))", "no index guarantees"),
        ("k INT NOT NULL", "CREATE UNIQUE INDEX ON t (k, id)", "no index guarantees"),
        ("k INT NOT NULL", "CREATE UNIQUE INDEX ON t (k) INCLUDE (id)", ""),
        (
            "k INT NOT NULL",
            "CREATE UNIQUE INDEX i ON t (k); UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'i'::regclass",
            "no index",
        ),
    ];
    db.run("CREATE DOMAIN filled AS INT NOT NULL").await;
    for (column, index, expected) in cases {
        db.run(&format!(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, {column}, version INT NOT NULL); {index}"
        ))
        .await;
        let said = problems(&db, step).await;
        let right = if expected.is_empty() { said.is_empty() } else { said.contains(expected) };
        assert!(right, "{column}, {index}: {said}");
        db.run("DROP TABLE t").await;
    }
}

#[tokio::test]
async fn a_unique_index_of_a_parent_table_covers_only_its_own_rows() {
    let db = Db::postgres().await;
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, version INT NOT NULL)").await;
    db.run("CREATE TABLE child () INHERITS (t); CREATE TABLE grandchild () INHERITS (child)").await;
    let step = "step.handler = \"h\"\nstep.version = \"version\"";
    let said = problems(&db, step).await;
    assert!(said.contains("inherited by `child`, `grandchild`"), "{said}");
    assert_eq!(problems(&db, SQL).await, "");
    let source = Source { table: Some("t".to_owned()), ..Source::default() };
    assert!(!db.data.describe(&source).await.unwrap().is_unique(&["id"]));
    // The child may lack the constraints of the parent.
    db.run("ALTER TABLE grandchild ALTER id DROP NOT NULL").await;
    let said = problems(&db, SQL).await;
    assert!(said.contains("`id` may be null"), "{said}");
    // Without its children it is an ordinary table.
    db.run("DROP TABLE grandchild; DROP TABLE child").await;
    assert_eq!(problems(&db, step).await, "");
    // A partitioned table is unique across its partitions.
    db.run(
        "DROP TABLE t; CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, version INT NOT NULL)
             PARTITION BY HASH (id);
         CREATE TABLE t0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0);
         CREATE TABLE t1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
    )
    .await;
    assert_eq!(problems(&db, step).await, "");
}

#[tokio::test]
async fn nulls_in_a_primary_key_of_sqlite_are_checked_again() {
    let db = Db::sqlite().await;
    db.run("CREATE TABLE t (id TEXT PRIMARY KEY, v INT); INSERT INTO t VALUES ('a', 0)").await;
    db.run("CREATE TABLE n (id INTEGER PRIMARY KEY); CREATE TABLE w (id TEXT PRIMARY KEY) WITHOUT ROWID").await;
    let (job_type, table) = db.job_type(&format!("source.table = \"t\"\n{SQL}")).await;
    assert_eq!(table.unchecked_nulls, ["id"]);
    for proven in ["n", "w"] {
        let source = Source { table: Some(proven.to_owned()), ..Source::default() };
        assert!(db.data.describe(&source).await.unwrap().is_never_null(&["id"]), "{proven}");
    }
    let scope = Scope::new(job_type, table, &Request::new("J"), &Identity::default()).unwrap();
    db.data.check_keys(&scope, None).await.unwrap();
    db.run("INSERT INTO t VALUES (NULL, 0)").await;
    let error = db.data.check_keys(&scope, None).await.unwrap_err().to_string();
    assert!(error.contains("`id` is NULL in a row of `t`"), "{error}");
    assert!(problems(&db, SQL).await.contains("may be null"));
}
