//! The binary with the feature `aws`: job types on DynamoDB, and a worker that is killed.

use crate::common::eventually;
use serde_json::Value;
use windlass_testkit::{Dynamodb, Moto, Output, Windlass};

const ROWS: i64 = 150;

const JOBS: &str = r#"
[jobs.REFRESH]
source.connection = "app"
source.table = "candidates"
source.filters = { years = "year" }
step.refresh = true
step.version = "version"

[jobs.ENRICH]
source.connection = "app"
source.table = "candidates"
step.command = ["python3", "enrich.py"]
step.version = "version"
chunk = { items = 20, commit = 5, lease = "1s", timeout = "1m" }
"#;

/// Counts how often each record was enriched, and fails for one.
const ENRICH: &str = r#"
import json, sys, time
for line in sys.stdin:
    results = []
    for item in json.loads(line)["items"]:
        time.sleep(0.005)
        result = {"key": item["key"]}
        if item["key"] == 13:
            result["error"] = {"message": "unlucky", "retryable": False}
        else:
            result["update"] = {"enriched": item["record"].get("enriched", 0) + 1}
        results.append(result)
    print(json.dumps({"results": results}), flush=True)
"#;

struct DynamodbFixture {
    folder: tempfile::TempDir,
    tables: Dynamodb,
}

impl DynamodbFixture {
    fn new() -> DynamodbFixture {
        let tables = Moto::shared().dynamodb();
        tables.run(&format!(
            "CREATE TABLE candidates (id BIGINT PRIMARY KEY, year INT, version INT, enriched INT);
             CREATE INDEX years ON candidates (year, id);
             INSERT INTO candidates (id, year, version)
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
             SELECT i, 2020 + i % 3, 1 FROM n"
        ));
        let folder = tempfile::tempdir().unwrap();
        let url = tables.url();
        let text = format!(
            "[store]\nurl = \"sqlite:store.db\"\n[connections.app]\nurl = \"{url}\"\n{JOBS}"
        );
        std::fs::write(folder.path().join("windlass.toml"), text).unwrap();
        std::fs::write(folder.path().join("enrich.py"), ENRICH).unwrap();
        DynamodbFixture { folder, tables }
    }

    fn windlass(&self) -> Windlass {
        Windlass::new(self.folder.path()).binary(crate::common::BINARY)
    }

    async fn run(&self, line: &str) -> Output {
        self.windlass().run(line.split_whitespace()).await
    }

    async fn json(&self, line: &str) -> Value {
        let output = self.run(&format!("{line} --json")).await.ok();
        serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", output.stdout))
    }

    fn int(&self, sql: &str) -> i64 {
        self.tables.rows(sql)[0][0].as_deref().unwrap_or("0").parse().unwrap()
    }
}

#[tokio::test]
async fn a_dynamodb_table_can_be_checked_dry_run_worked_and_audited() {
    let fixture = DynamodbFixture::new();
    fixture.run("check").await.ok();
    let tried = fixture.json("run REFRESH --dry-run").await;
    assert_eq!(tried["records"], ROWS);
    assert_eq!(fixture.int("SELECT sum(version) FROM candidates"), ROWS, "nothing was written");

    let job = fixture.json("run REFRESH --filter years=2020,2022").await;
    assert_eq!((&job["status"], &job["items"]["processed"]), (&"COMPLETED".into(), &100.into()));
    assert_eq!(
        fixture.int("SELECT count(*) FROM candidates WHERE version = 2 AND year <> 2021"),
        100
    );
    assert_eq!(fixture.int("SELECT sum(version) FROM candidates"), ROWS + 100);
    let audit = fixture.json(&format!("audit {}", job["id"].as_str().unwrap())).await;
    assert_eq!(audit["verdict"], "proven", "{audit}");

    let printed = fixture.run("migrate --print").await.ok();
    assert!(printed.stdout.contains("aws dynamodb create-table"), "{}", printed.stdout);
    let url = fixture.tables.url();
    fixture.run(&format!("--config made.toml init {url}")).await.ok();
    let made = std::fs::read_to_string(fixture.folder.path().join("made.toml")).unwrap();
    let (_, made) = made.rsplit_once("[connections.app]").unwrap();
    assert!(made.contains("REFRESH_CANDIDATES") && !made.contains("step.sql"), "{made}");
    assert!(!made.contains("windlass:windlass"), "a secret key in a file: {made}");
}

#[tokio::test]
async fn after_a_killed_worker_no_item_is_processed_twice() {
    let fixture = DynamodbFixture::new();
    let submitted = fixture.json("submit ENRICH").await;
    let id = submitted["id"].as_str().unwrap().to_owned();
    for least in [1, 40] {
        let worker = fixture.windlass().spawn(["worker"]);
        let some = "SELECT count(*) FROM candidates WHERE enriched >= 1";
        eventually("it works", async || fixture.int(some) >= least).await;
        worker.kill9();
        worker.wait().await;
    }
    let worker = fixture.windlass().spawn(["worker"]);
    eventually("the job ends", async || {
        fixture.json(&format!("job {id}")).await["status"] == "COMPLETED"
    })
    .await;
    worker.term();
    worker.wait().await.ok();

    let job = fixture.json(&format!("job {id}")).await;
    assert_eq!(
        (&job["items"]["processed"], &job["items"]["dead"]),
        (&(ROWS - 1).into(), &1.into())
    );
    assert_eq!(fixture.int("SELECT count(*) FROM candidates WHERE enriched = 1"), ROWS - 1);
    assert_eq!(fixture.int("SELECT sum(version) FROM candidates"), 2 * ROWS - 1);
    assert_eq!(fixture.json(&format!("audit {id}")).await["verdict"], "proven");
}
