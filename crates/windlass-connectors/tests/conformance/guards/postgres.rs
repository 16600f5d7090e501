//! `xmin` changes with every write of another transaction, and with nothing else.

use super::{handler, read, set_v};
use crate::harness::{Db, job_type};
use crate::writing::{item, write};
use std::time::Duration;
use windlass_connectors::validate;
use windlass_core::{Change, Counts};
use windlass_testkit::eventually;

/// Far longer than any wait takes.
const PATIENCE: Duration = Duration::from_secs(60);

const TABLE: &str = "CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, name TEXT);
                     INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')";

#[tokio::test]
async fn maintenance_and_locks_are_no_conflicts() {
    let db = Db::postgres().await;
    db.run(TABLE).await;
    db.run("CREATE TABLE child (t BIGINT REFERENCES t)").await;
    for (guard, maintenance) in [
        ("", "VACUUM FREEZE t"),
        ("", "VACUUM FULL t"),
        ("", "CLUSTER t USING t_pkey"),
        ("", "ANALYZE t"),
        ("", "INSERT INTO child VALUES (1), (2), (3)"),
        ("", "BEGIN; SELECT * FROM t FOR UPDATE; COMMIT"),
        ("", "BEGIN; UPDATE t SET v = 0; ROLLBACK"),
        ("step.guard = \"columns\"", "VACUUM FULL t"),
        ("step.guard = \"columns\"", "UPDATE t SET v = v"),
    ] {
        let scope = db.scope(&handler(guard)).await;
        let items = read(&db, &scope).await;
        db.run(maintenance).await;
        let counts = set_v(&db, &scope, items).await;
        assert_eq!((counts.processed, counts.conflicts), (3, 0), "{guard} {maintenance}");
    }
    // A write that changes nothing is a write nevertheless.
    let scope = db.scope(&handler("")).await;
    let items = read(&db, &scope).await;
    db.run("UPDATE t SET v = v WHERE id = 2").await;
    let counts = set_v(&db, &scope, items).await;
    assert_eq!((counts.processed, counts.conflicts), (2, 1));
}

#[tokio::test]
async fn an_uncommitted_write_is_waited_for() {
    let db = Db::postgres().await;
    db.run(TABLE).await;
    for guard in super::guards(&db) {
        for (end, expected, name) in [("COMMIT", (2, 1), "theirs"), ("ROLLBACK", (3, 0), "b")] {
            db.run("UPDATE t SET name = 'b' WHERE id = 2").await;
            let scope = db.scope(&handler(guard)).await;
            let items = read(&db, &scope).await;
            let other = db.database().client().await;
            other.batch_execute("BEGIN; UPDATE t SET name = 'theirs' WHERE id = 2").await.unwrap();
            let ending = async {
                let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = \
                             current_database() AND wait_event_type = 'Lock'";
                eventually("the commit waits", PATIENCE, async || db.number(waits).await == 1)
                    .await;
                other.batch_execute(end).await.unwrap();
            };
            let (counts, ()) = tokio::join!(set_v(&db, &scope, items), ending);
            assert_eq!((counts.processed, counts.conflicts), expected, "{guard} {end}");
            assert_eq!(db.one("SELECT name FROM t WHERE id = 2").await, name);
        }
    }
}

#[tokio::test]
async fn a_record_that_is_written_twice_in_a_commit_conflicts_with_itself() {
    let db = Db::postgres().await;
    db.run(TABLE).await;
    for guard in super::guards(&db) {
        let scope = db.scope(&handler(guard)).await;
        let first = read(&db, &scope).await.remove(0);
        let items = vec![
            item(first.clone(), Change::default().set("v", 70)),
            item(first, Change::default().set("name", "x")),
        ];
        let ledger = db.fenced(1).await;
        let counts = db.data.commit(&scope, &ledger, write(items)).await.unwrap().ledger.counts;
        let expected = Counts { read: 2, processed: 1, conflicts: 1, ..Counts::default() };
        assert_eq!(counts, expected, "{guard}");
        assert_eq!(db.one("SELECT name FROM t WHERE id = 1").await, "a");
        db.run("UPDATE t SET v = 1").await;
    }
}

#[tokio::test]
async fn partitions_have_xmin_and_views_have_none() {
    let db = Db::postgres().await;
    db.run(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, name TEXT) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10);
         CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (id);
         CREATE TABLE higher PARTITION OF high FOR VALUES FROM (10) TO (20);
         INSERT INTO t VALUES (1, 1, 'a'), (11, 2, 'b'), (12, 3, 'c');
         CREATE VIEW seen AS SELECT * FROM t",
    )
    .await;
    for guard in super::guards(&db) {
        let scope = db.scope(&handler(guard)).await;
        assert!(scope.table.has_xmin);
        let items = read(&db, &scope).await;
        db.run("UPDATE t SET name = name || '.' WHERE id = 11").await;
        let counts = set_v(&db, &scope, items).await;
        assert_eq!((counts.processed, counts.conflicts), (2, 1), "{guard}");
    }
    let mut view = job_type(
        "source.table = \"seen\"\nsource.key = [\"id\"]\nstep.handler = \"h\"\nstep.guard = \"xmin\"",
    );
    let table = db.data.describe(&view.source).await.unwrap();
    let problems = validate(&mut view, &table);
    let is_named =
        |text: String| text.contains("views") && text.contains("step.guard = \"columns\"");
    assert!(problems.iter().any(|problem| is_named(problem.to_string())), "{problems:?}");
}
