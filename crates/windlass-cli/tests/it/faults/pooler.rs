//! Store and records behind PgBouncer in transaction mode.

use crate::common::{CliSandbox, Data, config, eventually, parse, raise, slow_raise, text};
use tokio_postgres::NoTls;
use windlass_testkit::{PgBouncer, PostgresServer, Running};

const ROWS: i64 = 20_000;

/// The records, which the test reaches directly, and a sandbox that reaches them through a pooler.
async fn behind_pooler(jobs: &str) -> (PgBouncer, Data, CliSandbox) {
    let server = PostgresServer::shared();
    let database = server.database().await;
    let pooler = PgBouncer::start(server);
    let url = pooler.url(&database);
    let data = Data::Postgres(database).with_accounts(ROWS).await;
    (pooler, data, CliSandbox::with(&config(&url, &url, jobs)))
}

/// Kills a worker that has leased chunks of the only job. Returns the job's id.
async fn kill_at_work(sandbox: &CliSandbox, worker: &Running) -> String {
    let mut id = String::new();
    eventually("the worker holds chunks", async || {
        let Some(job) = sandbox.json("jobs").await.get(0).cloned() else { return false };
        id = text(&job["id"]);
        job["phase"] == "working" && !sandbox.held_by(&id, worker.id()).await.is_empty()
    })
    .await;
    worker.kill9();
    assert!(!sandbox.held_by(&id, worker.id()).await.is_empty(), "the worker had just finished");
    id
}

#[tokio::test]
async fn run_and_two_workers_complete_a_job_although_one_is_killed() {
    // Several commits per chunk, so that the kill happens between two of them.
    let jobs = slow_raise(500) + "chunk.commit = 10\nchunk.lease = \"2s\"\n";
    let (_pooler, data, sandbox) = behind_pooler(&jobs).await;
    data.pace(0.1).await;
    let workers = [sandbox.spawn("worker"), sandbox.spawn("worker")];
    let run = sandbox.spawn("run RAISE --json");
    let id = kill_at_work(&sandbox, &workers[0]).await;
    data.pace(0.0).await;

    let job = parse(&run.wait().await.ok());
    assert_eq!((&job["id"], &job["status"]), (&id.as_str().into(), &"COMPLETED".into()));
    assert_eq!(job["items"]["processed"], ROWS, "{job:#}");
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_program_processes_every_record_once_although_its_worker_is_killed() {
    let jobs = "[jobs.RAISE]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                step.command = [\"python3\", \"raise.py\", \"2\"]\nstep.version = \"version\"\n\
                chunk.items = 500\nchunk.commit = 100\nchunk.lease = \"2s\"\n";
    let (_pooler, data, sandbox) = behind_pooler(jobs).await;
    sandbox.write("handler.py", include_str!("../steps/children/handler.py"));
    sandbox.write("raise.py", include_str!("../steps/children/raise.py"));
    let id = sandbox.submit("RAISE").await;
    let workers = [sandbox.spawn("worker"), sandbox.spawn("worker")];
    assert_eq!(kill_at_work(&sandbox, &workers[0]).await, id);
    sandbox.write("hurry", "");

    let job = sandbox.completed(&id).await;
    assert_eq!(job["items"]["processed"], ROWS, "{job:#}");
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn idle_workers_find_submitted_jobs_without_notifications() {
    // The workers poll: notifications do not pass through the pooler.
    let (_pooler, data, sandbox) = behind_pooler(&raise(1000)).await;
    let _workers = [sandbox.spawn("worker"), sandbox.spawn("worker")];
    for round in 1..=3 {
        let id = sandbox.submit("RAISE").await;
        sandbox.completed(&id).await;
        sandbox.prove(&id).await;
        let raised =
            format!("SELECT count(*) FROM accounts WHERE amount = id * 7 % 1000 + {round}");
        assert_eq!(data.number(&raised).await, ROWS, "in round {round}");
    }
}

/// A pooler lets its clients wait for a connection. A command says so.
#[tokio::test]
async fn a_command_says_that_it_waits_for_a_connection_of_the_pooler() {
    let server = PostgresServer::shared();
    let database = server.database().await;
    let pooler = PgBouncer::start(server);
    let url = pooler.url(&database);
    let sandbox = CliSandbox::with(&config(&url, &url, &raise(10)));
    sandbox.run("jobs").await.ok();
    let mut transactions = Vec::new();
    for _ in 0..PgBouncer::POOL_SIZE {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("BEGIN").await.unwrap();
        transactions.push(client);
    }
    let waiting = sandbox.spawn("jobs");
    eventually("the command says what it waits for", async || {
        waiting.stderr().contains("has no free connection (PgBouncer: default_pool_size)")
    })
    .await;
    for client in &transactions {
        client.batch_execute("COMMIT").await.unwrap();
    }
    waiting.wait().await.ok();
}
