//! The emergency stop: for everything, for a job type, or for one process.

use crate::common::{CliSandbox, Data, eventually, parse, refused, slow_raise};

const ROWS: i64 = 4_000;

async fn working() -> (Data, CliSandbox, String) {
    let data = Data::slow(ROWS, 2.0).await;
    let sandbox = CliSandbox::on(&data, &(slow_raise(50) + "chunk.commit = 10\n"));
    let id = sandbox.submit("RAISE").await;
    (data, sandbox, id)
}

/// Waits until nothing is leased and asserts that no more work is leased or planned.
async fn rests(data: &Data) {
    let at_work = "SELECT (SELECT count(*) FROM windlass_chunks WHERE status = 'PROCESSING') \
                   + (SELECT count(*) FROM windlass_segments WHERE status = 'PROCESSING')";
    eventually("no chunk is leased", async || data.number(at_work).await == 0).await;
}

#[tokio::test]
async fn everything_stops_on_all_machines_and_continues_after_the_start() {
    for stop in ["stop", "stop RAISE"] {
        let (data, sandbox, id) = working().await;
        let _workers = [sandbox.spawn("worker"), sandbox.spawn("worker")];
        sandbox.until(&id, "some chunks are completed", |job| job["items"]["processed"] != 0).await;
        let said = sandbox.run(stop).await.ok();
        assert!(said.stdout.contains("is stopped"), "{}", said.stdout);
        rests(&data).await;
        let stopped = sandbox.job(&id).await;
        assert_eq!(stopped["status"], "PROCESSING");
        assert!(stopped["error"].as_str().unwrap().contains("stopped"), "{stopped:#}");
        assert!(sandbox.run("jobs").await.ok().stdout.contains("stopped"));
        assert!(sandbox.run("throughput").await.ok().stdout.contains("stopped"));
        let raised = "SELECT count(*) FROM accounts WHERE amount <> id * 7 % 1000";
        let so_far = data.number(raised).await;
        assert!(so_far < ROWS, "the job was completed before the stop");
        assert_eq!(stopped["items"]["processed"], so_far, "committed items are counted");
        // A new job is not even planned.
        let other = sandbox.submit("RAISE").await;
        rests(&data).await;
        assert_eq!(sandbox.job(&other).await["chunks"]["total"], 0);
        sandbox.run(&format!("cancel {other}")).await.ok();
        data.pace(0.0).await;
        assert_eq!(data.number(raised).await, so_far);
        sandbox.run(&stop.replace("stop", "start")).await.ok();
        let done = sandbox.completed(&id).await;
        assert!(done["error"].is_null());
        data.raised_once(ROWS).await;
        sandbox.prove(&id).await;
    }
}

#[tokio::test]
async fn one_process_can_be_prevented_from_working() {
    let data = Data::postgres().await.with_accounts(100).await;
    let sandbox = CliSandbox::on(&data, &slow_raise(50));
    let id = sandbox.submit("RAISE").await;
    let sandbox = sandbox.env("WINDLASS_PROCESSING_ENABLED", "false");
    let idle = sandbox.spawn("worker");
    eventually("the process logs that", async || {
        idle.stderr().contains("WINDLASS_PROCESSING_ENABLED")
    })
    .await;
    eventually("it is listed", async || {
        parse(&sandbox.run("workers --json").await.ok()).as_array().unwrap().len() == 1
    })
    .await;
    assert_eq!(sandbox.status(&id).await, "QUEUED");
    let sandbox = sandbox.env("WINDLASS_PROCESSING_ENABLED", "true");
    let _worker = sandbox.spawn("worker");
    sandbox.completed(&id).await;
    data.raised_once(100).await;
}

#[tokio::test]
async fn an_unknown_job_type_is_named() {
    let data = Data::sqlite().with_accounts(1).await;
    let sandbox = CliSandbox::on(&data, &crate::common::raise(5));
    refused(&sandbox.run("stop RIASE").await, &["WL0002", "RIASE", "`RAISE`"]);
    refused(
        &sandbox.run("throughput RAISE --concurrency 0").await,
        &["--concurrency", "unlimited"],
    );
    refused(&sandbox.run("throughput --concurrency 4").await, &["--job"]);
}
