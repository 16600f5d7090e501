//! Runs every program in `examples/` and checks what it prints.

#![allow(clippy::unwrap_used, reason = "a test reports its failure with a panic")]

use std::path::PathBuf;
use std::process::Command;
use windlass_testkit::PostgresServer;

#[test]
fn a_handler_writes_back_and_one_bad_record_is_a_dead_letter() {
    let printed = run("write_back", &[]);
    assert!(printed.contains("COMPLETED: 4999 accounts processed, 1 dead letter"), "{printed}");
    assert!(printed.contains(&format!("total balance {}", 4999 * 1010 + 1000)), "{printed}");
}

#[test]
fn a_report_is_merged_from_all_chunks() {
    let printed = run("report", &[]);
    assert!(printed.contains("COMPLETED: 10000 records in "), "{printed}");
    for line in ["branch,n,total", "north,3333,", "south,3334,", "west,3333,"] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    let total: i64 =
        printed.lines().filter_map(|line| line.rsplit_once(',')?.1.parse::<i64>().ok()).sum();
    assert_eq!(total, 45_000, "{printed}");
}

#[test]
fn a_service_runs_a_job_and_stops() {
    let printed = run("service", &[]);
    assert!(printed.contains("dashboard and API on http://127.0.0.1:"), "{printed}");
    assert!(printed.contains("COMPLETED: 2000 visits closed"), "{printed}");
    assert!(printed.contains("stopped after "), "{printed}");
}

#[test]
fn a_job_is_submitted_in_a_transaction_of_rusqlite() {
    assert_eq!(run("outbox_sqlite", &[]).trim(), "COMPLETED: 1 order shipped");
}

#[tokio::test]
async fn a_job_is_submitted_in_a_transaction_of_tokio_postgres() {
    let database = PostgresServer::shared().database().await;
    let printed = run("outbox", &[database.url()]);
    assert_eq!(printed.trim(), "COMPLETED: 1 order shipped, number 2");
}

/// The output of an example, which must succeed. Cargo builds the examples before this test runs.
fn run(name: &str, args: &[&str]) -> String {
    let this = std::env::current_exe().unwrap();
    let profile: PathBuf = this.ancestors().nth(2).unwrap().into();
    let program = profile.join("examples").join(name);
    assert!(program.exists(), "{name} is not built; `cargo test -p windlass` builds the examples");
    let output = Command::new(&program).args(args).output().unwrap();
    let (printed, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {printed}{complaint}");
    printed.into_owned()
}
