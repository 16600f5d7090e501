//! Tests behind PgBouncer in transaction mode, which assigns a server connection for one transaction.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

use std::time::Duration;

use windlass_drivers::{Param, Postgres};
use windlass_testkit::{Database, PgBouncer, PostgresServer, eventually};

/// The timeout of a condition, even on machines under load.
const TIMEOUT: Duration = Duration::from_secs(60);

async fn start() -> (Database, PgBouncer, Postgres) {
    let server = PostgresServer::shared();
    let database = server.database().await;
    let pooler = PgBouncer::start(server);
    let pooled = Postgres::new(&pooler.url(&database), 10).unwrap();
    (database, pooler, pooled)
}

/// A statement that runs for a long time.
const SLOW_STATEMENT: &str = "SELECT pg_sleep(600)";

async fn runs_long(database: &Database) -> bool {
    let running = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND state = 'active' AND query LIKE 'SELECT pg_sleep%'";
    database.one::<i64>(running).await > 0
}

#[tokio::test]
async fn a_cancelled_statement_ends_and_the_pooler_survives() {
    let (database, _pooler, pooled) = start().await;
    // PgBouncer crashed by most of the requests, but not by each.
    for _ in 0..10 {
        let transaction = pooled.transaction("").await.unwrap();
        let waiting =
            tokio::spawn(async move { transaction.query(SLOW_STATEMENT, &[]).await.map(drop) });
        eventually("the statement runs", TIMEOUT, async || runs_long(&database).await).await;
        waiting.abort();
        eventually("the statement has ended", TIMEOUT, async || !runs_long(&database).await).await;
    }
    let rows = pooled.single("", "SELECT 1::bigint", &[]).await.unwrap();
    assert_eq!(rows[0].get::<_, i64>(0), 1);
}

#[tokio::test]
async fn listening_detects_whether_notifications_arrive() {
    let (database, _pooler, pooled) = start().await;
    let direct = Postgres::new(database.url(), 2).unwrap();
    let mut listener = direct.listen("news").await.unwrap().expect("there is no pooler in between");
    let notify = "SELECT pg_notify('news', $1)";
    direct.single("", notify, &[Param::from("it rains")]).await.unwrap();
    assert_eq!(listener.recv().await.unwrap(), "it rains");

    assert!(pooled.listen("news").await.unwrap().is_none());
    // No server connection was left listening.
    let mut transactions = Vec::new();
    for _ in 0..PgBouncer::POOL_SIZE {
        let transaction = pooled.transaction("").await.unwrap();
        let listens = "SELECT 'news' IN (SELECT pg_listening_channels())";
        let row = transaction.query_one(listens, &[]).await.unwrap();
        assert!(!row.get::<_, bool>(0), "the next client would receive the notification");
        transactions.push(transaction);
    }
}

const PREPARED: &str = "SELECT *, 'prepared once' AS text FROM numbers WHERE n = $1";

/// The length of the row that the statement returns.
async fn row_length(database: &Postgres) -> usize {
    let rows = database.single_prepared("", PREPARED, &[Param::from(1_i64)]).await.unwrap();
    rows[0].len()
}

/// How many times the session of the pool's only connection has the statement prepared.
async fn prepared(database: &Postgres) -> i64 {
    let count =
        "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%prepared once%'";
    database.single("", count, &[]).await.unwrap()[0].get(0)
}

#[tokio::test]
async fn statements_are_prepared_where_sessions_are_kept() {
    let (database, _pooler, pooled) = start().await;
    database.run("CREATE TABLE numbers (n bigint); INSERT INTO numbers VALUES (1)").await;
    let direct = Postgres::new(database.url(), 1).unwrap();
    assert_eq!((row_length(&direct).await, prepared(&direct).await), (2, 0), "not known yet");
    for database in [&direct, &pooled] {
        let is_direct = database.listen("news").await.unwrap().is_some();
        assert_eq!(is_direct, database.max_connections() == 1);
    }
    for _ in 0..3 {
        assert_eq!((row_length(&direct).await, prepared(&direct).await), (2, 1));
    }
    // The plan is no longer valid.
    database.run("ALTER TABLE numbers ADD COLUMN more bigint").await;
    assert_eq!(row_length(&direct).await, 3);
    assert_eq!((row_length(&direct).await, prepared(&direct).await), (3, 1));
    // The session lost its statements, as if it were another one.
    direct.single("", "DEALLOCATE ALL", &[]).await.unwrap();
    assert_eq!((row_length(&direct).await, prepared(&direct).await), (3, 0));
    for _ in 0..3 {
        assert_eq!(row_length(&pooled).await, 3);
    }
}
