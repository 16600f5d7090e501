//! A process is frozen past its leases, as a paused virtual machine. When it continues, it commits nothing.

use crate::common::{CliSandbox, Data, eventually, slow_raise, worked_by};

#[tokio::test]
async fn a_worker_frozen_past_its_leases_commits_nothing() {
    const ROWS: i64 = 50_000;
    let data = Data::slow(ROWS, 0.5).await;
    let jobs = slow_raise(500) + "chunk.lease = \"1s\"\n";
    let sandbox = CliSandbox::on(&data, &jobs);
    // Eight slots share one connection: most chunks wait with their commit, and continue with it when the process
    // does.
    let narrow = data.config(&jobs).replace("\n\n[jobs", "\nmax_connections = 1\n\n[jobs");
    sandbox.write("narrow.toml", &narrow);
    let id = sandbox.submit("RAISE").await;

    let sleeper = sandbox.spawn("worker --concurrency 8 --config narrow.toml");
    // The job is planned and a slot runs the statement while the others wait for the connection, so that the worker
    // is frozen before commits.
    let at_work = "SELECT count(*) FROM windlass_chunks WHERE status = 'PROCESSING' \
                   AND EXISTS (SELECT FROM windlass_jobs WHERE open_segments = 0) \
                   AND EXISTS (SELECT FROM windlass_chunks WHERE status = 'COMPLETED') \
                   AND EXISTS (SELECT FROM pg_stat_activity WHERE state = 'active' \
                       AND pid <> pg_backend_pid() AND query LIKE '%pg_sleep(seconds)%')";
    eventually("the frozen worker has leased chunks", async || data.number(at_work).await >= 4)
        .await;
    sleeper.stop();
    let held = sandbox.held_by(&id, sleeper.id()).await;
    assert!(held.len() >= 2, "it was stopped with {held:?}");
    data.pace(0.0).await;

    let helper = sandbox.spawn("worker");
    eventually("another worker completed the frozen worker's chunks", async || {
        let chunks = sandbox.chunks(&id).await;
        let done = |number: &i64| {
            let chunk = &chunks[*number as usize];
            chunk["status"] == "COMPLETED" && worked_by(chunk, helper.id())
        };
        held.iter().all(done)
    })
    .await;
    for chunk in sandbox.chunks(&id).await {
        let number = chunk["chunk"].as_i64().unwrap();
        assert!(!held.contains(&number) || chunk["losses"].as_i64() > Some(0), "{chunk:#}");
    }

    sleeper.cont();
    sandbox.completed(&id).await;
    // A shutdown waits for current work, so after it the worker has tried all its commits.
    sleeper.term();
    let slept = sleeper.wait().await.ok();
    assert!(!slept.stderr.contains(" 0 taken over by other workers"), "{}", slept.stderr);
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}
