//! MariaDB: a second server that holds the same rows, and says that it copies none.

use crate::world::{builder, run, serving};
use tempfile::TempDir;
use windlass_data::FIRST;
use windlass_testkit::MariaServer;

const MAP: &str = "source.table = \"visits\"\n\
                   step.map = \"SELECT @@port AS port, count(*) AS n FROM {source} \
                   WHERE {chunk} GROUP BY 1\"\n\
                   reduce = \"SELECT port, sum(n) AS n FROM parts GROUP BY port\"\n\
                   chunk.items = 10";

#[tokio::test]
async fn a_second_server_serves_until_it_is_stopped_and_after() {
    let (one, other) = (MariaServer::start(), MariaServer::start());
    let (app, copy) = (one.database().await, other.database().await);
    assert_eq!(app.name(), copy.name());
    for database in [&app, &copy] {
        database.run("CREATE TABLE visits (id bigint NOT NULL PRIMARY KEY)").await;
        database.run("INSERT INTO visits SELECT seq FROM seq_1_to_100").await;
    }
    let folder = TempDir::new().unwrap();
    let urls = [copy.url().to_owned()];
    let engine = builder(&folder, app.url(), &urls, "10s", MAP).connect().await.unwrap();
    let rows = |port: u16| format!("{{\"n\":\"100\",\"port\":{port}}}");
    let read = async |server: &MariaServer| {
        let job = run(&engine).await;
        let output = engine.output(job.id, &FIRST, 10).await.unwrap();
        let output: Vec<_> = output.into_iter().map(|row| row.fields).collect();
        assert_eq!(output, [rows(server.addr().port())]);
    };
    read(&other).await;
    other.stop_immediate();
    read(&one).await;
    serving(&engine, 0).await;
    other.start_again();
    serving(&engine, 1).await;
    read(&other).await;
}

/// Nobody knows how old its rows are, so it does not serve, and what would change that is said.
#[tokio::test]
async fn a_replica_that_may_not_be_asked_is_left_out() {
    let app = MariaServer::shared().database().await;
    app.run("CREATE TABLE visits (id bigint NOT NULL PRIMARY KEY)").await;
    app.run("INSERT INTO visits SELECT seq FROM seq_1_to_100").await;
    app.run("CREATE USER reader@'%' IDENTIFIED BY 'reads'").await;
    app.run(&format!("GRANT SELECT ON {}.* TO reader@'%'", app.name())).await;
    let (_, address) = app.url().split_once('@').unwrap();
    let urls = [format!("mysql://reader:reads@{address}")];
    let folder = TempDir::new().unwrap();
    let engine = builder(&folder, app.url(), &urls, "10s", MAP).connect().await.unwrap();
    run(&engine).await;
    let replicas = engine.replicas("app").unwrap();
    assert_eq!(replicas.serving(), 0);
    let (name, lag) = replicas.lags().await.remove(0);
    let error = lag.unwrap_err().to_string();
    assert!(error.contains("GRANT SLAVE MONITOR"), "{error}");
    assert!(!name.contains("reads"), "{name}");
}
