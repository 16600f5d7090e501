//! One commit is one atomic transaction.

use super::{HANDLER, REFRESH, read, table, with_table, write};
use crate::harness::{Db, effect, key};
use crate::writing::item;
use std::collections::HashSet;
use windlass_connectors::{ConnectorError, Effect, WriteItem};
use windlass_core::{Change, Counts, KeySet, Value};
use windlass_drivers::ErrorClass;

#[tokio::test]
async fn a_refresh_raises_versions_and_overwrites_nothing() {
    let db = Db::dynamodb().await;
    table(&db, 3).await;
    db.run("INSERT INTO t (id, kind, county) VALUES (4, 1, 'c0')").await;
    let scope = db.scope(REFRESH).await;
    let listed = KeySet::keys((1..=5).map(key).collect());
    let preview = db.data.preview(&scope, &listed).await.unwrap();
    let after = preview[0].after.as_ref().unwrap().get("version").cloned();
    assert_eq!((preview.len(), after), (4, Some(Value::Int(2))));
    let ledger = db.fenced(1).await;
    let commit = effect(Effect::Statement(listed));
    let counts = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 5, processed: 4, skipped: 1, ..Counts::default() });
    // A record without a version gets its first one.
    let versions = db.rows("SELECT version FROM t ORDER BY id").await;
    assert_eq!(versions, [["2"], ["2"], ["2"], ["1"]]);
}

#[tokio::test]
async fn a_record_without_a_version_gets_its_first_one() {
    let db = Db::dynamodb().await;
    table(&db, 4).await;
    db.run("UPDATE t SET version = NULL WHERE id > 1").await;
    let scope = db.scope(HANDLER).await;
    let items = read(&db, &scope, 1..=4).await;
    // Another writer gives a record its first version, and another one deletes a record.
    db.run("UPDATE t SET version = 1 WHERE id = 3").await;
    db.run("DELETE FROM t WHERE id = 4").await;
    let items =
        items.into_iter().map(|read| item(read, Change::default().set("kind", 9))).collect();
    let ledger = db.fenced(1).await;
    let counts = db.data.commit(&scope, &ledger, write(items)).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 4, processed: 2, conflicts: 2, ..Counts::default() });
    let versions = db.rows("SELECT version FROM t ORDER BY id").await;
    assert_eq!(versions, [["2"], ["1"], ["1"]]);
}

#[tokio::test]
async fn an_update_without_a_version_is_refused_and_an_insert_is_not() {
    let db = Db::dynamodb().await;
    table(&db, 1).await;
    db.run("CREATE TABLE log (visit BIGINT PRIMARY KEY)").await;
    let scope = db.scope("source.table = \"t\"\nstep.handler = \"h\"").await;
    let read = read(&db, &scope, 1..=1).await.remove(0);
    let insert = Change::default().insert("log", [("visit", Value::Int(1))]);
    let ledger = db.fenced(1).await;
    let commit = write(vec![item(read.clone(), insert)]);
    let ledger = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger;
    assert_eq!(ledger.counts.processed, 1);
    let update = write(vec![item(read, Change::default().set("kind", 9))]);
    let error = db.data.commit(&scope, &ledger, update).await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Definition), "{error}");
    assert!(error.to_string().contains("step.version"), "{error}");
}

#[tokio::test]
async fn inserts_happen_once_and_not_for_conflicts() {
    let db = Db::dynamodb().await;
    table(&db, 3).await;
    db.run("CREATE TABLE log (visit BIGINT PRIMARY KEY, note TEXT)").await;
    let scope = db.scope(HANDLER).await;
    let items = read(&db, &scope, 1..=3).await;
    db.run("UPDATE t SET version = version + 1 WHERE id = 3").await;
    let change = |id: i64| {
        let row = [("visit", Value::Int(id)), ("note", "it's".into())];
        Change::default().set("kind", 0).insert("log", row)
    };
    let writes: Vec<WriteItem> =
        items.iter().cloned().zip(1..).map(|(read, id)| item(read, change(id))).collect();
    let ledger = db.fenced(1).await;
    let done = db.data.commit(&scope, &ledger, write(writes.clone())).await.unwrap().ledger;
    let counts = Counts { read: 3, processed: 2, conflicts: 1, ..Counts::default() };
    assert_eq!(done.counts, counts);
    // Repeated, as after a lost answer: the ledger refuses it.
    let again = db.data.commit(&scope, &ledger, write(writes)).await.unwrap_err();
    assert!(matches!(again, ConnectorError::LeaseLost), "{again}");
    assert_eq!(
        db.rows("SELECT visit, note FROM log ORDER BY visit").await,
        [["1", "it's"], ["2", "it's"]]
    );
    // A row with this key exists: the whole commit is refused.
    let items = read(&db, &scope, 1..=2).await;
    let mut writes: Vec<WriteItem> = items.into_iter().map(|read| item(read, change(9))).collect();
    writes[1].change = change(1).into();
    let error = db.data.commit(&scope, &done, write(writes)).await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Data), "{error}");
    assert!(error.to_string().contains("`log`"), "{error}");
    assert_eq!(db.number("SELECT count(*) FROM log").await, 2);
    assert_eq!(db.fence(done.chunk, 1, false).await.unwrap(), done);
}

#[tokio::test]
async fn an_unwritable_value_is_an_error_of_its_item() {
    let db = Db::dynamodb().await;
    table(&db, 1).await;
    db.run("CREATE TABLE log (visit BIGINT PRIMARY KEY)").await;
    let toml = format!("{HANDLER}\nsource.filters = {{ kinds = \"kind\" }}");
    let scope = db.scope(&toml).await;
    let read = read(&db, &scope, 1..=1).await.remove(0);
    for (change, expected) in [
        (Change::default().set("id", 9), "move into another chunk"),
        (Change::default().set("kind", 9), "move into another chunk"),
        (Change::default().set("version", 9), "only Windlass may set"),
        (Change::default().set("v", f64::NAN), "cannot store the number NaN"),
        (
            Change::default().insert("log", [("w", Value::Int(1))]),
            "key `visit` of `log` is missing",
        ),
    ] {
        let ledger = db.fenced(1).await;
        let one = || item(read.clone(), change.clone());
        let error = db.data.commit(&scope, &ledger, write(vec![one()])).await.unwrap_err();
        assert_eq!(error.class(), Some(ErrorClass::Data), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(db.data.try_write(&scope, one()).await.is_err());
    }
    let change = Change::default().insert("missing", [("w", Value::Int(1))]);
    let ledger = db.fenced(1).await;
    let error = db.data.commit(&scope, &ledger, write(vec![item(read, change)])).await;
    assert_eq!(error.unwrap_err().class(), Some(ErrorClass::Definition));
    assert_eq!(db.number("SELECT version FROM t").await, 1);
}

#[tokio::test]
async fn a_commit_has_at_most_a_hundred_actions() {
    let (db, scope) = with_table(100, HANDLER).await;
    assert_eq!(db.data.max_commit_items(), 99);
    let items = read(&db, &scope, 1..=100).await;
    let writes = |count: usize| {
        let some = items.iter().take(count).cloned();
        some.map(|read| item(read, Change::default().set("kind", 7))).collect::<Vec<_>>()
    };
    let ledger = db.fenced(1).await;
    let before = db.tables().requests("TransactWriteItems");
    let error = db.data.commit(&scope, &ledger, write(writes(100))).await.unwrap_err();
    // A data error, so that the engine halves the batch. No request was sent.
    assert_eq!(error.class(), Some(ErrorClass::Data), "{error}");
    assert_eq!(db.tables().requests("TransactWriteItems"), before);
    let counts = db.data.commit(&scope, &ledger, write(writes(99))).await.unwrap().ledger.counts;
    assert_eq!(counts.processed, 99);
    assert_eq!(db.tables().requests("TransactWriteItems"), before + 1);
    assert_eq!(db.number("SELECT count(*) FROM t WHERE version = 2").await, 99);
}

#[tokio::test]
async fn emitted_rows_exist_once_and_in_order() {
    let (db, scope) = with_table(30, HANDLER).await;
    let ledger = db.fenced(1).await;
    let emit = |read: windlass_connectors::Item| {
        let row = |n: i64| [("n".to_owned(), Value::Int(n))].into_iter().collect();
        let change = Change { emit: vec![row(1), row(2)], ..Change::default() };
        let change = windlass_connectors::keep_emitted(change, ledger.chunk, &read.key);
        item(read, change)
    };
    let writes = read(&db, &scope, 1..=30).await.into_iter().map(emit).collect();
    db.data.commit(&scope, &ledger, write(writes)).await.unwrap();
    let (mut after, mut seen) = (windlass_connectors::EmittedCursor::default(), Vec::new());
    loop {
        let page = db.data.emitted(ledger.chunk.job, &after, 7).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.cursor.clone();
        seen.extend(page.into_iter().map(|row| row.cursor));
    }
    assert_eq!(seen.len(), 60);
    assert!(seen.is_sorted() && seen.iter().collect::<HashSet<_>>().len() == 60);
    assert_eq!(db.data.discard_emitted(ledger.chunk.job).await.unwrap(), 60);
    assert_eq!(db.data.prune(ledger.chunk.job).await.unwrap(), 1);
}

/// The answer to a transaction is lost: the error class tells that the outcome is unknown, and the ledger has it.
#[tokio::test]
async fn fencing_again_resolves_an_ambiguous_commit() {
    let (db, scope) = with_table(3, REFRESH).await;
    let ledger = db.fenced(1).await;
    let work = || effect(Effect::Statement(KeySet::keys((1..=3).map(key).collect())));
    for (happened, after) in [(false, 3), (true, 6)] {
        match happened {
            true => db.tables().fail_after("TransactWriteItems", 1, "InternalServerError"),
            false => db.tables().fail_before("TransactWriteItems", 1, "InternalServerError"),
        }
        let sent = db.tables().requests("TransactWriteItems");
        let error = db.data.commit(&scope, &ledger, work()).await.unwrap_err();
        assert_eq!(error.class(), Some(ErrorClass::Connection), "{error}");
        assert_eq!(db.tables().requests("TransactWriteItems") - sent, 1, "it is sent once");
        let seen = db.fence(ledger.chunk, ledger.epoch, false).await.unwrap();
        assert_eq!(seen.commits - ledger.commits, i64::from(happened));
        assert_eq!(db.number("SELECT sum(version) FROM t").await, after);
    }
    let error = db.data.commit(&scope, &ledger, work()).await.unwrap_err();
    assert!(matches!(error, ConnectorError::LeaseLost), "{error}");
    assert_eq!(db.number("SELECT sum(version) FROM t").await, 6);
}
