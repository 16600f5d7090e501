//! The ephemeral MariaDB: it starts, keeps its data over a crash, and ends with its handle. The proxy fails the requested
//! share of reads.

use std::net::TcpStream;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts};
use windlass_testkit::{MariaServer, Proxy};

#[tokio::test]
async fn every_database_is_fresh() {
    let server = MariaServer::shared();
    let (one, other) = (server.database().await, server.database().await);
    assert_ne!(one.name(), other.name());
    one.run("CREATE TABLE things (id int); INSERT INTO things VALUES (1), (2)").await;
    assert_eq!(one.one::<i64>("SELECT count(*) FROM things").await, 2);
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = database()";
    assert_eq!(other.one::<i64>(tables).await, 0);
}

#[tokio::test]
async fn a_crash_keeps_committed_data_and_dropping_the_server_removes_everything() {
    let server = MariaServer::start();
    let database = server.database().await;
    database.run("CREATE TABLE things (id int); INSERT INTO things VALUES (1)").await;
    server.stop_immediate();
    assert!(TcpStream::connect(server.addr()).is_err());
    server.start_again();
    assert_eq!(database.rows("SELECT id, NULL FROM things").await, [[Some("1".to_owned()), None]]);
    let addr = server.addr();
    drop(server);
    assert!(TcpStream::connect(addr).is_err(), "it ends with its handle");
}

#[tokio::test]
async fn a_replica_receives_the_writes_of_its_primary_also_after_a_crash() {
    let primary = MariaServer::start_primary();
    let app = primary.database().await;
    app.run("CREATE TABLE things (id int); INSERT INTO things VALUES (1)").await;
    let replica = primary.replica();
    primary.reach(&replica).await;
    let copy = replica.existing(app.name());
    assert_eq!(copy.one::<i64>("SELECT count(*) FROM things").await, 1);
    replica.stop_immediate();
    app.run("INSERT INTO things VALUES (2)").await;
    replica.start_again();
    primary.reach(&replica).await;
    assert_eq!(copy.one::<i64>("SELECT count(*) FROM things").await, 2);
}

/// One read through the proxy. The error tells whether the server reported it.
async fn read(url: &str, sql: &str) -> Result<usize, bool> {
    let mut conn = Conn::new(Opts::from_url(url).unwrap()).await.unwrap();
    let rows: Result<Vec<i64>, _> = conn.query(sql).await;
    rows.map(|rows| rows.len()).map_err(|error| match error {
        mysql_async::Error::Server(error) => {
            assert_eq!(error.code, 1205);
            true
        }
        _ => false,
    })
}

const HUNDRED: &str = "WITH RECURSIVE hundred (n) AS \
                       (SELECT 1 UNION ALL SELECT n + 1 FROM hundred WHERE n < 100) \
                       SELECT n FROM hundred";

#[tokio::test]
async fn the_requested_share_of_reads_fails_and_no_others() {
    let server = MariaServer::shared();
    let proxy = Proxy::start_mysql(server.addr()).await;
    let url = server.url("mysql");
    // Over TCP: the server would announce its socket.
    let url = url.replace(&server.addr().to_string(), &proxy.addr().to_string());
    let url = format!("{url}?prefer_socket=false");
    proxy.fail_reads("hundred", 50);
    let (mut refused, mut cut) = (0, 0);
    for _ in 0..60 {
        match read(&url, HUNDRED).await {
            Ok(rows) => assert_eq!(rows, 100, "whole, or not at all"),
            Err(true) => refused += 1,
            Err(false) => cut += 1,
        }
        assert_eq!(read(&url, "SELECT 7").await, Ok(1), "another statement");
    }
    assert!(refused > 3 && cut > refused, "{refused} refused, {cut} cut");
    assert_eq!(proxy.reads(), (60, refused + cut));
    proxy.fail_reads("hundred", 0);
    assert_eq!(read(&url, HUNDRED).await, Ok(100));
}
