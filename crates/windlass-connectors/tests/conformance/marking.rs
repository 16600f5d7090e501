//! The mark is set while a chunk runs, and cleared by its commit.

use crate::harness::{Db, effect, key, on_every_backend};
use windlass_connectors::{ConnectorError, Effect, Marked};
use windlass_core::KeySet;

on_every_backend!(marks_and_clears, a_lost_lease_marks_nothing, every_type_of_mark);

const TOML: &str = "source.table = \"t\"\nsource.where = \"v = 0\"\nstep.mark = \"flag\"\n\
                    step.sql = \"UPDATE t SET v = 1 WHERE {chunk}\"";

async fn table(db: &Db, flag: &str) {
    db.run(&format!("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, flag {flag})")).await;
    db.run("INSERT INTO t (id, v) VALUES (1, 0), (2, 0), (3, 5), (4, 0)").await;
}

async fn marks_and_clears(db: Db) {
    table(&db, "BOOLEAN").await;
    let scope = db.scope(TOML).await;
    let ledger = db.fenced(1).await;
    let chunk = KeySet::range(None, Some(key(3)));
    let two = Marked { rows: 2, values: vec![2] };
    // Rows that have the mark already count, too.
    for _ in 0..2 {
        assert_eq!(db.data.mark(&scope, &ledger, &chunk).await.unwrap(), two);
    }
    let marked = "SELECT id FROM t WHERE flag ORDER BY id";
    assert_eq!(db.rows(marked).await, [["1"], ["2"]]);
    // The statement changes rows so that they no longer match `source.where`. Their marks are still cleared.
    let commit = effect(Effect::Statement(chunk));
    let ledger = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger;
    assert_eq!((ledger.counts.read, ledger.counts.processed), (2, 2));
    assert_eq!(db.number("SELECT count(*) FROM t WHERE flag IS NOT NULL").await, 0);
    // A chunk that ends without running its statement.
    let rest = KeySet::range(Some(key(3)), None);
    db.data.mark(&scope, &ledger, &rest).await.unwrap();
    assert_eq!(db.rows(marked).await, [["4"]]);
    db.data.commit(&scope, &ledger, effect(Effect::Unmark(rest))).await.unwrap();
    assert_eq!(db.number("SELECT count(*) FROM t WHERE flag IS NOT NULL").await, 0);
    assert_eq!(db.number("SELECT count(*) FROM t WHERE v = 1").await, 2);
}

async fn a_lost_lease_marks_nothing(db: Db) {
    table(&db, "BOOLEAN").await;
    let scope = db.scope(TOML).await;
    let stale = db.fenced(1).await;
    db.fence(stale.chunk, 2, true).await.unwrap();
    let error = db.data.mark(&scope, &stale, &crate::harness::everything()).await.unwrap_err();
    assert!(matches!(error, ConnectorError::LeaseLost));
    assert_eq!(db.number("SELECT count(*) FROM t WHERE flag IS NOT NULL").await, 0);
}

async fn every_type_of_mark(db: Db) {
    for (flag, set, clear) in [
        ("INT", "1", "NULL"),
        ("TEXT", "1", "NULL"),
        ("INT NOT NULL DEFAULT 0", "1", "0"),
        ("TEXT NOT NULL DEFAULT ''", "1", ""),
        ("BOOLEAN NOT NULL DEFAULT false", db.pick("t", "1", "1"), db.pick("f", "0", "0")),
    ] {
        db.run("DROP TABLE IF EXISTS t").await;
        table(&db, flag).await;
        let scope = db.scope(TOML).await;
        let ledger = db.fenced(1).await;
        let chunk = crate::harness::everything();
        db.data.mark(&scope, &ledger, &chunk).await.unwrap();
        assert_eq!(db.one("SELECT flag FROM t WHERE id = 1").await, set);
        db.data.commit(&scope, &ledger, effect(Effect::Unmark(chunk))).await.unwrap();
        assert_eq!(db.one("SELECT flag FROM t WHERE id = 1").await, clear);
    }
}
