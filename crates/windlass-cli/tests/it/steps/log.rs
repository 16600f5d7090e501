//! The standard error of programs is in the log, with job and chunk.

use crate::common::text;
use crate::steps::fixture::{by_command, with_accounts};

#[tokio::test]
async fn each_line_of_standard_error_is_logged_with_its_job_and_chunk() {
    let jobs = by_command("python3 raise.py", "chunk.items = 10\n");
    let (_data, sandbox) = with_accounts(40, &jobs).await;
    let output = sandbox.run("run RAISE --concurrency 1").await.ok();
    let id = text(&sandbox.json("jobs").await[0]["id"]);
    let lines: Vec<&str> =
        output.stderr.lines().filter(|line| line.contains("raising 10 accounts")).collect();
    assert_eq!(lines.len(), 4, "{}", output.stderr);
    for number in 0..4 {
        let chunk = format!("job={id} chunk={number}");
        assert!(lines.iter().any(|line| line.contains(&chunk)), "no {chunk} in {lines:#?}");
    }
    assert!(!output.stdout.contains("raising"), "{}", output.stdout);
}

#[tokio::test]
async fn a_worker_logs_standard_error_too() {
    let (_data, sandbox) = with_accounts(10, &by_command("python3 poison.py exits=3", "")).await;
    let id = sandbox.submit("RAISE").await;
    let worked = sandbox.run(&format!("worker --job {id}")).await.with_dead_letters();
    let line = format!("account 3 is poison job={id} chunk=0");
    assert!(worked.stderr.lines().any(|logged| logged.ends_with(&line)), "{}", worked.stderr);
}
