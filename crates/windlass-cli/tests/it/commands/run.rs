//! `windlass run`: which rows it works, its output, its exit code.

use crate::common::{CliSandbox, Data, job, parse, printed, raise, refused};
use serde_json::Value as Json;

fn fields(value: &Json) -> Vec<&str> {
    let mut fields: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

fn sorted<const N: usize>(mut fields: [&str; N]) -> [&str; N] {
    fields.sort_unstable();
    fields
}

#[tokio::test]
async fn run_works_the_job_to_its_end_and_prints_a_summary() {
    for (data, sandbox) in CliSandbox::on_both(1000, &raise(100)).await {
        let output = sandbox.run("run RAISE").await.ok();
        printed(
            &output,
            &[
                "COMPLETED  RAISE",
                "1,000 of 1,000",
                "1,000 processed, 0 skipped, 0 dead letters",
                "10 of 10 completed",
                "windlass audit",
            ],
        );
        data.raised_once(1000).await;
    }
}

#[tokio::test]
async fn the_json_has_exactly_the_documented_fields() {
    for (_data, sandbox) in CliSandbox::on_both(1000, &raise(100)).await {
        let sandbox = sandbox.env("USER", "clerk");
        let job = parse(&sandbox.run("run RAISE --json --priority 7 --concurrency 3").await.ok());
        let expected = sorted([
            "id",
            "jobType",
            "status",
            "phase",
            "waitsFor",
            "priority",
            "request",
            "submittedBy",
            "createdAt",
            "startedAt",
            "finishedAt",
            "items",
            "chunks",
            "outputs",
            "error",
        ]);
        assert_eq!(fields(&job), expected);
        let items = sorted(["total", "processed", "skipped", "dead", "conflicts"]);
        assert_eq!(fields(&job["items"]), items);
        let chunks = sorted(["total", "pending", "processing", "completed", "failed", "cancelled"]);
        assert_eq!(fields(&job["chunks"]), chunks);

        assert_eq!(job["jobType"], "RAISE");
        assert_eq!(job["status"], "COMPLETED");
        assert_eq!(job["phase"], Json::Null);
        assert_eq!(job["priority"], 7);
        assert_eq!(job["submittedBy"], "clerk");
        assert_eq!(job["error"], Json::Null);
        assert_eq!(job["items"]["total"], 1000);
        assert_eq!(job["items"]["processed"], 1000);
        assert_eq!(job["chunks"]["completed"], 10);
        assert_eq!(job["request"], serde_json::json!({"jobType": "RAISE", "priority": 7}));
        let id = job["id"].as_str().unwrap();
        assert_eq!(job["outputs"][0]["to"], "app.accounts");
        assert_eq!(sandbox.job(id).await, job, "`run`, `job` and `jobs` say the same");
        let mut listed = job;
        listed["outputs"] = serde_json::json!([]);
        assert_eq!(sandbox.json("jobs").await, serde_json::json!([listed]), "without outputs");
    }
}

#[tokio::test]
async fn a_filter_selects_only_the_rows_with_its_values() {
    for data in Data::both_with_accounts(1000).await {
        let filters = "source.filters = { branches = \"branch\" }\n";
        let sandbox = CliSandbox::on(&data, &(raise(30) + filters));
        let output = sandbox.run("run RAISE --filter branches=3,7,3 --json").await.ok();
        let job = parse(&output);
        assert_eq!(job["items"]["processed"], 200, "{job:#}");
        let raised = "SELECT count(*) FROM accounts WHERE amount = id * 7 % 1000 + 1";
        assert_eq!(data.number(raised).await, 200);
        assert_eq!(data.number(&format!("{raised} AND branch IN (3, 7)")).await, 200);
        sandbox.prove(job["id"].as_str().unwrap()).await;
        // No row has that value: a job without items completes.
        let none = parse(&sandbox.run("run RAISE --filter branches=99 --json").await.ok());
        assert_eq!(none["items"]["total"], 0);
    }
}

#[tokio::test]
async fn a_file_of_ids_selects_only_those_rows_without_duplicates() {
    for (data, sandbox) in CliSandbox::on_both(100, &raise(2)).await {
        sandbox.write("ids.txt", "5\n17\n\n  5  \n42\n");
        let output = sandbox.run("run RAISE --ids-file ids.txt --json").await.ok();
        assert_eq!(parse(&output)["items"]["processed"], 3, "{}", output.stdout);
        let raised = "SELECT count(*) FROM accounts WHERE amount = id * 7 % 1000 + 1";
        assert_eq!(data.number(raised).await, 3);
        assert_eq!(data.number(&format!("{raised} AND id IN (5, 17, 42)")).await, 3);
        sandbox.prove(parse(&output)["id"].as_str().unwrap()).await;
        refused(&sandbox.run("run RAISE --ids-file none.txt").await, &["--ids-file", "none.txt"]);
        sandbox.write("ids.txt", "5\nfive\n");
        refused(&sandbox.run("run RAISE --ids-file ids.txt").await, &["ids[1]", "five"]);
    }
}

#[tokio::test]
async fn params_are_bound_and_missing_ones_are_refused() {
    for data in Data::both_with_accounts(10).await {
        let sql = "UPDATE accounts SET amount = :by, owner = :who WHERE {chunk}";
        let sandbox = CliSandbox::on(&data, &job("SET", sql, 5));
        let sly = "who=x' || amount || '";
        sandbox.run_words(&["run", "SET", "--param", "by=77", "--param", sly]).await.ok();
        let right =
            "SELECT count(*) FROM accounts WHERE amount = 77 AND owner = 'x'' || amount || '''";
        assert_eq!(data.number(right).await, 10);
        refused(&sandbox.run("run SET --param by=1").await, &["params.who"]);
        refused(&sandbox.run("run SET --param by").await, &["--param", "NAME=VALUE"]);
    }
}

#[tokio::test]
async fn a_claim_restricts_the_job_and_is_required() {
    for (data, sandbox) in
        CliSandbox::on_both(100, &(raise(30) + "source.claims = { branch = \"branch\" }\n")).await
    {
        refused(&sandbox.run("run RAISE").await, &["claims.branch"]);
        data.untouched().await;
        let output = sandbox.run("run RAISE --claim branch=4 --json").await.ok();
        assert_eq!(parse(&output)["items"]["processed"], 10);
        let raised = "SELECT count(*) FROM accounts WHERE amount <> id * 7 % 1000";
        assert_eq!(data.number(&format!("{raised} AND branch = 4")).await, 10);
        assert_eq!(data.number(raised).await, 10);
    }
}

#[tokio::test]
async fn rows_that_the_statement_skips_are_counted_and_limits_are_kept() {
    for data in Data::both_with_accounts(100).await {
        let sql = "UPDATE accounts SET amount = amount + 1 WHERE {chunk} AND branch = 1";
        let sandbox = CliSandbox::on(&data, &job("RAISE", sql, 10));
        let job = parse(&sandbox.run("run RAISE --json").await.ok());
        assert_eq!(job["items"]["processed"], 10);
        assert_eq!(job["items"]["skipped"], 90);
        let limits = "run RAISE --parallel-segments 2 --max-items-per-segment 15 --json";
        let job = parse(&sandbox.run(limits).await.ok());
        assert_eq!(job["items"]["total"], 30, "{job:#}");
        sandbox.prove(job["id"].as_str().unwrap()).await;
    }
}
