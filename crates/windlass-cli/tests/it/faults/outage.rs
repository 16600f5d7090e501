//! The data server is down and the store is not. The worker probes it, logs the outage once, and every listing shows
//! since when.

use crate::common::{CliSandbox, Data, config, eventually, raise};
use windlass_testkit::{Options, PostgresServer, Proxy};

const ROWS: i64 = 5_000;

#[tokio::test]
async fn an_outage_of_the_data_server_is_logged_once_and_listed() {
    let server = PostgresServer::start(Options { fsync: false, ..Options::default() });
    let data = Data::Postgres(server.database().await).with_accounts(ROWS).await;
    let proxy = Proxy::start(server.addr()).await;
    let url = proxy.url_via(&data.url());
    let sandbox = CliSandbox::with(&config("sqlite:windlass.db", &url, &raise(10)));
    let id = sandbox.submit("RAISE").await;
    server.stop_immediate();
    let worker = sandbox.spawn("worker --concurrency 4");
    let says = |job: &serde_json::Value| {
        let why = job["error"].as_str().unwrap_or_default();
        why.starts_with("database `app` unavailable since 20")
    };
    sandbox.until(&id, "the job shows what it waits for", says).await;
    for listing in ["jobs", &format!("job {id}"), "throughput", "jobs --json", "throughput --json"]
    {
        let listed = sandbox.run(listing).await.ok().stdout;
        assert!(listed.contains("unavailable since 20"), "{listing}: {listed}");
    }
    let since = async || sandbox.job(&id).await["error"].as_str().map(|why| why[..52].to_owned());
    let (first, before) = (since().await, proxy.accepted());
    eventually("several probes have failed", async || proxy.accepted() >= before + 3).await;
    assert_eq!(since().await, first, "the start of the outage does not change");
    let log = worker.stderr();
    assert_eq!(log.matches("unavailable since").count(), 1, "every probe is logged: {log}");
    assert!(log.lines().count() < 10, "{log}");

    server.start_again();
    sandbox.completed(&id).await;
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
    let log = worker.stderr();
    assert_eq!(log.matches("available again after").count(), 1, "{log}");
    let listed = sandbox.run("throughput").await.ok().stdout;
    assert!(!listed.contains("unavailable"), "{listed}");
}
