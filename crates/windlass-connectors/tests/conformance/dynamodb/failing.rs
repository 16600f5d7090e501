//! Answers of AWS when it throttles, refuses or is down, which moto does not simulate.

use super::{HANDLER, REFRESH, read, scanning::walked, table, with_table, write};
use crate::harness::{Db, effect, job_type, key};
use crate::writing::item;
use windlass_connectors::{
    Commit, ConnectorError, DeferredState, Effect, ReadLimits, ScanSegment, connect, validate,
};
use windlass_core::{Change, Cursor, KeySet};
use windlass_drivers::ErrorClass;

/// Codes that AWS returns and moto does not.
#[tokio::test]
async fn throttling_is_retried_and_is_not_a_conflict() {
    let (db, scope) = with_table(3, HANDLER).await;
    let items = read(&db, &scope, 1..=3).await;
    let mut ledger = db.fenced(1).await;
    let reasons = |code: &str| {
        format!(
            "\"CancellationReasons\":[{{\"Code\":\"None\"}},{{\"Code\":\"{code}\"}},{{\"Code\":\"None\"}}]"
        )
    };
    for code in ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"] {
        let items = read(&db, &scope, 1..=3).await;
        let writes = items.into_iter().map(|read| item(read, Change::default().set("kind", 7)));
        db.tables().fail_with(
            "TransactWriteItems",
            3,
            "TransactionCanceledException",
            &reasons(code),
        );
        let before = ledger.counts;
        ledger = db.data.commit(&scope, &ledger, write(writes.collect())).await.unwrap().ledger;
        assert_eq!((ledger.counts.processed - before.processed, ledger.counts.conflicts), (3, 0));
    }
    db.tables().fail_before("TransactWriteItems", 2, "ThrottlingException");
    let nothing = Commit { cursor: Cursor::Start, ..effect(Effect::Nothing) };
    let sent = db.tables().requests("TransactWriteItems");
    let ledger = db.data.commit(&scope, &ledger, nothing).await.unwrap().ledger;
    assert_eq!(db.tables().requests("TransactWriteItems") - sent, 3);
    // The ledger's condition takes precedence.
    let lost = "\"CancellationReasons\":[{\"Code\":\"ConditionalCheckFailed\"},{\"Code\":\"TransactionConflict\"}]";
    db.tables().fail_with("TransactWriteItems", 1, "TransactionCanceledException", lost);
    let stale = vec![item(items[0].clone(), Change::default().set("kind", 1))];
    let error = db.data.commit(&scope, &ledger, write(stale)).await.unwrap_err();
    assert!(matches!(error, ConnectorError::LeaseLost), "{error}");
}

#[tokio::test]
async fn a_refused_item_is_a_data_error() {
    let (db, scope) = with_table(1, HANDLER).await;
    let read = read(&db, &scope, 1..=1).await.remove(0);
    let ledger = db.fenced(1).await;
    let reasons = "\"CancellationReasons\":[{\"Code\":\"None\"},{\"Code\":\"ValidationError\",\"Message\":\"Item size has exceeded the maximum allowed size\"}]";
    db.tables().fail_with("TransactWriteItems", 1, "TransactionCanceledException", reasons);
    let commit = write(vec![item(read, Change::default().set("kind", 1))]);
    let error = db.data.commit(&scope, &ledger, commit).await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Data), "{error}");
    assert!(error.to_string().contains("Item size"), "{error}");
}

#[tokio::test]
async fn throttled_requests_back_off() {
    let (db, scope) = with_table(30, HANDLER).await;
    for operation in ["Scan", "BatchGetItem", "GetItem", "UpdateItem", "Query"] {
        db.tables().fail_before(operation, 3, "ProvisionedThroughputExceededException");
    }
    let found = walked(&db, &scope, Some(ScanSegment { number: 0, of: 1 }), None, 50, 9).await;
    assert_eq!(found.len(), 30);
    assert_eq!(read(&db, &scope, 1..=30).await.len(), 30);
    let ledger = db.fenced(1).await;
    assert!(db.deferred(ledger.chunk, DeferredState::Retry).await.is_empty());
    // Permanent throttling is reported as `Busy`.
    db.tables().fail_before("BatchGetItem", 1000, "ThrottlingException");
    let key_set = KeySet::keys(vec![key(1)]);
    let error = db.data.read(&scope, &key_set, ReadLimits::new(10, usize::MAX)).await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Busy), "{error}");
}

#[tokio::test]
async fn tables_are_described_and_validated() {
    let db = Db::dynamodb().await;
    table(&db, 5).await;
    assert_eq!(db.data.tables().await.unwrap(), ["t"]);
    let problems = async |toml: &str| {
        let mut job_type = job_type(toml);
        let table = db.data.describe(&job_type.source).await.unwrap();
        validate(&mut job_type, &table).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (toml, expected) in [
        ("step.sql = \"DELETE FROM t WHERE {chunk}\"", "does not support SQL"),
        ("step.map = \"SELECT 1 FROM {source} WHERE {chunk}\"", "does not support SQL"),
        ("step.refresh = true", "step.version"),
        (
            "step.refresh = true\nstep.version = \"version\"\nsource.where = \"kind = 1\"",
            "source.where",
        ),
        (
            "step.refresh = true\nstep.version = \"version\"\nsource.key = [\"kind\"]",
            "the key of `t` is (id)",
        ),
        (
            "step.refresh = true\nstep.version = \"version\"\nsource.filters = { names = \"name\" }",
            "create a global secondary index with it",
        ),
        (
            "step.handler = \"h\"\nstep.version = \"v\"\nreduce = \"SELECT 1 n FROM parts\"\nreport = { to = \"file:x.csv\" }",
            "reduce_in",
        ),
    ] {
        let found = problems(&format!("source.table = \"t\"\n{toml}")).await;
        assert!(found.len() == 1 && found[0].contains(expected), "{toml}: {found:?}");
    }
    for toml in [
        HANDLER,
        REFRESH,
        "source.table = \"t\"\nstep.export = { to = \"file:x/\", format = \"csv\" }",
    ] {
        assert_eq!(problems(toml).await, Vec::<String>::new());
    }
    let query = job_type("source.query = \"SELECT 1\"\nsource.key = [\"a\"]\nstep.handler = \"h\"");
    let error = db.data.describe(&query.source).await.unwrap_err();
    assert!(error.to_string().contains("source.query"), "{error}");
    let missing = job_type("source.table = \"none\"\nstep.handler = \"h\"\nstep.version = \"v\"");
    let error = db.data.describe(&missing.source).await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Definition), "{error}");
    assert!(error.to_string().contains("`none`"), "{error}");
}

#[tokio::test]
async fn missing_permissions_and_servers_are_reported() {
    let moto = windlass_testkit::Moto::start();
    let tables = moto.dynamodb();
    let data = connect(&tables.url(), 4).await.unwrap();
    for operation in ["CreateTable", "ListTables"] {
        tables.fail_before(operation, 1, "AccessDeniedException");
    }
    let error = data.prepare().await.unwrap_err();
    assert!(error.to_string().contains("windlass migrate --print"), "{error}");
    let error = data.tables().await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Permission), "{error}");
    drop(moto);
    let error = data.tables().await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Connection), "{error}");
}
