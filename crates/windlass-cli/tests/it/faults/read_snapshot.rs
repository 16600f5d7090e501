//! A report of one instant, although rows change while it is read and processes are killed.

use crate::common::{CliSandbox, Data, config, eventually};
use serde_json::Value as Json;
use tokio_postgres::NoTls;
use windlass_testkit::{PgBouncer, PostgresServer, Running};

const ROWS: i64 = 20_000;
/// Chunks that read rows from this one on wait while the test holds the lock of `gate`.
const GATED: i64 = 10_000;

/// Adds up the accounts in ten chunks.
fn totals(more: &str) -> String {
    format!(
        "[jobs.TOTALS]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
         step.map = \"SELECT count(*) AS n, sum(amount) AS total, sum(gate(id)) AS gates FROM {{source}} \
         WHERE {{chunk}}\"\n\
         reduce = \"SELECT sum(n) AS n, sum(total) AS total FROM parts\"\n\
         chunk.items = 2000\nchunk.lease = \"1m\"\n{more}\n"
    )
}

/// The same in more chunks than one process leases ahead.
fn many_totals() -> String {
    totals("").replace("items = 2000", "items = 200")
}

/// The accounts, and a session whose lock keeps chunks from being read.
struct Accounts {
    data: Data,
    gate: tokio_postgres::Client,
}

impl Accounts {
    async fn new(data: Data) -> Accounts {
        let data = data.with_accounts(ROWS).await;
        data.run(&format!(
            "CREATE FUNCTION gate(id bigint) RETURNS int LANGUAGE plpgsql PARALLEL UNSAFE AS $$ BEGIN \
             IF id >= {GATED} THEN PERFORM pg_advisory_lock_shared(7); PERFORM pg_advisory_unlock_shared(7); \
             END IF; RETURN 1; END $$; ALTER TABLE accounts SET (autovacuum_enabled = false); ANALYZE accounts"
        ))
        .await;
        let Data::Postgres(database) = &data else { panic!("the lock is PostgreSQL's") };
        let gate = database.client().await;
        gate.batch_execute("SELECT pg_advisory_lock(7)").await.unwrap();
        Accounts { data, gate }
    }

    /// Lets all chunks be read.
    async fn open(&self) {
        self.gate.batch_execute("SELECT pg_advisory_unlock(7)").await.unwrap();
    }

    /// Waits until a chunk waits for the lock.
    async fn chunk_waits(&self) {
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = \
                     (SELECT oid FROM pg_database WHERE datname = current_database())";
        eventually("a chunk waits", async || self.data.number(waits).await > 0).await;
    }

    async fn total(&self) -> i64 {
        self.data.number("SELECT sum(amount) FROM accounts").await
    }

    /// Moves an amount from the first account, which was read, to the last one, which was not.
    async fn transfer(&self) {
        let sql = format!(
            "UPDATE accounts SET amount = amount + CASE id WHEN 1 THEN -500 ELSE 500 END WHERE id IN (1, {ROWS})"
        );
        self.data.run(&sql).await;
    }

    /// Which worker holds the snapshot.
    async fn holder(&self) -> String {
        let Data::Postgres(database) = &self.data else { unreachable!() };
        let row = "SELECT worker FROM windlass_read_snapshots WHERE lease_until IS NOT NULL";
        database.client().await.query_one(row, &[]).await.unwrap().get(0)
    }
}

async fn reported(sandbox: &CliSandbox, id: &str) -> (i64, i64) {
    let output: Json = sandbox.json(&format!("output {id}")).await;
    let row = output.get(0).unwrap_or(&output).clone();
    let row = if row["fields"].is_object() { row["fields"].clone() } else { row };
    let number = |name: &str| row[name].as_str().map(|n| n.parse().unwrap()).or(row[name].as_i64());
    (number("n").unwrap(), number("total").unwrap())
}

/// Waits until all chunks that are not gated are read.
async fn half_read(sandbox: &CliSandbox, id: &str) -> i64 {
    let is_half = |job: &Json| job["chunks"]["completed"].as_i64() >= Some(4);
    let job = sandbox.until(id, "half is read", is_half).await;
    job["chunks"]["completed"].as_i64().unwrap()
}

fn holds(worker: &Running, holder: &str) -> bool {
    holder.ends_with(&format!(":{}", worker.id()))
}

#[tokio::test]
async fn a_report_shows_one_instant_although_rows_change_meanwhile() {
    for (consistency, sees_transfer) in [("snapshot", false), ("chunk", true)] {
        let accounts = Accounts::new(Data::postgres().await).await;
        let sandbox = CliSandbox::on(
            &accounts.data,
            &totals(&format!("source.consistency = \"{consistency}\"")),
        );
        let before = accounts.total().await;
        let id = sandbox.submit("TOTALS").await;
        let _worker = sandbox.spawn("worker --concurrency 4");
        half_read(&sandbox, &id).await;
        accounts.transfer().await;
        assert_eq!(accounts.total().await, before, "it moves an amount");
        accounts.data.run(&format!("INSERT INTO accounts VALUES ({ROWS} + 1, 0, 77, '', 1)")).await;
        accounts.open().await;
        sandbox.completed(&id).await;
        // A chunk that is read at its own instant has the amount twice: before and after the transfer.
        let more = if sees_transfer { 500 } else { 0 };
        assert_eq!(reported(&sandbox, &id).await, (ROWS, before + more), "{consistency}");
        if !sees_transfer {
            sandbox.prove(&id).await;
        }
    }
}

#[tokio::test]
async fn everything_is_read_again_when_the_only_process_is_killed() {
    let accounts = Accounts::new(Data::postgres().await).await;
    let sandbox = CliSandbox::on(&accounts.data, &totals(""));
    let id = sandbox.submit("TOTALS").await;
    let first = sandbox.spawn("worker --concurrency 4");
    half_read(&sandbox, &id).await;
    first.kill9();
    accounts.data.run("UPDATE accounts SET amount = amount + 1").await;
    accounts.open().await;
    let _second = sandbox.spawn("worker");
    let job = sandbox.completed(&id).await;
    assert_eq!(job["items"]["total"], ROWS);
    assert_eq!(reported(&sandbox, &id).await, (ROWS, accounts.total().await));
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_job_that_was_read_for_long_fails_when_its_holder_is_killed() {
    let accounts = Accounts::new(Data::postgres().await).await;
    let sandbox = CliSandbox::on(&accounts.data, &totals(""));
    let id = sandbox.submit("TOTALS").await;
    let first = sandbox.spawn("worker --concurrency 4");
    half_read(&sandbox, &id).await;
    accounts
        .data
        .run(&format!(
            "UPDATE windlass_read_snapshots SET taken_at = taken_at - interval '1 hour'; \
             UPDATE accounts SET branch = 0 WHERE id < {GATED}"
        ))
        .await;
    // As if more than half were read.
    let more = "UPDATE windlass_chunks SET status = 'COMPLETED', lease_until = NULL WHERE number IN (5, 6)";
    first.kill9();
    accounts.data.run(more).await;
    let second = sandbox.spawn("worker");
    let job = sandbox.until(&id, "FAILED", |job| job["status"] == "FAILED").await;
    let error = job["error"].as_str().unwrap();
    assert!(error.contains("the read snapshot of the job is lost"), "{error}");
    assert!(error.contains("source.consistency"), "{error}");
    accounts.open().await;
    sandbox.run(&format!("retry {id}")).await.ok();
    sandbox.completed(&id).await;
    assert_eq!(reported(&sandbox, &id).await, (ROWS, accounts.total().await));
    sandbox.prove(&id).await;
    drop(second);
}

/// Two processes read under the snapshot of one of them. The death of the other one loses only its chunks.
async fn two_processes(data: Data, sandbox: impl FnOnce(&Data) -> CliSandbox) {
    let accounts = Accounts::new(data).await;
    let sandbox = sandbox(&accounts.data);
    let before = accounts.total().await;
    let id = sandbox.submit("TOTALS").await;
    // One connection of the pooler for each chunk at the gate, one for the snapshot, the others for the store.
    let workers =
        [sandbox.spawn("worker --concurrency 1"), sandbox.spawn("worker --concurrency 1")];
    half_read(&sandbox, &id).await;
    let holder = accounts.holder().await;
    let other = workers.iter().find(|worker| !holds(worker, &holder)).unwrap();
    eventually("the other process reads", async || {
        !sandbox.held_by(&id, other.id()).await.is_empty()
    })
    .await;
    other.kill9();
    accounts.transfer().await;
    accounts.open().await;
    sandbox.completed(&id).await;
    assert_eq!(reported(&sandbox, &id).await, (ROWS, before));
    let chunks = sandbox.chunks(&id).await;
    assert!(chunks.iter().all(|chunk| chunk["keySet"]["snapshot"] == 1), "{chunks:?}");
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn two_processes_read_under_one_snapshot() {
    two_processes(Data::postgres().await, |data| CliSandbox::on(data, &many_totals())).await;
}

/// A pooler, the records, and the URL by which the pooler serves them.
async fn behind_pooler() -> (PgBouncer, Data, String) {
    let server = PostgresServer::shared();
    let database = server.database().await;
    let pooler = PgBouncer::start(server);
    let url = pooler.url(&database);
    (pooler, Data::Postgres(database), url)
}

#[tokio::test]
async fn two_processes_read_under_one_snapshot_behind_a_pooler() {
    let (_pooler, data, url) = behind_pooler().await;
    two_processes(data, |_| CliSandbox::with(&config(&url, &url, &many_totals()))).await;
}

/// The store waits for a connection of the pooler, and the snapshot has one.
#[tokio::test]
async fn a_snapshot_is_given_up_when_the_store_cannot_be_reached() {
    let (_pooler, data, url) = behind_pooler().await;
    let accounts = Accounts::new(data).await;
    let jobs = totals("").replace("\"1m\"", "\"3s\"");
    let sandbox = CliSandbox::with(&config(&url, &url, &jobs));
    let id = sandbox.submit("TOTALS").await;
    let _worker = sandbox.spawn("worker --concurrency 1");
    half_read(&sandbox, &id).await;
    accounts.chunk_waits().await;
    sandbox.run(&format!("pause {id}")).await.ok();
    let reading = "SELECT count(*) FROM windlass_chunks WHERE status = 'PROCESSING'";
    // The worker hears of the pause by a heartbeat, or it would read the chunks that it has leased ahead. One heartbeat
    // may have begun before.
    let renewed =
        "SELECT (extract(epoch FROM max(lease_until)) * 1000000)::bigint FROM windlass_chunks";
    for _ in 0..2 {
        let before = accounts.data.number(renewed).await;
        eventually("a heartbeat", async || accounts.data.number(renewed).await > before).await;
    }
    accounts.open().await;
    eventually("no chunk is read", async || accounts.data.number(reading).await == 0).await;
    // A paused job keeps its snapshot, which has one connection.
    let mut transactions = Vec::new();
    for _ in 1..PgBouncer::POOL_SIZE {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("BEGIN").await.unwrap();
        transactions.push(client);
    }
    // In any state: its holder asks the server now and then.
    let held = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL";
    eventually("the snapshot is given up", async || accounts.data.number(held).await == 0).await;
    for client in &transactions {
        client.batch_execute("COMMIT").await.unwrap();
    }
    accounts.data.run("UPDATE accounts SET amount = amount + 1").await;
    sandbox.run(&format!("resume {id}")).await.ok();
    sandbox.completed(&id).await;
    assert_eq!(reported(&sandbox, &id).await, (ROWS, accounts.total().await));
    sandbox.prove(&id).await;
}

/// Rewrites the table while half of it is read, and expects that all of it is read again.
async fn rewritten(rewrite: &'static str, jobs: &str, by_blocks: bool) {
    let accounts = Accounts::new(Data::postgres().await).await;
    accounts.data.run("DELETE FROM accounts WHERE id % 3 = 0").await;
    let sandbox = CliSandbox::on(&accounts.data, jobs);
    let id = sandbox.submit("TOTALS").await;
    let _worker = sandbox.spawn("worker --concurrency 1");
    half_read(&sandbox, &id).await;
    let read = sandbox.chunks(&id).await;
    assert!(read.iter().all(|chunk| chunk["keySet"]["blocks"].is_object() == by_blocks));
    // The chunk that waits has locked the table. The rewrite follows it.
    accounts.chunk_waits().await;
    let Data::Postgres(database) = &accounts.data else { unreachable!() };
    let rewriting = database.client().await;
    let rewriting = tokio::spawn(async move { rewriting.batch_execute(rewrite).await });
    let waits = "SELECT count(*) FROM pg_locks WHERE relation = 'accounts'::regclass AND NOT granted \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    eventually("the rewrite waits", async || accounts.data.number(waits).await > 0).await;
    accounts.open().await;
    rewriting.await.unwrap().unwrap();
    sandbox.completed(&id).await;
    let chunks = sandbox.chunks(&id).await;
    assert!(chunks.iter().all(|chunk| chunk["keySet"]["snapshot"] == 2), "{chunks:?}");
    let rows = accounts.data.number("SELECT count(*) FROM accounts").await;
    assert_eq!(reported(&sandbox, &id).await, (rows, accounts.total().await));
    sandbox.prove(&id).await;
}

/// A rewritten table has its rows in other blocks.
#[tokio::test]
async fn a_table_that_was_rewritten_is_read_again_by_blocks() {
    rewritten("VACUUM FULL accounts", &totals("throughput.concurrency = 1"), true).await;
}

/// An ALTER TABLE that rewrites the table hides its rows from earlier snapshots.
#[tokio::test]
async fn a_table_that_was_rewritten_is_read_again_by_keys() {
    let jobs = totals("throughput.concurrency = 1").replace("items = 2000", "items = 50");
    let alter = "ALTER TABLE accounts ADD COLUMN drawn double precision DEFAULT random()";
    rewritten(alter, &jobs, false).await;
}
