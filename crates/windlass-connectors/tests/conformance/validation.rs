//! Problems of a job type and its table are reported with their solutions.

use crate::harness::{Db, job_type, on_every_backend};
use windlass_connectors::validate;

on_every_backend!(
    the_primary_key_is_the_default,
    problems_are_reported_with_their_solutions,
    a_query_needs_only_its_columns,
);

async fn problems(db: &Db, toml: &str) -> Vec<String> {
    let mut job_type = job_type(toml);
    let table = db.data.describe(&job_type.source).await.unwrap();
    validate(&mut job_type, &table).iter().map(ToString::to_string).collect()
}

async fn the_primary_key_is_the_default(db: Db) {
    db.run("CREATE TABLE t (a TEXT, b INT, PRIMARY KEY (b, a)); CREATE TABLE heap (a INT)").await;
    let (job_type, _) =
        db.job_type("source.table = \"t\"\nstep.sql = \"DELETE FROM t WHERE {chunk}\"").await;
    assert_eq!(job_type.source.key, ["b", "a"]);
    let found =
        problems(&db, "source.table = \"heap\"\nstep.sql = \"DELETE FROM heap WHERE {chunk}\"")
            .await;
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("line 1") && found[0].contains("no primary key"), "{found:?}");
}

async fn problems_are_reported_with_their_solutions(db: Db) {
    db.run(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, year INT, code TEXT, day INT NOT NULL, version TEXT, v INT, w INT NOT NULL)",
    )
    .await;
    db.run("CREATE INDEX codes ON t (code); CREATE INDEX days ON t (day)").await;
    let sql = "step.sql = \"UPDATE t SET v = 1 WHERE {chunk}\"";
    let cases: &[(&str, &str, &[&str])] = &[
        ("source.key = [\"idd\"]", sql, &["source.key", "no column `idd`", "`id`, `year`"]),
        ("source.key = [\"w\"]", sql, &["CREATE UNIQUE INDEX t_w ON t (w)"]),
        ("source.key = [\"code\"]", sql, &["`code` may be null"]),
        (
            "source.filters = { years = \"year\" }",
            sql,
            &["source.filters.years", "CREATE INDEX t_year_id ON t (year, id)"],
        ),
        (
            "source.filters = { years = \"yaer\" }",
            sql,
            &["source.filters.years", "no column `yaer`"],
        ),
        (
            "source.claims = { county = \"county\" }",
            sql,
            &["source.claims.county", "no column `county`"],
        ),
        (
            "source.match = { code = \"it's\", day = 7 }",
            sql,
            &["source.match", "source.where = \"code = 'it''s' AND day = 7\""],
        ),
        ("step.mark = \"flag\"", sql, &["step.mark", "no column `flag`"]),
        ("", "step.refresh = true\nstep.version = \"none\"", &["step.version", "no column `none`"]),
        (
            "",
            "step.refresh = true\nstep.version = \"version\"",
            &["step.version", "must be an integer"],
        ),
        (
            "source.key = [\"day\"]",
            "step.handler = \"h\"\nstep.version = \"v\"",
            &["no index guarantees that (day) is unique"],
        ),
        ("", "step.sql = \"UPDATE t SET ID = 1 WHERE {chunk}\"", &["step.sql", "another chunk"]),
    ];
    for (source, step, expected) in cases {
        let found = problems(&db, &format!("source.table = \"t\"\n{source}\n{step}")).await;
        assert_eq!(found.len(), 1, "{source} {step}: {found:?}");
        for part in *expected {
            assert!(found[0].contains(part), "`{part}` is not in {found:?}");
        }
    }
    // A statement does not need a unique key.
    let found =
        problems(&db, &format!("source.table = \"t\"\nsource.key = [\"day\"]\n{sql}")).await;
    assert_eq!(found, Vec::<String>::new());
}

async fn a_query_needs_only_its_columns(db: Db) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT)").await;
    let query =
        "source.query = \"SELECT id, v FROM t\"\nstep.sql = \"UPDATE t SET v = 1 WHERE {chunk}\"";
    assert!(problems(&db, &format!("source.key = [\"v\"]\n{query}")).await.is_empty());
    let found = problems(&db, &format!("source.key = [\"w\"]\n{query}")).await;
    assert!(found[0].contains("no column `w`"), "{found:?}");
}
