//! Tests of statements that are sent together with a BEGIN that fails. The server runs them all the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

use windlass_drivers::{ErrorClass, IN_TRANSACTION, Postgres};
use windlass_testkit::{Database, PostgresServer};

/// Settings that the server cannot parse, so that it does not begin either. A cancelled BEGIN has the same effect.
const UNPARSABLE: &str = "no SQL";

async fn start() -> (Database, Postgres) {
    let database = PostgresServer::shared().database().await;
    database.run("CREATE TABLE counter (n bigint); INSERT INTO counter VALUES (0)").await;
    let client = Postgres::new(database.url(), 1).unwrap();
    (database, client)
}

async fn counter(database: &Database) -> i64 {
    database.one("SELECT n FROM counter").await
}

fn increase() -> String {
    format!("UPDATE counter SET n = n + 1 WHERE {IN_TRANSACTION} RETURNING n")
}

#[tokio::test]
async fn the_first_statement_changes_nothing_without_its_transaction() {
    let (database, client) = start().await;
    let (transaction, rows) = client.transaction_with("", &increase(), &[]).await.unwrap();
    assert_eq!(rows.len(), 1);
    transaction.commit().await.unwrap();
    assert_eq!(counter(&database).await, 1);

    // The same connection: the setting ended with the transaction before.
    assert!(client.transaction_with(UNPARSABLE, &increase(), &[]).await.is_err());
    assert_eq!(counter(&database).await, 1, "committed alone");
}

#[tokio::test]
async fn a_single_statement_that_ran_without_its_transaction_has_an_unknown_outcome() {
    let (database, client) = start().await;
    let sql = "UPDATE counter SET n = n + 1";
    let error = client.single(UNPARSABLE, sql, &[]).await.unwrap_err();
    assert_eq!((counter(&database).await, error.class), (1, ErrorClass::Connection), "{error}");

    let error = client.single(UNPARSABLE, &increase(), &[]).await.unwrap_err();
    assert_eq!((counter(&database).await, error.class), (1, ErrorClass::Connection), "{error}");

    let error = client.single(UNPARSABLE, "SELECT missing", &[]).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Definition, "nothing was committed: {error}");
    assert_eq!(client.single("", &increase(), &[]).await.unwrap().len(), 1);
}
