//! A worker dies with dozens of chunks that it has leased ahead. Others take them long before the leases expire.

use crate::common::{CliSandbox, Data, eventually, slow_raise};

const ROWS: i64 = 12_000;

/// A job of 1,200 short chunks, and a worker that has leased many of them ahead. The leases last longer than any test
/// waits.
async fn busy() -> (Data, CliSandbox, windlass_testkit::Running, String) {
    let data = Data::slow(ROWS, 0.01).await;
    let jobs = slow_raise(10) + "chunk.lease = \"10m\"\nchunk.timeout = \"20m\"\n";
    let sandbox = CliSandbox::on(&data, &jobs);
    let id = sandbox.submit("RAISE").await;
    let worker = sandbox.spawn("worker --concurrency 2");
    eventually("the worker has leased chunks ahead", async || {
        let ahead = "SELECT count(*) FROM windlass_chunks WHERE status = 'PROCESSING'";
        data.number(ahead).await > 4
    })
    .await;
    (data, sandbox, worker, id)
}

#[tokio::test]
async fn the_chunks_of_a_killed_worker_are_released_by_a_worker_on_the_same_host() {
    let (data, sandbox, worker, id) = busy().await;
    data.pace(0.1).await;
    worker.kill9();
    let chunks = data.number("SELECT count(*) FROM windlass_chunks WHERE status = 'PROCESSING'");
    assert!(chunks.await >= 2, "it was killed without chunks");
    data.pace(0.0).await;
    let next = sandbox.spawn("worker");
    sandbox.completed(&id).await;
    assert!(next.stderr().contains("worker process has ended"), "{}", next.stderr());
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn an_idle_worker_says_which_leases_it_waits_for() {
    let (data, sandbox, worker, id) = busy().await;
    // From now on a commit takes long, so that a stopped worker keeps the chunks in its slots for ten minutes.
    data.pace(20.0).await;
    // A chunk that has committed has left its slot, but may have a long lease until it is completed.
    let of_slots = "SELECT count(*) - 100 * count(*) FILTER (WHERE l.commits > 0) \
                    FROM windlass_chunks c JOIN windlass_ledger l ON l.job_id = c.job_id AND l.chunk = c.number \
                    WHERE c.lease_until > clock_timestamp() + interval '1 minute'";
    eventually("only both slots have long leases", async || data.number(of_slots).await == 2).await;
    worker.stop();
    data.pace(0.0).await;
    // What was only leased ahead is worked by the next worker.
    let next = sandbox.spawn("worker");
    eventually("all other chunks are completed", async || {
        let job = sandbox.job(&id).await;
        job["chunks"]["pending"] == 0 && job["chunks"]["processing"] == 2
    })
    .await;
    let waits = sandbox.until(&id, "the job says what it waits for", |job| {
        job["waitsFor"].as_str().is_some_and(|text| text.starts_with("leases of worker "))
    });
    let waits_for = waits.await["waitsFor"].as_str().unwrap().to_owned();
    assert!(waits_for.contains(&format!(":{} until 20", worker.id())), "{waits_for}");
    eventually("the worker logs it", async || {
        next.stderr().contains("waiting for the leases of a worker that sends no heartbeat")
    })
    .await;
    assert!(next.stderr().contains("until="), "{}", next.stderr());
    worker.cont();
    sandbox.completed(&id).await;
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}
