//! Emitted rows are the job's output. Each is there once, however often the work is repeated.

use crate::common::{Data, parse, text};
use crate::steps::fixture::{TWO_TRIES, by_command, sandbox};
use serde_json::{Value as Json, json};

/// Emits two rows for every second account. Account 4 fails once, account 6 permanently.
const EMITTER: &str = r#"
from handler import serve

def result(item):
    key, attempt = item["key"], item["attempt"]
    if key == 6 or (key == 4 and attempt == 1):
        return {"key": key, "error": {"message": "not now", "retryable": True}}
    if key % 2:
        return {"key": key, "skip": True}
    rows = [{"account": key, "half": half, "amount": item["record"]["amount"]} for half in (1, 2)]
    return {"key": key, "update": {"amount": item["record"]["amount"] + 1}, "emit": rows}

serve(lambda batch: {"results": [result(item) for item in batch["items"]]})
"#;

#[tokio::test]
async fn emitted_rows_exist_once_after_retries_and_a_redrive() {
    for data in Data::each_with_accounts(20).await {
        let jobs = by_command("python3 emitter.py", TWO_TRIES) + "chunk.items = 7\n";
        let sandbox = sandbox(&data, &jobs);
        sandbox.write("emitter.py", EMITTER);
        let dry = sandbox.run("run RAISE --dry-run").await.ok();
        assert!(dry.stdout.contains("emits {\"account\":2"), "{}", dry.stdout);
        let id = text(&parse(&sandbox.run("run RAISE --json").await)["id"]);
        let rows = sandbox.json(&format!("output {id}")).await;
        let rows = rows.as_array().unwrap();
        assert_eq!(rows.len(), 18, "nine accounts with two rows each");
        for half in [1, 2] {
            let row = json!({"account": 4, "half": half, "amount": 28});
            assert_eq!(rows.iter().filter(|found| **found == row).count(), 1, "{row}");
        }
        let lines = sandbox.run(&format!("output {id}")).await.ok();
        assert_eq!(lines.stdout.lines().count(), 18);
        let parsed = lines.stdout.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
        assert_eq!(parsed.collect::<Vec<_>>(), *rows);
    }
}

#[tokio::test]
async fn a_job_that_emits_nothing_has_no_output() {
    let data = Data::sqlite().with_accounts(3).await;
    let sandbox = sandbox(&data, &by_command("python3 raise.py", ""));
    let id = text(&parse(&sandbox.run("run RAISE --json").await)["id"]);
    assert_eq!(sandbox.run(&format!("output {id}")).await.ok().stdout, "");
    assert_eq!(sandbox.json(&format!("output {id}")).await, json!([]));
}
