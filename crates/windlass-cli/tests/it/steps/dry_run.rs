//! `windlass run --dry-run` with a program and a service shows each record before and after, and writes nothing.

use crate::common::{CliSandbox, Data, printed};
use crate::steps::fixture::{batches, by_command, by_service, items, nothing_runs_soon, sandbox};
use crate::steps::server::Server;
use serde_json::{Value as Json, json};

/// Asserts the output for ten accounts, the third of which fails, and returns the same as JSON.
async fn shows(sandbox: &CliSandbox, data: &Data) -> Json {
    let output = sandbox.run("run RAISE --dry-run").await.ok();
    printed(&output, &["10 records would be processed", "nothing was changed", "amount: 7 → 8"]);
    assert!(!output.stdout.contains("owner:"), "only what changes is shown: {}", output.stdout);
    let json = sandbox.json("run RAISE --dry-run --param month=2025-01").await;
    assert_eq!(json["records"], 10);
    assert_eq!(json["sample"][1]["key"], 2);
    assert_eq!(json["sample"][1]["before"]["amount"], 14);
    assert_eq!(json["sample"][1]["after"]["amount"], 15);
    data.untouched().await;
    assert_eq!(sandbox.json("jobs").await, json!([]), "no job is created");
    json
}

#[tokio::test]
async fn a_program_is_told_that_it_is_a_dry_run_and_nothing_is_written() {
    for data in Data::both_with_accounts(10).await {
        let sandbox = sandbox(&data, &by_command("python3 poison.py refuses=3", ""));
        let json = shows(&sandbox, &data).await;
        assert_eq!(json["sample"][2]["outcome"], "error: account 3 is poison");
        let seen = batches(&sandbox);
        assert_eq!(seen.len(), 2);
        assert!(seen.iter().all(|batch| batch["dryRun"] == true), "{seen:#?}");
        assert!(seen.iter().all(|batch| items(batch).len() < 10));
        assert_eq!(seen[1]["params"], json!({"month": "2025-01"}));
        nothing_runs_soon(&sandbox).await;
    }
}

#[tokio::test]
async fn a_service_is_told_that_it_is_a_dry_run_and_nothing_is_written() {
    let server = Server::start().await;
    let data = Data::sqlite().with_accounts(10).await;
    let sandbox = sandbox(&data, &by_service(&server.url(""), ""));
    shows(&sandbox, &data).await;
    let seen = server.batches();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|request| request["batch"]["dryRun"] == true), "{seen:#?}");
}

#[tokio::test]
async fn rows_for_other_tables_are_shown_and_not_inserted() {
    let data = Data::sqlite().with_accounts(3).await;
    data.run("CREATE TABLE greetings (account bigint NOT NULL, words text NOT NULL)").await;
    let sandbox = sandbox(&data, &by_command("python3 outcomes.py", ""));
    let output = sandbox.run("run RAISE --dry-run").await.ok();
    assert!(output.stdout.contains("1 row into greetings"), "{}", output.stdout);
    assert_eq!(data.number("SELECT count(*) FROM greetings").await, 0);
    data.untouched().await;
}

/// Sets an unknown column for account 2, and inserts a row that violates a constraint for account 3.
const CARELESS: &str = r#"
from handler import raised, serve

def result(item):
    if item["key"] == 2:
        return {"key": 2, "update": {"amuont": 1}}
    if item["key"] == 3:
        return {"key": 3, "insert": {"table": "greetings", "rows": [{"account": None}]}}
    return raised(item)

serve(lambda batch: {"results": [result(item) for item in batch["items"]]})
"#;

#[tokio::test]
async fn a_change_that_the_database_would_refuse_is_shown_with_its_error() {
    for data in Data::both_with_accounts(3).await {
        data.run("CREATE TABLE greetings (account bigint NOT NULL)").await;
        let sandbox = sandbox(&data, &by_command("python3 careless.py", ""));
        sandbox.write("careless.py", CARELESS);
        let json = sandbox.json("run RAISE --dry-run").await;
        let outcome = |n: usize| json["sample"][n]["outcome"].as_str().unwrap().to_lowercase();
        assert_eq!(outcome(0), "update");
        assert!(outcome(1).contains("`amuont`"), "{}", outcome(1));
        assert!(outcome(2).contains("error") && outcome(2).contains("null"), "{}", outcome(2));
        data.untouched().await;
    }
}
