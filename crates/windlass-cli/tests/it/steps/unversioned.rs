//! Tables without a version column, as most applications have them: `check`, dry runs, handlers and `refresh`.

use crate::common::{Data, parse, text};
use crate::steps::fixture::sandbox;

const SOURCE: &str = "source.connection = \"app\"\nsource.table = \"plain\"\n";

/// A table with nullable columns and a text.
async fn plain(data: &Data) {
    data.run(
        "CREATE TABLE plain (id bigint NOT NULL PRIMARY KEY, name varchar(40), amount bigint)",
    )
    .await;
    data.run("INSERT INTO plain VALUES (1, 'a', 1), (2, NULL, 2), (3, 'c', 3), (4, '', 4)").await;
}

/// Adds 10 to every amount.
const HANDLER: &str = r#"
import json, sys

for line in sys.stdin:
    batch = json.loads(line)
    raised = lambda item: {"amount": item["record"]["amount"] + 10}
    results = [{"key": item["key"], "update": raised(item)} for item in batch["items"]]
    print(json.dumps({"results": results}), flush=True)
"#;

/// Answers without any update.
const INSERTER: &str = r#"
import json, sys

for line in sys.stdin:
    items = json.loads(line)["items"]
    rows = lambda item: {"table": "seen", "rows": [{"id": item["key"]}]}
    results = [{"key": item["key"], "insert": rows(item)} for item in items]
    print(json.dumps({"results": results}), flush=True)
"#;

#[tokio::test]
async fn a_handler_works_without_a_version() {
    for (data, by_default) in Data::each().await.into_iter().zip(["columns", "xmin", "columns"]) {
        plain(&data).await;
        for (guard, name) in [("", by_default), ("step.guard = \"columns\"\n", "columns")] {
            let jobs =
                format!("[jobs.ADD]\n{SOURCE}step.command = [\"python3\", \"add.py\"]\n{guard}");
            let sandbox = sandbox(&data, &jobs);
            sandbox.write("add.py", HANDLER);
            let output = sandbox.run("check").await.ok();
            assert!(output.stdout.contains(&format!("  guard     {name}: ")), "{}", output.stdout);
            assert_eq!(sandbox.json("check").await["jobTypes"][0]["guard"], name);
            let before = data.number("SELECT sum(amount) FROM plain").await;
            let dry = sandbox.json("run ADD --dry-run").await;
            assert_eq!(dry["sample"][0]["outcome"], "update");
            assert_eq!(data.number("SELECT sum(amount) FROM plain").await, before);
            let job = parse(&sandbox.run("run ADD --json").await.ok());
            assert_eq!(
                (&job["items"]["processed"], &job["items"]["conflicts"]),
                (&4.into(), &0.into())
            );
            assert_eq!(data.number("SELECT sum(amount) FROM plain").await, before + 40);
            sandbox.prove(&text(&job["id"])).await;
        }
    }
}

#[tokio::test]
async fn a_handler_that_never_updates_needs_no_guard() {
    for data in Data::each().await {
        plain(&data).await;
        data.run("CREATE TABLE seen (id bigint NOT NULL)").await;
        let jobs = format!("[jobs.SEE]\n{SOURCE}step.command = [\"python3\", \"see.py\"]\n");
        let sandbox = sandbox(&data, &jobs);
        sandbox.write("see.py", INSERTER);
        let job = parse(&sandbox.run("run SEE --json").await.ok());
        assert_eq!(job["items"]["processed"], 4, "{job:#}");
        assert_eq!(data.number("SELECT count(*) FROM seen").await, 4);
    }
}

#[tokio::test]
async fn a_refresh_works_without_a_version_where_the_database_writes_unchanged_rows() {
    for data in Data::both().await {
        plain(&data).await;
        let sandbox = sandbox(&data, &format!("[jobs.REFRESH]\n{SOURCE}step.refresh = true\n"));
        sandbox.run("check").await.ok();
        let dry = sandbox.json("run REFRESH --dry-run").await;
        assert_eq!(dry["sample"][0]["outcome"], "update");
        let job = parse(&sandbox.run("run REFRESH --json").await.ok());
        assert_eq!(job["items"]["processed"], 4, "{job:#}");
        sandbox.prove(&text(&job["id"])).await;
    }
}
