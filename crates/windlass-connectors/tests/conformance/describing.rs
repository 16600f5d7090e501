//! Describing tables and queries.

use crate::harness::{Db, job_type, on_every_backend};
use windlass_connectors::{ConnectorError, ReadLimits, connect};
use windlass_core::problem::Code;
use windlass_core::{ColumnType, Source};

on_every_backend!(
    columns_keys_and_indexes,
    unusable_indexes_are_ignored,
    a_missing_table_suggests_close_names,
    a_query_has_columns_only,
    a_query_is_described_by_its_tables_as_they_are_now,
    the_number_of_rows_is_estimated,
);

fn source(table: &str) -> Source {
    Source { table: Some(table.to_owned()), ..Source::default() }
}

async fn columns_keys_and_indexes(db: Db) {
    db.run("CREATE TABLE t (b TEXT, a INTEGER, c NUMERIC(8,2) NOT NULL, d BOOLEAN, PRIMARY KEY (a, b))").await;
    db.run("CREATE UNIQUE INDEX i ON t (c, a)").await;
    let table = db.data.describe(&source("t")).await.unwrap();
    let columns: Vec<_> =
        table.columns.iter().map(|c| (c.name.as_str(), c.kind, c.nullable)).collect();
    assert_eq!(
        columns,
        [
            ("b", ColumnType::Text, false),
            ("a", ColumnType::Int, false),
            ("c", ColumnType::Numeric, false),
            ("d", ColumnType::Bool, true),
        ]
    );
    assert_eq!(table.primary_key, ["a", "b"]);
    assert!(table.index_on(&["a", "b"]).unwrap().unique);
    assert!(table.index_on(&["c", "a"]).unwrap().unique);
    assert!(table.is_unique(&["a", "c"]) && !table.is_unique(&["c"]));
    // The name may include the schema.
    let schema = match db.pick("public", "main", "") {
        "" => db.maria().name(),
        schema => schema,
    };
    let table_of = source(&format!("{schema}.t"));
    assert_eq!(db.data.describe(&table_of).await.unwrap().columns, table.columns);
}

async fn unusable_indexes_are_ignored(db: Db) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, a TEXT, b TEXT, c TEXT, d TEXT)").await;
    let partial = "CREATE INDEX partial ON t (a) WHERE a > 'x'";
    db.run(db.pick(partial, partial, "CREATE INDEX partial ON t (a(3))")).await;
    let computed = "CREATE UNIQUE INDEX computed ON t (lower(b))";
    db.run(db.pick(computed, computed, "CREATE FULLTEXT INDEX computed ON t (b)")).await;
    db.run("CREATE INDEX mixed ON t (c, d DESC)").await;
    let collated = db.pick(
        "CREATE INDEX collated ON t (d COLLATE \"und-x-icu\")",
        "CREATE INDEX collated ON t (d COLLATE NOCASE)",
        "CREATE INDEX collated ON t (d) IGNORED",
    );
    db.run(collated).await;
    let table = db.data.describe(&source("t")).await.unwrap();
    for column in ["a", "b", "d"] {
        assert!(table.index_on(&[column]).is_none(), "{column}: {:?}", table.indexes);
    }
    assert!(table.index_on(&["c"]).is_some());
    assert!(table.index_on(&["c", "d"]).is_none());
    assert!(table.index_on(&["id"]).is_some_and(|index| index.unique));
}

async fn a_missing_table_suggests_close_names(db: Db) {
    db.run("CREATE TABLE visits (id BIGINT PRIMARY KEY); CREATE VIEW visitors AS SELECT 1 AS one")
        .await;
    let error = db.data.describe(&source("visit")).await.unwrap_err();
    let ConnectorError::Problem(problem) = error else { panic!("{error}") };
    assert_eq!((problem.code, problem.field.as_deref()), (Code::Source, Some("source.table")));
    assert!(problem.detail.contains("`visits`"), "{problem}");
    db.data.describe(&source("visitors")).await.unwrap();
}

async fn a_query_has_columns_only(db: Db) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT)").await;
    let query = |text: &str| Source { query: Some(text.to_owned()), ..Source::default() };
    let table =
        db.data.describe(&query("SELECT id AS n, name FROM t -- all of them")).await.unwrap();
    let names: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!((names, table.indexes.len(), table.estimated_rows), (vec!["n", "name"], 0, 0));
    let error = db.data.describe(&query("SELECT nothing FROM t")).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Database(_)), "{error}");
}

async fn the_number_of_rows_is_estimated(db: Db) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)").await;
    let series = db.pick(
        "INSERT INTO t SELECT n, 'x' FROM generate_series(1, 5000) AS n",
        "INSERT INTO t WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 5000) SELECT n, 'x' FROM s",
        "INSERT INTO t WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 5000) \
         SELECT n, 'x' FROM s",
    );
    db.run(series).await;
    let before = db.data.describe(&source("t")).await.unwrap().estimated_rows;
    assert!((500..50_000).contains(&before), "{before}");
    db.analyze("t").await;
    assert_eq!(db.data.describe(&source("t")).await.unwrap().estimated_rows, 5000);
}

#[tokio::test]
async fn partitions_views_domains_and_foreign_types_do_not_crash() {
    let db = Db::postgres().await;
    db.run(
        "CREATE DOMAIN positive AS bigint CHECK (VALUE > 0);
         CREATE TYPE mood AS ENUM ('sad', 'glad');
         CREATE TABLE p (id positive, mood mood, day date NOT NULL, v int, PRIMARY KEY (id, day))
             PARTITION BY RANGE (day);
         CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2025-01-01') TO ('2025-02-01');
         CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2025-02-01') TO ('2025-03-01');
         INSERT INTO p SELECT n, 'glad', '2025-01-01'::date + n % 59, 0 FROM generate_series(1, 1000) n;
         ANALYZE p",
    )
    .await;
    let scope =
        db.scope("source.table = \"p\"\nstep.sql = \"UPDATE p SET v = 1 WHERE {chunk}\"").await;
    assert_eq!(scope.table.column("id").unwrap().kind, ColumnType::Int);
    assert_eq!(scope.table.column("mood").unwrap().kind, ColumnType::Other);
    assert_eq!(scope.table.estimated_rows, 1000);
    let ranges = db.data.split(&scope, 4).await.unwrap();
    assert_eq!(ranges.len(), 4);
    crate::cutting::covers(&db, &scope, &ranges, 1000).await;
    let key_set = windlass_core::KeySet::new(None, windlass_core::Keys::Range(ranges[0].clone()));
    let keys = db.data.read(&scope, &key_set, ReadLimits::new(5, usize::MAX)).await.unwrap();
    let keys = keys.items.into_iter().map(|item| item.key).collect();
    assert_eq!(db.data.count(&scope, &windlass_core::KeySet::keys(keys)).await.unwrap(), 5);
}

#[tokio::test]
async fn a_secondary_index_of_sqlite_includes_the_rowid_or_the_key() {
    let db = Db::sqlite().await;
    db.run(
        "CREATE TABLE a (id INTEGER PRIMARY KEY, kind INT);
         CREATE INDEX a_kind ON a (kind);
         CREATE TABLE b (x TEXT, y TEXT, kind INT, PRIMARY KEY (x, y)) WITHOUT ROWID;
         CREATE INDEX b_kind ON b (kind);
         CREATE TABLE c (id TEXT PRIMARY KEY, kind INT);
         CREATE INDEX c_kind ON c (kind);
         INSERT INTO c VALUES (NULL, 1)",
    )
    .await;
    let a = db.data.describe(&source("a")).await.unwrap();
    assert!(a.index_on(&["kind", "id"]).is_some());
    let b = db.data.describe(&source("b")).await.unwrap();
    assert!(b.index_on(&["kind", "x", "y"]).is_some() && !b.column("x").unwrap().nullable);
    let c = db.data.describe(&source("c")).await.unwrap();
    assert!(c.index_on(&["kind", "id"]).is_none() && c.column("id").unwrap().nullable);
}

#[tokio::test]
async fn a_missing_file_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.db");
    let url = format!("sqlite:{}", path.display());
    let error = connect(&url, 1).await.err().unwrap();
    assert!(error.to_string().contains("no SQLite database"), "{error}");
    assert!(!path.exists());
    // PostgreSQL is not contacted before the first query.
    connect("postgres://nobody@127.0.0.1:1/none", 1).await.unwrap();
}

#[tokio::test]
async fn a_missing_privilege_for_the_ledger_is_explained() {
    let db = Db::postgres().await;
    let name = format!("poor_{}", db.database().name());
    db.run(&format!(
        "DROP TABLE windlass_emitted, windlass_deferred, windlass_ledger, windlass_stores; CREATE ROLE {name} LOGIN; \
         REVOKE CREATE ON SCHEMA public FROM PUBLIC"
    ))
    .await;
    let url = db.database().url().replace("windlass@", &format!("{name}@"));
    let poor = connect(&url, 1).await.unwrap();
    let error = poor.prepare().await.unwrap_err();
    let ConnectorError::Problem(problem) = error else { panic!("{error}") };
    assert_eq!(problem.code, Code::Ledger);
    assert!(problem.detail.contains("windlass migrate --print"), "{problem}");
    // Tables that an administrator created are used.
    db.run(db.data.ledger_ddl()).await;
    db.run(&format!(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON windlass_ledger, windlass_deferred, windlass_emitted, windlass_stores TO {name}"
    ))
    .await;
    poor.prepare().await.unwrap();
    let _ = job_type("source.table = \"t\"\nstep.sql = \"DELETE FROM t WHERE {chunk}\"");
}

async fn a_query_is_described_by_its_tables_as_they_are_now(db: Db) {
    let query = Some("SELECT k, v FROM t".to_owned());
    let source = Source { query, key: vec!["k".to_owned()], ..Source::default() };
    let mut described = Vec::new();
    for columns in ["k VARCHAR(9), v INT", "k BIGINT, v INT"] {
        db.run("DROP TABLE IF EXISTS t").await;
        db.run(&format!("CREATE TABLE t ({columns})")).await;
        described.push(db.data.describe(&source).await.unwrap().columns.remove(0).kind);
    }
    // The columns of a query have no declared type in SQLite.
    let sqlite = [ColumnType::Other; 2];
    let servers = [ColumnType::Text, ColumnType::Int];
    assert_eq!(described, if db.is_sqlite() { sqlite } else { servers });
}
