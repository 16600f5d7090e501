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
        let listens = "SELECT 'news' IN (SELECT pg_listening_channels())";
        let (transaction, rows) = pooled.transaction_with("", listens, &[]).await.unwrap();
        assert!(!rows[0].get::<_, bool>(0), "the next client would receive the notification");
        transactions.push(transaction);
    }
}
