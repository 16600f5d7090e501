//! `windlass submit` queues a job, and `windlass worker --job` works it.

use crate::common::{CliSandbox, Data, raise, refused, slow_raise};

#[tokio::test]
async fn submit_prints_the_id_and_a_worker_completes_the_job() {
    for (data, sandbox) in CliSandbox::on_both(100, &raise(10)).await {
        let output = sandbox.run("submit RAISE").await.ok();
        let id = output.stdout.trim();
        assert_eq!(output.stdout, format!("{id}\n"), "the output is only the id, for scripts");
        assert_eq!(sandbox.status(id).await, "QUEUED");
        data.untouched().await;
        let worked = sandbox.run(&format!("worker --job {id}")).await.ok();
        assert!(worked.stdout.contains("COMPLETED"), "{}", worked.stdout);
        data.raised_once(100).await;
        sandbox.prove(id).await;
    }
}

#[tokio::test]
async fn the_same_request_with_the_same_key_is_the_same_job() {
    for data in Data::both().await {
        let data = data.with_accounts(100).await;
        let sandbox = CliSandbox::on(&data, &(raise(10) + "params.x = { type = \"integer\" }\n"));
        let first = sandbox.submit("RAISE --idempotency-key night --param x=1").await;
        let again = sandbox.run("submit RAISE --param x=1 --idempotency-key night").await.ok();
        assert_eq!(again.stdout.trim(), first);
        assert!(again.stderr.contains("submitted before"), "{}", again.stderr);
        let other = sandbox.run("submit RAISE --idempotency-key night --param x=2").await;
        refused(&other, &["WL0007", "idempotencyKey", "another request"]);
        assert_ne!(sandbox.submit("RAISE --idempotency-key day --param x=1").await, first);
        assert_eq!(sandbox.json("jobs").await.as_array().unwrap().len(), 2);

        // `run` with the key of a completed job returns at once and works nothing.
        sandbox.run(&format!("worker --job {first}")).await.ok();
        sandbox.run("run RAISE --idempotency-key night --param x=1").await.ok();
        data.raised_once(100).await;
    }
}

#[tokio::test]
async fn a_job_keeps_the_definition_from_its_submit() {
    let data = Data::sqlite().with_accounts(100).await;
    let sandbox = CliSandbox::on(&data, &raise(10));
    let id = sandbox.submit("RAISE").await;
    sandbox.write("windlass.toml", &data.config(&raise(10).replace("amount + 1", "amount + 100")));
    sandbox.run(&format!("worker --job {id}")).await.ok();
    data.raised_once(100).await;
}

#[tokio::test]
async fn a_job_with_a_higher_priority_runs_first() {
    let data = Data::slow(1_000, 2.0).await;
    let note = "UPDATE accounts SET owner = owner || ' ' || :name WHERE {chunk}";
    let jobs = slow_raise(10) + &crate::common::job("NOTE", note, 1_000);
    let sandbox = CliSandbox::on(&data, &jobs);
    // This job occupies the only slot until the others are planned.
    let busy = sandbox.submit("RAISE --priority 9").await;
    let worker = sandbox.spawn("worker --concurrency 1");
    sandbox.until(&busy, "the slot is busy", |job| job["chunks"]["processing"] == 1).await;
    let low = sandbox.submit("NOTE --param name=low --priority 1").await;
    let high = sandbox.submit("NOTE --param name=high --priority 8").await;
    for id in [&low, &high] {
        sandbox.until(id, "is planned", |job| job["items"]["total"] == 1_000).await;
    }
    data.pace(0.0).await;
    sandbox.completed(&low).await;
    sandbox.completed(&high).await;
    worker.term();
    worker.wait().await.ok();
    let in_order = "SELECT count(*) FROM accounts WHERE owner LIKE '% high low'";
    assert_eq!(data.number(in_order).await, 1_000);
}
