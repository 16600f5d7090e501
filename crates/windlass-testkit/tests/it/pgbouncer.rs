//! The ephemeral PgBouncer: clients share server connections from transaction to transaction.

use std::net::TcpStream;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_postgres::NoTls;
use windlass_testkit::{PgBouncer, PostgresServer};

#[tokio::test]
async fn many_clients_share_a_few_connections() {
    let server = PostgresServer::shared();
    let database = server.database().await;
    let pooler = PgBouncer::start(server);
    let url = pooler.url(&database);
    let (mut clients, mut answers) = (Vec::new(), JoinSet::new());
    for _ in 0..PgBouncer::POOL_SIZE * 10 {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        clients.push(Arc::new(client));
    }
    for client in &clients {
        let client = client.clone();
        answers.spawn(async move { client.batch_execute("SELECT pg_sleep(0.01)").await });
    }
    for answer in answers.join_all().await {
        answer.unwrap();
    }
    let connections = "SELECT count(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND pid <> pg_backend_pid()";
    assert_eq!(database.one::<i64>(connections).await, PgBouncer::POOL_SIZE as i64);

    pooler.restart();
    assert!(clients[0].batch_execute("SELECT 1").await.is_err(), "open connections are closed");
    let again = tokio_postgres::connect(&url, NoTls).await;
    assert!(again.is_ok(), "it is back at the same address");

    let addr = pooler.addr();
    drop(pooler);
    assert!(TcpStream::connect(addr).is_err(), "it ends with its handle");
}
