//! PostgreSQL crashes and restarts during a job. The processes continue by themselves.

use crate::common::{CliSandbox, Data, parse, slow_raise, text};
use serde_json::Value as Json;
use windlass_testkit::{Options, PostgresServer, Running};

const ROWS: i64 = 20_000;

async fn prepare() -> (PostgresServer, Data, CliSandbox) {
    let server = PostgresServer::start(Options { fsync: true, ..Options::default() });
    let data = Data::Postgres(server.database().await).with_accounts(ROWS).await;
    // Slow until the crashes are over.
    data.pace(2.0).await;
    let jobs = slow_raise(200) + "chunk.lease = \"1s\"\n";
    let sandbox = CliSandbox::on(&data, &jobs);
    (server, data, sandbox)
}

fn completed_chunks(job: &Json) -> i64 {
    job["chunks"]["completed"].as_i64().unwrap()
}

/// Crashes the server twice while the job runs.
async fn crash_twice(server: &PostgresServer, data: &Data, sandbox: &CliSandbox, id: &str) {
    let mut done = 0;
    for _ in 0..2 {
        let job = sandbox
            .until(id, "chunks are completed", |job| {
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

async fn is_right(data: &Data, sandbox: &CliSandbox, id: &str) {
    data.raised_once(ROWS).await;
    sandbox.prove(id).await;
}

#[tokio::test]
async fn a_worker_continues_when_the_server_is_back() {
    let (server, data, sandbox) = prepare().await;
    let id = sandbox.submit("RAISE").await;
    let worker = sandbox.spawn("worker");
    crash_twice(&server, &data, &sandbox, &id).await;
    sandbox.completed(&id).await;
    assert!(worker.is_running());
    is_right(&data, &sandbox, &id).await;
}

#[tokio::test]
async fn run_and_watch_continue_when_the_server_is_back() {
    let (server, data, sandbox) = prepare().await;
    let run = sandbox.spawn("run RAISE --json");
    let id = only_job(&sandbox, &run).await;
    let watch = sandbox.spawn(&format!("watch {id}"));
    crash_twice(&server, &data, &sandbox, &id).await;
    let job = parse(&run.wait().await.ok());
    assert_eq!(job["status"], "COMPLETED");
    watch.wait().await.ok();
    is_right(&data, &sandbox, &id).await;
}

#[tokio::test]
async fn a_worker_shuts_down_although_the_server_is_down() {
    let (server, data, sandbox) = prepare().await;
    let (id, worker) = sandbox.worked(|job| job["chunks"]["processing"].as_i64() > Some(0)).await;
    server.stop_immediate();
    worker.term();
    worker.wait().await.ok();
    server.start_again();
    data.pace(0.0).await;
    let _next = sandbox.spawn("worker");
    sandbox.completed(&id).await;
    is_right(&data, &sandbox, &id).await;
}

/// The id of the job that `run` submits.
async fn only_job(sandbox: &CliSandbox, run: &Running) -> String {
    loop {
        assert!(run.is_running(), "{}", run.stderr());
        if let Some(job) = sandbox.json("jobs").await.get(0) {
            return text(&job["id"]);
        }
    }
}
