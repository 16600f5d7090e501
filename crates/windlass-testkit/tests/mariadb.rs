//! The ephemeral MariaDB: it starts, keeps its data over a crash, and is gone with its handle.

use std::net::TcpStream;

use windlass_testkit::MariaServer;

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
async fn a_crash_keeps_what_was_committed_and_the_end_leaves_nothing() {
    let server = MariaServer::start();
    let database = server.database().await;
    database.run("CREATE TABLE things (id int); INSERT INTO things VALUES (1)").await;
    server.stop_immediate();
    assert!(TcpStream::connect(server.addr()).is_err());
    server.start_again();
    assert_eq!(database.rows("SELECT id, NULL FROM things").await, [[Some("1".to_owned()), None]]);
    let addr = server.addr();
    drop(server);
    assert!(TcpStream::connect(addr).is_err(), "it is gone with its handle");
}
