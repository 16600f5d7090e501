//! PostgreSQL crashes and comes back while work is under way: the processes go on by themselves.

use crate::common::{Data, Place, parse, slow_raise, text};
use serde_json::Value as Json;
use windlass_testkit::{Options, PostgresServer, Running};

const ROWS: i64 = 20_000;

async fn prepare() -> (PostgresServer, Data, Place) {
    let server = PostgresServer::start(Options { fsync: true, ..Options::default() });
    let data = Data::Postgres(server.database().await).with_accounts(ROWS).await;
    // Slow until the crashes are over.
    data.pace(0.2).await;
    let jobs = slow_raise(200) + "chunk.lease = \"1s\"\n";
    let place = Place::on(&data, &jobs);
    (server, data, place)
}

fn completed_chunks(job: &Json) -> i64 {
    job["chunks"]["completed"].as_i64().unwrap()
}

/// Crashes the server twice, each time with work under way.
async fn crash_twice(server: &PostgresServer, data: &Data, place: &Place, id: &str) {
    let mut done = 0;
    for _ in 0..2 {
        let job = place
            .until(id, "work goes on", |job| {
                job["phase"] == "working"
                    && job["chunks"]["processing"].as_i64() > Some(0)
                    && completed_chunks(job) > done
            })
            .await;
        done = completed_chunks(&job);
        server.restart_immediate();
    }
    assert!(done < ROWS / 200, "the job was over before the crash");
    data.pace(0.0).await;
}

async fn is_right(data: &Data, place: &Place, id: &str) {
    data.raised_once(ROWS).await;
    place.prove(id).await;
}

#[tokio::test]
async fn a_worker_goes_on_when_the_server_is_back() {
    let (server, data, place) = prepare().await;
    let id = place.submit("RAISE").await;
    let worker = place.spawn("worker");
    crash_twice(&server, &data, &place, &id).await;
    place.completed(&id).await;
    assert!(worker.is_running());
    is_right(&data, &place, &id).await;
}

#[tokio::test]
async fn run_and_watch_go_on_when_the_server_is_back() {
    let (server, data, place) = prepare().await;
    let run = place.spawn("run RAISE --json");
    let id = only_job(&place, &run).await;
    let watch = place.spawn(&format!("watch {id}"));
    crash_twice(&server, &data, &place, &id).await;
    let job = parse(&run.wait().await.ok());
    assert_eq!(job["status"], "COMPLETED");
    watch.wait().await.ok();
    is_right(&data, &place, &id).await;
}

#[tokio::test]
async fn a_worker_leaves_when_asked_although_the_server_is_away() {
    let (server, data, place) = prepare().await;
    let id = place.submit("RAISE").await;
    let worker = place.spawn("worker");
    place
        .until(&id, "work is under way", |job| job["chunks"]["processing"].as_i64() > Some(0))
        .await;
    server.stop_immediate();
    worker.term();
    worker.wait().await.ok();
    server.start_again();
    data.pace(0.0).await;
    let _next = place.spawn("worker");
    place.completed(&id).await;
    is_right(&data, &place, &id).await;
}

/// The id of the job that `run` submits.
async fn only_job(place: &Place, run: &Running) -> String {
    loop {
        assert!(run.is_running(), "{}", run.stderr());
        if let Some(job) = place.json("jobs").await.get(0) {
            return text(&job["id"]);
        }
    }
}
