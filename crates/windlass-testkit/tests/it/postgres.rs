//! The ephemeral PostgreSQL: it starts, keeps its data over a crash, and never outlives its test.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use windlass_testkit::{Options, PostgresServer, eventually};

#[tokio::test]
async fn every_database_is_fresh() {
    let server = PostgresServer::shared();
    let (one, other) = (server.database().await, server.database().await);
    assert_ne!(one.name(), other.name());
    one.run("CREATE TABLE things (id int); INSERT INTO things VALUES (1), (2)").await;
    assert_eq!(one.one::<i64>("SELECT count(*) FROM things").await, 2);
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(other.one::<i64>(tables).await, 0);
}

#[tokio::test]
async fn the_shared_server_keeps_its_settings() {
    let database = PostgresServer::shared().database().await;
    assert_eq!(database.one::<String>("SELECT current_setting('fsync')").await, "off");
    assert_eq!(database.one::<String>("SELECT current_setting('synchronous_commit')").await, "on");
    assert_eq!(database.one::<String>("SELECT current_setting('max_connections')").await, "300");
    assert_eq!(
        database.one::<String>("SELECT current_setting('listen_addresses')").await,
        "127.0.0.1"
    );
}

#[tokio::test]
async fn a_crash_keeps_committed_data_and_breaks_connections() {
    let settings = vec![("work_mem".to_owned(), "1234kB".to_owned())];
    let server = PostgresServer::start(Options { fsync: true, settings });
    let database = server.database().await;
    database.run("CREATE TABLE things (id int); INSERT INTO things VALUES (1)").await;
    let client = database.client().await;

    server.restart_immediate();

    assert!(client.batch_execute("SELECT 1").await.is_err(), "the old connection is closed");
    assert_eq!(database.one::<i64>("SELECT count(*) FROM things").await, 1);
    assert_eq!(database.one::<String>("SELECT current_setting('work_mem')").await, "1234kB");

    server.stop();
    assert!(TcpStream::connect(server.addr()).is_err(), "a stopped server does not listen");
    server.start_again();
    assert_eq!(database.one::<i64>("SELECT count(*) FROM things").await, 1);
}

#[tokio::test]
async fn a_server_dies_with_a_process_that_was_killed() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_ephemeral-postgres"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let (_, place) = url.split_once('@').unwrap();
    let (addr, _) = place.split_once('/').unwrap();
    assert!(TcpStream::connect(addr).is_ok());

    process.kill().unwrap();
    process.wait().unwrap();

    let gone = async || TcpStream::connect(addr).is_err();
    eventually("the server has stopped", Duration::from_secs(20), gone).await;
}
