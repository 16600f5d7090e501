//! The exit codes of the commands that follow a job: dead letters, and Ctrl-C.

use crate::common::{CliSandbox, Data, eventually, job, slow_raise, text};

/// Fails for ten of a hundred accounts.
const FAILS: &str =
    "UPDATE accounts SET amount = CASE WHEN branch = 3 THEN NULL ELSE 1 END WHERE {chunk}";

#[tokio::test]
async fn a_job_with_dead_letters_exits_with_5_unless_they_are_allowed() {
    let data = Data::sqlite().with_accounts(100).await;
    let sandbox = CliSandbox::on(&data, &job("FAILS", FAILS, 20));
    let output = sandbox.run("run FAILS").await.with_dead_letters();
    assert!(output.stdout.contains("10 dead letters"), "{}", output.stdout);
    sandbox.run("run FAILS --json").await.with_dead_letters();
    sandbox.run("run FAILS --allow-dead-letters").await.ok();
    let id = sandbox.submit("FAILS").await;
    sandbox.run(&format!("worker --job {id}")).await.with_dead_letters();
    for command in ["worker --job", "watch"] {
        sandbox.run(&format!("{command} {id}")).await.with_dead_letters();
        sandbox.run(&format!("{command} {id} --allow-dead-letters")).await.ok();
    }
    // These commands look at the job without waiting for its end.
    sandbox.run(&format!("job {id}")).await.ok();
    sandbox.run("jobs").await.ok();
}

#[tokio::test]
async fn ctrl_c_exits_with_130() {
    let data = Data::postgres().await.with_accounts(1000).await;
    // Slow until both commands have been interrupted.
    data.pace(1.0).await;
    let sandbox = CliSandbox::on(&data, &(slow_raise(50) + "chunk.commit = 10\n"));
    let run = sandbox.spawn("run RAISE --concurrency 1");
    let mut id = String::new();
    eventually("the job is at work", async || {
        let jobs = sandbox.json("jobs").await;
        id = jobs[0]["id"].as_str().unwrap_or_default().to_owned();
        jobs[0]["chunks"]["processing"].as_i64() > Some(0)
    })
    .await;
    let watch = sandbox.spawn(&format!("watch {id}"));
    eventually("watch shows the progress", async || watch.stderr().contains("items")).await;
    for follower in [watch, run] {
        follower.interrupt();
        let left = follower.wait().await;
        assert_eq!(left.code, Some(130), "{left:?}");
    }
    assert_eq!(sandbox.status(&id).await, "PROCESSING");
    data.pace(0.0).await;
    sandbox.run(&format!("worker --job {id}")).await.ok();
    data.raised_once(1000).await;
}

#[tokio::test]
async fn a_job_with_many_dead_letters_pauses_by_the_default_budget_that_check_names() {
    let data = Data::sqlite().with_accounts(1000).await;
    let fails = "UPDATE accounts SET amount = NULL WHERE {chunk}";
    let sandbox = CliSandbox::on(&data, &job("FAILS", fails, 20));
    let named = "failures  pauses at more than 1 % and more than 100 dead letters";
    let checked = sandbox.run("check").await.ok();
    assert!(checked.stdout.contains(named), "{}", checked.stdout);
    let paused = sandbox.run("run FAILS --concurrency 1").await;
    assert_eq!(paused.code, Some(4), "{paused:?}");
    let job = &sandbox.json("jobs").await[0];
    assert_eq!(job["items"]["dead"], 120, "{job:#}");
    assert!(text(&job["error"]).contains("120 dead letters, 100 allowed"), "{job:#}");
}
