//! Files that COPY refuses. The transaction is rolled back, and the error says which file is wrong.

use super::fixture::{Files, RedshiftFixture, column};
use serde_json::json;
use uuid::Uuid;
use windlass_connectors::StagedColumn;
use windlass_core::{ColumnType, Load, Value};

impl RedshiftFixture {
    /// Asserts that a load fails with this message and changes nothing.
    async fn refuses(&self, files: &Files, expected: &str) {
        let before = self.totals().await;
        let ledger = self.fence(Uuid::now_v7(), 1).await.unwrap().unwrap();
        let error = self.copy(&ledger, files).await.unwrap_err().to_string();
        assert!(error.contains(expected), "`{expected}` is not in `{error}`");
        assert_eq!(self.totals().await, before);
    }

    async fn manifest(&self, text: &serde_json::Value) -> String {
        let name = format!("{}.manifest", Uuid::now_v7());
        self.folder.put(&name, text.to_string().into_bytes()).await.unwrap();
        self.folder.object_url(&name)
    }
}

#[tokio::test]
async fn wrong_files_load_nothing() {
    let fixture = RedshiftFixture::new().await;
    fixture.reset().await;
    let right = fixture.branches().await;
    let (url, bytes) = right.objects[0].clone();
    let with = |manifest: String| Files {
        manifest,
        columns: right.columns.clone(),
        rows: right.rows,
        objects: Vec::new(),
    };
    let missing = fixture.folder.object_url("missing.parquet");
    for (entry, expected) in [
        (json!({"url": url, "mandatory": true}), "content_length"),
        (json!({"url": url, "meta": {"content_length": bytes + 1}}), "does not match the file"),
        (
            json!({"url": missing, "mandatory": true, "meta": {"content_length": 1}}),
            "Mandatory url is not present",
        ),
        (json!({"url": url, "meta": {"content_length": bytes}, "size": 1}), "unknown field: size"),
        // One of two files: fewer rows than were written.
        (json!({"url": url, "meta": {"content_length": bytes}}), "COPY staged 2 rows"),
    ] {
        let manifest = fixture.manifest(&json!({"entries": [entry]})).await;
        fixture.refuses(&with(manifest), expected).await;
    }
    let empty = fixture.manifest(&json!({"entries": []})).await;
    fixture.refuses(&with(empty), "no entries").await;
    fixture.refuses(&with(missing), "manifest does not exist").await;

    let mut more = with(right.manifest.clone());
    more.columns.push(StagedColumn { name: "day".into(), sql_type: "date".into() });
    fixture.refuses(&more, "the file has 3 columns, but the target table has 4").await;
    let mut other = with(right.manifest.clone());
    other.columns[1].sql_type = "integer".into();
    fixture.refuses(&other, "incompatible Parquet schema for column 'n'").await;
    // A value that the column of the loaded table cannot hold.
    let columns =
        [column("branch", ColumnType::Text, "text"), column("n", ColumnType::Text, "text")];
    let rows = [vec![Value::from("a"), Value::from("many")]];
    fixture.refuses(&fixture.files(&columns, &rows).await, "many").await;
    // A text is not cut to the length of its column.
    let rows = [vec![Value::from("a name of more than twenty characters"), Value::from("1")]];
    fixture.refuses(&fixture.files(&columns, &rows).await, "value too long").await;
}

#[tokio::test]
async fn check_finds_a_missing_table_or_column() {
    let fixture = RedshiftFixture::new().await;
    let prepare = async |table: &str, names: &[&str]| {
        let load = Load::into_table("warehouse", table, ["day"]);
        let columns: Vec<_> =
            names.iter().map(|name| column(name, ColumnType::Int, "bigint")).collect();
        let prepared = fixture.connection.prepare_replace(&load, &columns).await;
        prepared.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(prepare("totals", &["n"]).await, "");
    assert_eq!(prepare("public.totals", &["n"]).await, "");
    assert!(prepare("total", &["n"]).await.contains("there is no table `total`"));
    assert!(prepare("totals", &["m"]).await.contains("has no column `m`"));
    let source = windlass_core::Source { table: Some("totls".into()), ..Default::default() };
    let error = fixture.connection.describe(&source).await.unwrap_err().to_string();
    assert!(error.contains("did you mean `totals`"), "{error}");
}

/// The lists of constructs are tested in the testkit; these go through the server.
#[tokio::test]
async fn the_server_refuses_what_redshift_lacks() {
    let fixture = RedshiftFixture::new().await;
    for (sql, expected) in [
        (
            "INSERT INTO totals (n) VALUES (1) ON CONFLICT DO NOTHING",
            "ON CONFLICT is not supported",
        ),
        ("INSERT INTO totals (n) VALUES (1) RETURNING n", "RETURNING is not supported"),
        ("SELECT * FROM unnest('{1}')", "function unnest() does not exist"),
        ("SELECT n FROM totals FOR UPDATE", "SELECT FOR UPDATE is not supported"),
        ("BEGIN; SET LOCAL synchronous_commit = on", "unrecognized configuration parameter"),
        ("CREATE TABLE t (id uuid)", "type \"uuid\" does not exist"),
        ("COPY totals FROM STDIN", "COPY FROM STDIN is not supported"),
        ("SELECT ARRAY[1]", "ARRAY is not supported"),
        ("CREATE INDEX i ON totals (n)", "CREATE INDEX is not supported"),
        ("SELECT pg_advisory_xact_lock(1)", "pg_advisory_xact_lock() does not exist"),
        ("LISTEN windlass", "LISTEN is not supported"),
        ("SAVEPOINT s", "SAVEPOINT is not supported"),
        ("SELECT 1 IS DISTINCT FROM 2", "IS DISTINCT FROM is not supported"),
        ("CREATE TABLE t (n numeric(39,0))", "DECIMAL precision 39"),
        ("SELECT to_regclass('totals')", "to_regclass() does not exist"),
        ("SELECT clock_timestamp()", "clock_timestamp() does not exist"),
    ] {
        let error = fixture.server.try_run(sql).await.unwrap_err();
        assert!(error.contains(expected), "{sql}: `{expected}` is not in `{error}`");
    }
    // A backslash escapes, and keys are not enforced.
    fixture.server.run("CREATE TABLE keyed (id bigint, name varchar(9), PRIMARY KEY (id))").await;
    fixture.server.run("INSERT INTO keyed VALUES (1, 'a\\\\b'), (1, 'O\\'x')").await;
    let names: String =
        fixture.database.one("SELECT string_agg(name, ' ' ORDER BY name) FROM keyed").await;
    assert_eq!(names, "O'x a\\b");
}
