//! The proxy cuts at the requested moment, once, and no other connection.

use std::time::Duration;

use tokio_postgres::{Client, NoTls};
use windlass_testkit::{Database, Options, PostgresServer, Proxy};

async fn setup() -> (Database, Proxy) {
    let server = PostgresServer::shared();
    let database = server.database().await;
    database.run("CREATE TABLE things (id int); CREATE TABLE ledger (epoch int)").await;
    (database, Proxy::start(server.addr()).await)
}

async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A transaction with one insert. Returns the result of its commit.
async fn insert(client: &mut Client, table: &str) -> Result<(), tokio_postgres::Error> {
    let transaction = client.transaction().await.unwrap();
    transaction.execute(&format!("INSERT INTO {table} VALUES ($1)"), &[&7]).await.unwrap();
    transaction.commit().await
}

async fn things(database: &Database) -> i64 {
    database.one("SELECT count(*) FROM things").await
}

#[tokio::test]
async fn a_commit_is_done_although_the_connection_is_cut_after_it() {
    let (database, proxy) = setup().await;
    let url = proxy.url_via(database.url());
    let mut cut = client(&url).await;
    proxy.cut_after_commit();

    assert!(insert(&mut cut, "things").await.is_err());
    assert_eq!(proxy.cuts(), 1);
    assert_eq!(things(&database).await, 1);
    assert!(cut.batch_execute("SELECT 1").await.is_err(), "the connection is closed");

    insert(&mut client(&url).await, "things").await.unwrap();
    assert_eq!((proxy.cuts(), things(&database).await), (1, 2));
}

#[tokio::test]
async fn a_commit_is_rolled_back_if_the_connection_is_cut_before_it() {
    let (database, proxy) = setup().await;
    let url = proxy.url_via(database.url());
    proxy.cut_before_commit();

    assert!(insert(&mut client(&url).await, "things").await.is_err());
    assert_eq!(proxy.cuts(), 1);
    // The lock waits until the server has detected the cut and rolled back.
    database.run("BEGIN; LOCK TABLE things; COMMIT").await;
    assert_eq!(things(&database).await, 0);
}

#[tokio::test]
async fn a_cut_for_a_text_does_not_affect_other_transactions() {
    let (database, proxy) = setup().await;
    let mut client = client(&proxy.url_via(database.url())).await;
    // Prepared long before, as in a connection pool.
    let fence = client.prepare("INSERT INTO ledger VALUES (1)").await.unwrap();
    proxy.cut_after_commit_of("INTO ledger");

    insert(&mut client, "things").await.unwrap();
    assert_eq!(proxy.cuts(), 0);

    let transaction = client.transaction().await.unwrap();
    transaction.execute(&fence, &[]).await.unwrap();
    assert!(transaction.commit().await.is_err());
    assert_eq!(proxy.cuts(), 1);
    assert_eq!(database.one::<i64>("SELECT count(*) FROM ledger").await, 1);
}

#[tokio::test]
async fn a_commit_that_fails_leaves_the_cut_armed() {
    let (database, proxy) = setup().await;
    let client = client(&proxy.url_via(database.url())).await;
    proxy.cut_after_commit();

    client.batch_execute("BEGIN").await.unwrap();
    assert!(client.batch_execute("SELECT 1 / 0").await.is_err());
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(proxy.cuts(), 0);

    assert!(client.batch_execute("BEGIN; INSERT INTO things VALUES (1); COMMIT").await.is_err());
    assert_eq!((proxy.cuts(), things(&database).await), (1, 1));
}

#[tokio::test]
async fn cut_all_closes_open_connections_and_accepts_new_ones() {
    let (database, proxy) = setup().await;
    let url = format!("{}?application_name=tested", database.url());
    let url = proxy.url_via(&url);
    let (one, other) = (client(&url).await, client(&url).await);

    proxy.cut_all().await;

    assert_eq!(proxy.cuts(), 2);
    assert!(one.batch_execute("SELECT 1").await.is_err());
    assert!(other.batch_execute("SELECT 1").await.is_err());
    client(&url).await.batch_execute("SELECT 1").await.unwrap();
}

#[tokio::test]
async fn large_messages_pass_both_ways() {
    let (database, proxy) = setup().await;
    let client = client(&proxy.url_via(database.url())).await;
    let text = "x".repeat(5_000_000);
    let row = client.query_one("SELECT $1::text", &[&text]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), text);
}

#[tokio::test]
async fn new_connections_lead_to_the_other_server_after_a_redirect() {
    let (database, proxy) = setup().await;
    let url = proxy.url_via(database.url());
    let before = client(&url).await;
    let other = PostgresServer::start(Options { fsync: false, ..Options::default() });
    proxy.redirect(other.addr());
    before.batch_execute("INSERT INTO things VALUES (1)").await.unwrap();
    let port = async |url: &str| {
        let row = client(url).await.query_one("SHOW port", &[]).await.unwrap();
        row.get::<_, String>(0)
    };
    let through = proxy.url_via(&other.url("postgres"));
    assert_eq!(port(&through).await, other.addr().port().to_string());
    assert_eq!(things(&database).await, 1, "open connections stay");
}

#[tokio::test]
async fn delayed_messages_arrive() {
    let (database, proxy) = setup().await;
    let mut delayed = client(&proxy.url_via(database.url())).await;
    proxy.delay(Duration::from_millis(50));
    insert(&mut delayed, "things").await.unwrap();
    proxy.delay(Duration::ZERO);
    insert(&mut delayed, "things").await.unwrap();
    assert_eq!((proxy.cuts(), things(&database).await), (0, 2));
}
