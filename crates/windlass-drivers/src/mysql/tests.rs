//! Tests transactions on a real server.

use std::time::Duration;

use windlass_testkit::{MariaDatabase, MariaServer, eventually};

use super::{Access, Mysql, Value};
use crate::ErrorClass;

async fn table() -> (MariaDatabase, Mysql) {
    let database = MariaServer::shared().database().await;
    database.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0)").await;
    let db = Mysql::new(database.url(), 2).unwrap();
    (database, db)
}

#[tokio::test]
async fn matched_rows_are_counted_and_a_rollback_undoes_them() {
    let (database, db) = table().await;
    let mut transaction = db.begin(Access::Write, "").await.unwrap();
    let set = "UPDATE t SET v = ? WHERE id = ?";
    assert_eq!(transaction.execute(set, vec![5.into(), 1.into()]).await.unwrap(), 1);
    // The same update again changes nothing but still matches the rows.
    assert_eq!(transaction.execute(set, vec![5.into(), 1.into()]).await.unwrap(), 1);
    transaction.rollback().await.unwrap();
    assert_eq!(database.one::<i64>("SELECT v FROM t").await, 0);
}

#[tokio::test]
async fn every_session_is_strict_and_in_utc() {
    let (_, db) = table().await;
    let mut transaction = db.begin(Access::Write, "innodb_lock_wait_timeout = 7").await.unwrap();
    // MySQL knows only the second name of the isolation level, MariaDB before 11.1 only the first.
    let isolation =
        if MariaServer::uses_mysql() { "transaction_isolation" } else { "tx_isolation" };
    let sql = format!("SELECT @@time_zone, @@{isolation}, @@innodb_lock_wait_timeout");
    let rows = transaction.query(&sql, Vec::new()).await.unwrap();
    let row: (String, String, i64) = mysql_async::from_row(rows.into_iter().next().unwrap());
    assert_eq!(row, ("+00:00".to_owned(), "READ-COMMITTED".to_owned(), 7));
    let error = transaction.execute("UPDATE t SET v = 'x'", Vec::new()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Data, "{error}");
    let error = transaction.commit().await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Other, "{error}");
}

#[tokio::test]
async fn an_implicit_commit_is_an_error() {
    let (_, db) = table().await;
    let mut transaction = db.begin(Access::Write, "").await.unwrap();
    transaction.execute("UPDATE t SET v = 1", Vec::new()).await.unwrap();
    let error = transaction.execute("CREATE TABLE u (id int)", Vec::new()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Definition, "{error}");
}

#[tokio::test]
async fn a_read_transaction_has_one_snapshot_and_cannot_write() {
    let (database, db) = table().await;
    let mut transaction = db.begin(Access::Read, "").await.unwrap();
    let count = "SELECT count(*) FROM t";
    let number =
        |rows: Vec<super::Row>| mysql_async::from_row::<i64>(rows.into_iter().next().unwrap());
    assert_eq!(number(transaction.query(count, Vec::new()).await.unwrap()), 1);
    database.run("INSERT INTO t VALUES (2, 0)").await;
    assert_eq!(number(transaction.query(count, Vec::new()).await.unwrap()), 1);
    let error = transaction.execute("DELETE FROM t", Vec::new()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::ReadOnly, "{error}");
    transaction.rollback().await.unwrap();
}

#[tokio::test]
async fn a_dropped_transaction_kills_its_statement_and_closes_its_connection() {
    let (database, db) = table().await;
    let running = "SELECT count(*) FROM information_schema.processlist \
                   WHERE db = database() AND info LIKE 'UPDATE%SLEEP%'";
    let sleeping = tokio::spawn(async move {
        let mut transaction = db.begin(Access::Write, "").await.unwrap();
        transaction.execute("UPDATE t SET v = SLEEP(300)", Vec::new()).await
    });
    let limit = Duration::from_secs(30);
    eventually("it runs", limit, async || database.one::<i64>(running).await == 1).await;
    sleeping.abort();
    eventually("it is gone", limit, async || database.one::<i64>(running).await == 0).await;
}

#[tokio::test]
async fn a_dead_pooled_connection_is_replaced() {
    let (database, db) = table().await;
    let id = async || {
        let mut transaction = db.begin(Access::Write, "").await.unwrap();
        let rows = transaction.query("SELECT connection_id()", Vec::new()).await.unwrap();
        transaction.commit().await.unwrap();
        mysql_async::from_row::<u64>(rows.into_iter().next().unwrap())
    };
    let first = id().await;
    assert_eq!(id().await, first, "a connection is used again");
    database.run(&format!("KILL {first}")).await;
    assert_ne!(id().await, first);
}

#[tokio::test]
async fn the_pool_is_bounded() {
    let (database, db) = table().await;
    let work = (0..20).map(async |n| {
        let mut transaction = db.begin(Access::Write, "").await.unwrap();
        let rows = transaction.query("SELECT ?", vec![Value::from(n)]).await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(mysql_async::from_row::<i64>(rows.into_iter().next().unwrap()), n);
    });
    futures::future::join_all(work).await;
    let connections = "SELECT count(*) FROM information_schema.processlist \
                       WHERE db = database() AND id <> connection_id()";
    assert_eq!(database.one::<i64>(connections).await, 2);
}

#[tokio::test]
async fn a_refused_login_does_not_reveal_the_password() {
    let (database, _) = table().await;
    let url = database.url().replace("wind%40lass", "secret");
    let error = Mysql::new(&url, 1).unwrap().begin(Access::Write, "").await.err().unwrap();
    assert_eq!(error.class, ErrorClass::Permission, "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    let nobody = Mysql::new("mysql://u:secret@127.0.0.1:1/d", 1).unwrap();
    let error = nobody.begin(Access::Write, "").await.err().unwrap();
    assert_eq!(error.class, ErrorClass::Connection, "{error}");
    let url = format!("{}?sslmode=require", database.url());
    let error = Mysql::new(&url, 1).unwrap().begin(Access::Write, "").await.err().unwrap();
    assert!(error.message.contains("SSL"), "{error}");
}
