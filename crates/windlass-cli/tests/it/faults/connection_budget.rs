//! `max_connections_total`: processes wait for their share, and the share of a killed process comes back.

use crate::common::{CliSandbox, Data, config, eventually, raise, slow_raise};
use windlass_testkit::{PostgresServer, Running};

const ROWS: i64 = 10_000;
const TOTAL: i64 = 8;
const WAITS: &str = "waiting for connections to `app`: this process needs 4, and 8 of \
                     max_connections_total = 8 are taken by 2 other processes";

/// A sandbox in which each process takes half of the total.
fn sandbox(store: &str, data: &Data, jobs: &str) -> CliSandbox {
    let text = config(store, &data.url(), jobs);
    let limits = format!("max_connections = 4\nmax_connections_total = {TOTAL}\n");
    CliSandbox::with(&text.replace("[connections.app]\n", &format!("[connections.app]\n{limits}")))
}

fn waits(worker: &Running) -> bool {
    worker.stderr().contains(WAITS)
}

async fn a_killed_process_frees_its_share(store: &str) {
    let data = Data::postgres().await.with_accounts(ROWS).await;
    let jobs = slow_raise(20) + "chunk.lease = \"2s\"\n";
    let sandbox = sandbox(store, &data, &jobs);
    // Slow, so that there is work left when the share of the killed worker has expired.
    data.pace(2.0).await;
    let id = sandbox.submit("RAISE").await;
    let open = "SELECT count(*) FROM pg_stat_activity \
                WHERE datname = current_database() AND application_name = 'windlass'";
    let within_the_total = async || assert!(data.number(open).await <= TOTAL);
    let mut workers: Vec<Running> =
        (0..3).map(|_| sandbox.spawn("worker --concurrency 8")).collect();
    eventually("two workers work, and one waits", async || {
        within_the_total().await;
        workers.iter().filter(|worker| waits(worker)).count() == 1
            && sandbox.job(&id).await["chunks"]["completed"].as_i64() > Some(0)
    })
    .await;
    let place = workers.iter().position(waits).unwrap();
    let waiting = workers.remove(place);
    assert!(sandbox.held_by(&id, waiting.id()).await.is_empty(), "it leases nothing meanwhile");
    workers.remove(0).kill9();
    eventually("the share of the killed worker is free", async || {
        within_the_total().await;
        !sandbox.held_by(&id, waiting.id()).await.is_empty()
    })
    .await;
    data.pace(0.0).await;
    sandbox.completed(&id).await;
    data.raised_once(ROWS).await;
    // A process that ends gives its share back at once.
    for worker in workers.into_iter().chain([waiting]) {
        worker.term();
        worker.wait().await.ok();
    }
    sandbox.run("check").await.ok();
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_killed_process_frees_its_share_of_a_total_in_postgres() {
    let store = PostgresServer::shared().database().await;
    a_killed_process_frees_its_share(store.url()).await;
}

#[tokio::test]
async fn a_killed_process_frees_its_share_of_a_total_in_sqlite() {
    a_killed_process_frees_its_share("sqlite:windlass.db").await;
}

#[tokio::test]
async fn mariadb_is_not_contacted_without_a_share() {
    let store = PostgresServer::shared().database().await;
    let data = Data::mariadb().await.with_accounts(ROWS).await;
    let sandbox = sandbox(store.url(), &data, &raise(1000));
    sandbox.run("jobs").await.ok();
    store
        .run(
            "INSERT INTO windlass_connection_shares \
             SELECT 'app', process, 4, clock_timestamp() + interval '1 hour' \
             FROM unnest(ARRAY['one', 'two']) process",
        )
        .await;
    let run = sandbox.spawn("run RAISE");
    eventually("the command waits", async || waits(&run)).await;
    let open = "SELECT count(*) FROM information_schema.processlist \
                WHERE db = database() AND id <> connection_id()";
    assert_eq!(data.number(open).await, 0);
    store.run("DELETE FROM windlass_connection_shares WHERE process = 'two'").await;
    run.wait().await.ok();
    data.raised_once(ROWS).await;
    let left = "SELECT count(*) FROM windlass_connection_shares WHERE process <> 'one'";
    assert_eq!(store.one::<i64>(left).await, 0);
}
