//! `windlass dead`: dead letters are listed, repaired and redriven.

use crate::common::{CliSandbox, Data, job, parse, refused, text};
use serde_json::Value as Json;

/// Takes ten from every amount. Three accounts have less, and an amount may not be negative.
async fn with_three_letters(data: &Data) -> (CliSandbox, String) {
    data.run(
        "CREATE TABLE savings (id bigint PRIMARY KEY NOT NULL, owner text NOT NULL,
             amount bigint NOT NULL CONSTRAINT never_negative CHECK (amount >= 0));
         INSERT INTO savings SELECT id, owner, CASE WHEN id IN (7, 8, 95) THEN 5 ELSE 50 END
         FROM accounts;",
    )
    .await;
    let take = "UPDATE savings SET amount = amount - 10 WHERE {chunk}";
    let jobs = job("TAKE", take, 10).replace("\"accounts\"", "\"savings\"");
    let sandbox = CliSandbox::on(data, &jobs);
    let run = sandbox.run("run TAKE").await.with_dead_letters();
    assert!(run.stdout.contains("97 processed, 0 skipped, 3 dead letters"), "{}", run.stdout);
    let id = text(&sandbox.json("jobs").await[0]["id"]);
    assert!(run.stdout.contains(&format!("windlass dead list --job {id}")), "{}", run.stdout);
    (sandbox, id)
}

async fn letters(sandbox: &CliSandbox, filter: &str) -> Vec<Json> {
    let listed = sandbox.json(&format!("dead list {filter}")).await;
    let mut letters = listed.as_array().unwrap().clone();
    letters.sort_by_key(|letter| letter["key"].as_i64());
    letters
}

fn keys(letters: &[Json]) -> Vec<i64> {
    letters.iter().map(|letter| letter["key"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn letters_are_listed_shown_and_exported() {
    for data in Data::both_with_accounts(100).await {
        let (sandbox, id) = with_three_letters(&data).await;
        let all = letters(&sandbox, "").await;
        assert_eq!(keys(&all), [7, 8, 95]);
        for letter in &all {
            assert_eq!(letter["status"], "new");
            assert_eq!(letter["jobId"], id.as_str());
            assert_eq!(letter["jobType"], "TAKE");
            assert_eq!(letter["record"]["amount"], 5);
            assert!(text(&letter["error"]).contains("never_negative"), "{letter:#}");
        }
        assert_eq!(letters(&sandbox, &format!("--job {id}")).await.len(), 3);
        assert_eq!(letters(&sandbox, "--type TAKE").await.len(), 3);
        assert_eq!(letters(&sandbox, "--type OTHER").await.len(), 0);
        assert_eq!(letters(&sandbox, "--error NEVER_neg").await.len(), 3);
        assert_eq!(letters(&sandbox, "--error nowhere").await.len(), 0);
        assert_eq!(letters(&sandbox, "--older-than 1h").await.len(), 0);
        assert_eq!(letters(&sandbox, "--status ignored").await.len(), 0);
        assert_eq!(letters(&sandbox, "--limit 2").await.len(), 2);

        let table = sandbox.run("dead list").await.ok().stdout;
        assert!(table.contains("KEY") && table.contains("95"), "{table}");
        let letter = text(&all[2]["id"]);
        let shown = sandbox.run(&format!("dead show {letter}")).await.ok().stdout;
        for part in ["TAKE", "95", "never_negative", "owner: owner 95", "amount: 5"] {
            assert!(shown.contains(part), "`{part}` is not in:\n{shown}");
        }
        assert_eq!(sandbox.json(&format!("dead show {letter}")).await, all[2]);

        let exported = sandbox.run("dead export --error negative").await.ok().stdout;
        let lines: Vec<Json> =
            exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| all.contains(line)));
        sandbox.run("dead export --to letters.jsonl").await.ok();
        assert_eq!(sandbox.read("letters.jsonl").lines().count(), 3);
        sandbox.prove(&id).await;
    }
}

#[tokio::test]
async fn repaired_letters_are_redriven_and_the_others_fail_again() {
    for data in Data::both_with_accounts(100).await {
        let (sandbox, id) = with_three_letters(&data).await;
        data.run("UPDATE savings SET amount = 20 WHERE id IN (7, 95)").await;

        let redriven = sandbox.json(&format!("dead redrive --job {id}")).await;
        assert_eq!(redriven[0]["originalJob"], id.as_str());
        assert_eq!(redriven[0]["letters"], 3);
        let again = text(&redriven[0]["jobId"]);
        // While it is being redriven, a letter stays new, names its redrive, and is in no other redrive.
        for letter in letters(&sandbox, "").await {
            assert_eq!(letter["status"], "new");
            assert_eq!(letter["redriveJob"], again.as_str());
        }
        let nothing = sandbox.run("dead redrive --all").await.ok();
        assert!(nothing.stdout.contains("nothing to redrive"), "{}", nothing.stdout);

        let worked = sandbox.run(&format!("worker --job {again} --json")).await.with_dead_letters();
        assert_eq!(parse(&worked)["items"]["processed"], 2);
        assert_eq!(parse(&worked)["items"]["dead"], 1);
        assert_eq!(keys(&letters(&sandbox, "--status reprocessed").await), [7, 95]);
        let still = letters(&sandbox, "--status new").await;
        assert_eq!(keys(&still), [8]);
        assert_eq!(still[0]["jobId"], id.as_str(), "the letter is the same");
        assert_eq!(letters(&sandbox, "").await.len(), 3);
        assert_eq!(data.number("SELECT count(*) FROM savings WHERE amount = 10").await, 2);
        sandbox.prove(&again).await;
        sandbox.prove(&id).await;

        // The last one is repaired too, and redriven by its id.
        data.run("UPDATE savings SET amount = 20 WHERE id = 8").await;
        let letter = text(&still[0]["id"]);
        let output = sandbox.run(&format!("dead redrive {letter}")).await.ok();
        let last = output.stdout.split_whitespace().next().unwrap();
        // The hint goes to stderr; stdout begins with the id, for scripts.
        assert!(output.stderr.contains(&format!("windlass worker --job {last}")), "{output:?}");
        sandbox.run(&format!("worker --job {last}")).await.ok();
        assert_eq!(letters(&sandbox, "--status reprocessed").await.len(), 3);
        let right = "SELECT count(*) FROM savings WHERE amount = CASE WHEN id IN (7, 8, 95) \
                     THEN 10 ELSE 40 END";
        assert_eq!(data.number(right).await, 100);
    }
}

#[tokio::test]
async fn ignored_letters_are_not_redriven() {
    for data in Data::both_with_accounts(100).await {
        let (sandbox, _) = with_three_letters(&data).await;
        let all = letters(&sandbox, "").await;
        let output = sandbox.run(&format!("dead ignore {}", text(&all[0]["id"]))).await.ok();
        assert!(output.stdout.contains("1 dead letter ignored"), "{}", output.stdout);
        assert_eq!(keys(&letters(&sandbox, "--status ignored").await), [7]);
        assert_eq!(sandbox.json("dead ignore --all").await["ignored"], 2);
        assert_eq!(letters(&sandbox, "--status new").await.len(), 0);
        assert_eq!(sandbox.json("dead redrive --all").await, serde_json::json!([]));
    }
}

#[tokio::test]
async fn redrive_and_ignore_need_a_selection() {
    let data = Data::sqlite().with_accounts(100).await;
    let (sandbox, _) = with_three_letters(&data).await;
    for command in ["dead redrive", "dead ignore"] {
        refused(&sandbox.run(command).await, &["--job", "--all"]);
    }
    assert_eq!(letters(&sandbox, "--status new").await.len(), 3);
    refused(&sandbox.run("dead list --older-than soon").await, &["--older-than", "soon"]);
    refused(&sandbox.run("dead list --status fresh").await, &["fresh", "reprocessed"]);
}

#[tokio::test]
async fn an_exceeded_budget_pauses_the_job_and_resuming_grants_another() {
    for data in Data::both_with_accounts(100).await {
        let sql = "UPDATE accounts SET amount = CASE WHEN id % 10 = 3 THEN NULL \
                   ELSE amount + 1 END WHERE {chunk}";
        let budget = "failures = { budget = 4, on_exceeded = \\\"pause\\\" }\n".replace('\\', "");
        let sandbox = CliSandbox::on(&data, &(job("RAISE", sql, 10) + &budget));
        let paused = sandbox.run("run RAISE --concurrency 1 --json").await;
        assert_eq!(paused.code, Some(4), "{paused:?}");
        let job = parse(&paused);
        assert!(text(&job["error"]).contains("failure budget"), "{job:#}");
        let id = text(&job["id"]);
        sandbox.run(&format!("resume {id}")).await.ok();
        assert_eq!(sandbox.run(&format!("worker --job {id} --concurrency 1")).await.code, Some(4));
        sandbox.run(&format!("resume {id}")).await.ok();
        let worked = sandbox.run(&format!("worker --job {id} --concurrency 1")).await;
        worked.with_dead_letters();
        assert_eq!(sandbox.job(&id).await["items"]["dead"], 10);
        data.raised_once(90).await;
        sandbox.prove(&id).await;
    }
}
