//! `windlass cancel`, `pause`, `resume`, `retry`, and the exit codes of the commands that follow the job.

use crate::common::{CliSandbox, Data, eventually, job, raise, refused, slow_raise, text};
use windlass_testkit::Running;

const ROWS: i64 = 2000;

/// A slow job of two hundred chunks, and a `run` that is working it.
async fn at_work() -> (Data, CliSandbox, Running, String) {
    let data = Data::slow(ROWS, 0.5).await;
    let sandbox = CliSandbox::on(&data, &slow_raise(10));
    let run = sandbox.spawn("run RAISE");
    eventually("some chunks are completed and some are not", async || {
        let jobs = sandbox.json("jobs").await;
        jobs[0]["chunks"]["completed"].as_i64() > Some(0)
    })
    .await;
    let id = text(&sandbox.json("jobs").await[0]["id"]);
    (data, sandbox, run, id)
}

#[tokio::test]
async fn run_exits_with_four_for_a_paused_job_which_continues_when_resumed() {
    let (data, sandbox, run, id) = at_work().await;
    let watch = sandbox.spawn(&format!("watch {id}"));
    let paused = sandbox.run(&format!("pause {id}")).await.ok();
    assert!(paused.stdout.contains("PAUSED"), "{}", paused.stdout);
    let run = run.wait().await;
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains(&format!("windlass resume {id}")), "{}", run.stdout);
    assert_eq!(watch.wait().await.code, Some(4));
    let job = sandbox.job(&id).await;
    assert_eq!(job["status"], "PAUSED");
    assert_eq!(job["chunks"]["processing"], 0, "{job:#}");
    assert!(job["chunks"]["pending"].as_i64() > Some(0), "{job:#}");
    assert_eq!(sandbox.run(&format!("worker --job {id}")).await.code, Some(4));

    data.pace(0.0).await;
    refused(&sandbox.run(&format!("retry {id}")).await, &["WL0008", "PAUSED", "windlass resume"]);
    let resumed = sandbox.run(&format!("resume {id}")).await.ok();
    assert!(resumed.stdout.contains(&format!("windlass worker --job {id}")), "{resumed:?}");
    sandbox.run(&format!("worker --job {id}")).await.ok();
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
    refused(&sandbox.run(&format!("pause {id}")).await, &["WL0008", "COMPLETED"]);
}

#[tokio::test]
async fn commands_that_follow_a_cancelled_job_exit_with_three() {
    let (data, sandbox, run, id) = at_work().await;
    let watch = sandbox.spawn(&format!("watch {id}"));
    let cancelled = sandbox.run(&format!("cancel {id}")).await.ok();
    assert!(cancelled.stdout.contains("CANCELLED"), "{}", cancelled.stdout);
    assert_eq!(run.wait().await.code, Some(3));
    assert_eq!(watch.wait().await.code, Some(3));
    data.pace(0.0).await;
    assert_eq!(sandbox.run(&format!("worker --job {id}")).await.code, Some(3));
    let job =
        sandbox.until(&id, "all chunks have ended", |job| job["chunks"]["processing"] == 0).await;
    let count = |name: &str| job["chunks"][name].as_i64().unwrap();
    assert!(count("cancelled") > 0, "{job:#}");
    assert_eq!(count("completed") + count("cancelled"), count("total"), "{job:#}");
    // Committed changes stay. Other rows are unchanged.
    let raised = "SELECT count(*) FROM accounts WHERE amount = id * 7 % 1000 + 1";
    assert_eq!(data.number(raised).await, job["items"]["processed"].as_i64().unwrap());
    let others =
        "SELECT count(*) FROM accounts WHERE amount NOT IN (id * 7 % 1000, id * 7 % 1000 + 1)";
    assert_eq!(data.number(others).await, 0);
    for command in ["cancel", "pause", "resume", "retry"] {
        refused(&sandbox.run(&format!("{command} {id}")).await, &["WL0008", "CANCELLED"]);
    }
    assert_eq!(sandbox.run(&format!("audit {id}")).await.code, Some(1));
}

#[tokio::test]
async fn a_queued_job_is_paused_resumed_and_cancelled_without_any_worker() {
    for (data, sandbox) in CliSandbox::on_both(10, &raise(5)).await {
        let id = sandbox.submit("RAISE").await;
        assert_eq!(sandbox.json(&format!("pause {id}")).await["status"], "PAUSED");
        assert_eq!(sandbox.json(&format!("resume {id}")).await["status"], "QUEUED");
        assert_eq!(sandbox.json(&format!("cancel {id}")).await["status"], "CANCELLED");
        assert_eq!(sandbox.run(&format!("watch {id}")).await.code, Some(3));
        data.untouched().await;
    }
}

#[tokio::test]
async fn a_failed_job_shows_the_reason_and_a_retry_does_the_rest_once() {
    for data in Data::both_with_accounts(100).await {
        data.run("CREATE TABLE rates (rate integer); INSERT INTO rates VALUES (1)").await;
        let sql = "UPDATE accounts SET amount = amount + (SELECT rate FROM rates) WHERE {chunk}";
        let sandbox = CliSandbox::on(&data, &job("RAISE", sql, 10));
        let id = sandbox.submit("RAISE").await;
        data.run("DROP TABLE rates").await;
        let failed = sandbox.run(&format!("worker --job {id}")).await;
        assert_eq!(failed.code, Some(1), "{failed:?}");
        assert!(failed.stdout.contains("FAILED"), "{}", failed.stdout);
        assert!(failed.stdout.contains("rates"), "{}", failed.stdout);
        assert!(failed.stdout.contains(&format!("windlass retry {id}")), "{}", failed.stdout);
        assert_eq!(sandbox.run(&format!("watch {id}")).await.code, Some(1));
        assert_eq!(sandbox.run(&format!("audit {id}")).await.code, Some(1));
        refused(&sandbox.run(&format!("resume {id}")).await, &["WL0008", "windlass retry"]);

        data.run("CREATE TABLE rates (rate integer); INSERT INTO rates VALUES (1)").await;
        assert_eq!(sandbox.json(&format!("retry {id}")).await["status"], "QUEUED");
        sandbox.run(&format!("worker --job {id}")).await.ok();
        data.raised_once(100).await;
        sandbox.prove(&id).await;
    }
}
