//! `-q` and `--log-format json`: how much is logged, and in which form.

use crate::common::{CliSandbox, Data, eventually, raise};
use serde_json::Value as Json;

/// A worker that logs a warning as soon as it starts.
async fn idle_worker() -> (Data, CliSandbox) {
    let data = Data::sqlite().with_accounts(10).await;
    let sandbox = CliSandbox::on(&data, &raise(5)).env("WINDLASS_PROCESSING_ENABLED", "false");
    (data, sandbox)
}

#[tokio::test]
async fn each_line_of_a_json_log_is_an_object_with_level_and_message() {
    let (_data, sandbox) = idle_worker().await;
    let worker = sandbox.spawn("worker --log-format json");
    eventually("a warning is logged", async || worker.stderr().contains("WARN")).await;
    let stderr = worker.stderr();
    let line = stderr.lines().find(|line| line.contains("WARN")).unwrap();
    let event: Json = serde_json::from_str(line).unwrap();
    assert_eq!(event["level"], "WARN");
    let message = event["message"].as_str().unwrap();
    assert!(message.contains("WINDLASS_PROCESSING_ENABLED"), "{event:#}");
}

#[tokio::test]
async fn a_quiet_command_logs_no_warnings_and_prints_its_result() {
    let (_data, sandbox) = idle_worker().await;
    let worker = sandbox.spawn("worker -q");
    eventually("the worker is listed", async || {
        sandbox.json("workers").await.as_array().is_some_and(|workers| !workers.is_empty())
    })
    .await;
    assert!(!worker.stderr().contains("WARN"), "{}", worker.stderr());
    let jobs = sandbox.run("jobs --quiet").await.ok();
    assert!(jobs.stdout.contains("no jobs"), "{}", jobs.stdout);
    assert_eq!(jobs.stderr, "");
}
