//! PostgreSQL crashes right after Windlass has reported success. Everything reported is still there, although the
//! server, the database and the role are configured with `synchronous_commit = off`.

use crate::common::{CliSandbox, Data, eventually, job, raise, text};
use windlass_testkit::{Options, PostgresServer};

const ROWS: i64 = 1000;

/// A server that flushes its log only when a commit waits for it, with a database of this many accounts.
pub(super) async fn unflushed(rows: i64) -> (PostgresServer, Data) {
    let settings = [
        ("synchronous_commit", "off"),
        ("wal_writer_delay", "10s"),
        ("wal_writer_flush_after", "1GB"),
        ("autovacuum", "off"),
        ("checkpoint_timeout", "1h"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let server = PostgresServer::start(Options { fsync: false, settings });
    let database = server.database().await;
    let (name, off) = (database.name(), "SET synchronous_commit = off");
    database.run(&format!("ALTER DATABASE {name} {off}; ALTER ROLE windlass {off}")).await;
    let data = Data::Postgres(database).with_accounts(rows).await;
    data.run("CREATE TABLE result (branch integer, n bigint); CHECKPOINT").await;
    (server, data)
}

async fn prepare(jobs: &str) -> (PostgresServer, Data, CliSandbox) {
    let (server, data) = unflushed(ROWS).await;
    let config = data.config(jobs).replace("\n\n[jobs", "\noutbox = true\n\n[jobs");
    let sandbox = CliSandbox::with(&config);
    sandbox.run("migrate").await.ok();
    (server, data, sandbox)
}

async fn last_job(sandbox: &CliSandbox) -> serde_json::Value {
    let id = text(&sandbox.json("jobs").await[0]["id"]);
    sandbox.job(&id).await
}

#[tokio::test]
async fn the_results_of_a_completed_job_survive_a_crash() {
    let load = "[jobs.COUNT]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                step.map = \"SELECT branch, count(*) AS n FROM {source} WHERE {chunk} GROUP BY branch\"\n\
                reduce = \"SELECT branch, sum(n)::bigint AS n FROM parts GROUP BY branch\"\n\
                load = { connection = \"app\", table = \"result\", replace = [\"branch\"] }\n";
    let (server, data, sandbox) = prepare(&(raise(100) + load)).await;
    sandbox.run("run RAISE").await.ok();
    server.restart_immediate();
    data.raised_once(ROWS).await;
    let raised = last_job(&sandbox).await;
    assert_eq!(raised["status"], "COMPLETED", "{raised:#}");
    sandbox.prove(&text(&raised["id"])).await;

    sandbox.run("run COUNT").await.ok();
    server.restart_immediate();
    let counted = last_job(&sandbox).await;
    assert_eq!((&counted["jobType"], &counted["status"]), (&"COUNT".into(), &"COMPLETED".into()));
    assert_eq!(data.number("SELECT sum(n) FROM result").await, ROWS);
}

#[tokio::test]
async fn a_failed_job_and_its_dead_letters_survive_a_crash() {
    let bad = "UPDATE accounts SET amount = amount / (id - 5) WHERE {chunk}";
    let budget = |on_exceeded: &str| {
        format!("failures = {{ budget = 0, on_exceeded = \"{on_exceeded}\" }}\n")
    };
    let jobs = job("FAILS", bad, 10) + &budget("fail") + &job("PAUSES", bad, 10) + &budget("pause");
    let (server, _data, sandbox) = prepare(&jobs).await;
    for (name, status, code) in [("FAILS", "FAILED", 1), ("PAUSES", "PAUSED", 4)] {
        let ended = sandbox.run(&format!("run {name} --concurrency 1")).await;
        assert_eq!(ended.code, Some(code), "{ended:?}");
        server.restart_immediate();
        let found = last_job(&sandbox).await;
        assert_eq!((&found["jobType"], &found["status"]), (&name.into(), &status.into()));
        let id = text(&found["id"]);
        let letters = sandbox.json(&format!("dead list --job {id}")).await;
        assert_eq!(letters.as_array().unwrap().len(), 1, "{letters:#}");
    }
}

#[tokio::test]
async fn submitted_and_relayed_jobs_survive_a_crash() {
    let (server, data, sandbox) = prepare(&raise(100)).await;
    let id = sandbox.submit("RAISE").await;
    server.restart_immediate();
    assert_eq!(sandbox.status(&id).await, "QUEUED");

    let relay = sandbox.spawn("serve --concurrency 0 --listen 127.0.0.1:0");
    data.run("SET synchronous_commit = on; SELECT windlass_enqueue('RAISE', '{}')").await;
    eventually("the request is relayed", async || {
        data.number("SELECT count(*) FROM windlass_outbox").await == 0
    })
    .await;
    server.restart_immediate();
    relay.term();
    relay.wait().await.ok();
    let jobs = sandbox.json("jobs").await;
    let waiting = data.number("SELECT count(*) FROM windlass_outbox").await;
    assert_eq!((jobs.as_array().unwrap().len(), waiting), (2, 0), "{jobs:#}");
}
