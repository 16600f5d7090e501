//! `windlass dead`: records that failed for good, looked at, mended, worked again.

use crate::common::{Data, Place, job, parse, refused, text};
use serde_json::Value as Json;

/// Takes ten from every amount; three accounts have less, and may not go below zero.
async fn with_three_letters(data: &Data) -> (Place, String) {
    data.run(
        "CREATE TABLE purses (id bigint PRIMARY KEY NOT NULL, owner text NOT NULL,
             amount bigint NOT NULL CONSTRAINT never_negative CHECK (amount >= 0));
         INSERT INTO purses SELECT id, owner, CASE WHEN id IN (7, 8, 95) THEN 5 ELSE 50 END
         FROM accounts;",
    )
    .await;
    let take = "UPDATE purses SET amount = amount - 10 WHERE {chunk}";
    let jobs = job("TAKE", take, 10).replace("\"accounts\"", "\"purses\"");
    let place = Place::on(data, &jobs);
    let run = place.run("run TAKE").await.ok();
    assert!(run.stdout.contains("97 processed, 0 skipped, 3 dead letters"), "{}", run.stdout);
    let id = text(&place.json("jobs").await[0]["id"]);
    assert!(run.stdout.contains(&format!("windlass dead list --job {id}")), "{}", run.stdout);
    (place, id)
}

async fn letters(place: &Place, filter: &str) -> Vec<Json> {
    let listed = place.json(&format!("dead list {filter}")).await;
    let mut letters = listed.as_array().unwrap().clone();
    letters.sort_by_key(|letter| letter["key"].as_i64());
    letters
}

fn keys(letters: &[Json]) -> Vec<i64> {
    letters.iter().map(|letter| letter["key"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn letters_are_listed_shown_and_exported() {
    for data in Data::both().await {
        let data = data.with_accounts(100).await;
        let (place, id) = with_three_letters(&data).await;
        let all = letters(&place, "").await;
        assert_eq!(keys(&all), [7, 8, 95]);
        for letter in &all {
            assert_eq!(letter["status"], "new");
            assert_eq!(letter["jobId"], id.as_str());
            assert_eq!(letter["jobType"], "TAKE");
            assert_eq!(letter["record"]["amount"], 5);
            assert!(text(&letter["error"]).contains("never_negative"), "{letter:#}");
        }
        assert_eq!(letters(&place, &format!("--job {id}")).await.len(), 3);
        assert_eq!(letters(&place, "--type TAKE").await.len(), 3);
        assert_eq!(letters(&place, "--type OTHER").await.len(), 0);
        assert_eq!(letters(&place, "--error NEVER_neg").await.len(), 3);
        assert_eq!(letters(&place, "--error nowhere").await.len(), 0);
        assert_eq!(letters(&place, "--older-than 1h").await.len(), 0);
        assert_eq!(letters(&place, "--status ignored").await.len(), 0);
        assert_eq!(letters(&place, "--limit 2").await.len(), 2);

        let table = place.run("dead list").await.ok().stdout;
        assert!(table.contains("KEY") && table.contains("95"), "{table}");
        let letter = text(&all[2]["id"]);
        let shown = place.run(&format!("dead show {letter}")).await.ok().stdout;
        for part in ["TAKE", "95", "never_negative", "owner: owner 95", "amount: 5"] {
            assert!(shown.contains(part), "`{part}` is not in:\n{shown}");
        }
        assert_eq!(place.json(&format!("dead show {letter}")).await, all[2]);

        let exported = place.run("dead export --error negative").await.ok().stdout;
        let lines: Vec<Json> =
            exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| all.contains(line)));
        place.run("dead export --to letters.jsonl").await.ok();
        assert_eq!(place.read("letters.jsonl").lines().count(), 3);
        place.prove(&id).await;
    }
}

#[tokio::test]
async fn mended_letters_are_redriven_and_the_others_fail_again() {
    for data in Data::both().await {
        let data = data.with_accounts(100).await;
        let (place, id) = with_three_letters(&data).await;
        data.run("UPDATE purses SET amount = 20 WHERE id IN (7, 95)").await;

        let redriven = place.json(&format!("dead redrive --job {id}")).await;
        assert_eq!(redriven[0]["originalJob"], id.as_str());
        assert_eq!(redriven[0]["letters"], 3);
        let again = text(&redriven[0]["jobId"]);
        // While it is under way a letter stays new, names its redrive, and is in no other.
        for letter in letters(&place, "").await {
            assert_eq!(letter["status"], "new");
            assert_eq!(letter["redriveJob"], again.as_str());
        }
        let nothing = place.run("dead redrive --all").await.ok();
        assert!(nothing.stdout.contains("nothing to redrive"), "{}", nothing.stdout);

        let worked = place.run(&format!("worker --job {again} --json")).await.ok();
        assert_eq!(parse(&worked)["items"]["processed"], 2);
        assert_eq!(parse(&worked)["items"]["dead"], 1);
        assert_eq!(keys(&letters(&place, "--status reprocessed").await), [7, 95]);
        let still = letters(&place, "--status new").await;
        assert_eq!(keys(&still), [8]);
        assert_eq!(still[0]["jobId"], id.as_str(), "it is the same letter");
        assert_eq!(letters(&place, "").await.len(), 3);
        assert_eq!(data.number("SELECT count(*) FROM purses WHERE amount = 10").await, 2);
        place.prove(&again).await;
        place.prove(&id).await;

        // The last one is mended too, and named by itself.
        data.run("UPDATE purses SET amount = 20 WHERE id = 8").await;
        let letter = text(&still[0]["id"]);
        let output = place.run(&format!("dead redrive {letter}")).await.ok();
        let last = output.stdout.split_whitespace().next().unwrap();
        // The hint is for people; what a script reads begins with the id.
        assert!(output.stderr.contains(&format!("windlass worker --job {last}")), "{output:?}");
        place.run(&format!("worker --job {last}")).await.ok();
        assert_eq!(letters(&place, "--status reprocessed").await.len(), 3);
        let right = "SELECT count(*) FROM purses WHERE amount = CASE WHEN id IN (7, 8, 95) \
                     THEN 10 ELSE 40 END";
        assert_eq!(data.number(right).await, 100);
    }
}

#[tokio::test]
async fn ignored_letters_are_left_alone() {
    for data in Data::both().await {
        let data = data.with_accounts(100).await;
        let (place, _) = with_three_letters(&data).await;
        let all = letters(&place, "").await;
        let output = place.run(&format!("dead ignore {}", text(&all[0]["id"]))).await.ok();
        assert!(output.stdout.contains("1 dead letter ignored"), "{}", output.stdout);
        assert_eq!(keys(&letters(&place, "--status ignored").await), [7]);
        assert_eq!(place.json("dead ignore --all").await["ignored"], 2);
        assert_eq!(letters(&place, "--status new").await.len(), 0);
        assert_eq!(place.json("dead redrive --all").await, serde_json::json!([]));
    }
}

#[tokio::test]
async fn acting_on_letters_needs_to_be_told_which() {
    let data = Data::sqlite().with_accounts(100).await;
    let (place, _) = with_three_letters(&data).await;
    for command in ["dead redrive", "dead ignore"] {
        refused(&place.run(command).await, &["--job", "--all"]);
    }
    assert_eq!(letters(&place, "--status new").await.len(), 3);
    refused(&place.run("dead list --older-than soon").await, &["--older-than", "soon"]);
    refused(&place.run("dead list --status fresh").await, &["fresh", "reprocessed"]);
}

#[tokio::test]
async fn an_exceeded_budget_pauses_the_job_and_resuming_grants_another() {
    for data in Data::both().await {
        let data = data.with_accounts(100).await;
        let sql = "UPDATE accounts SET amount = CASE WHEN id % 10 = 3 THEN NULL \
                   ELSE amount + 1 END WHERE {chunk}";
        let budget = "failures = { budget = 4, on_exceeded = \\\"pause\\\" }\n".replace('\\', "");
        let place = Place::on(&data, &(job("RAISE", sql, 10) + &budget));
        let paused = place.run("run RAISE --concurrency 1 --json").await;
        assert_eq!(paused.code, Some(4), "{paused:?}");
        let job = parse(&paused);
        assert!(text(&job["error"]).contains("failure budget"), "{job:#}");
        let id = text(&job["id"]);
        place.run(&format!("resume {id}")).await.ok();
        assert_eq!(place.run(&format!("worker --job {id} --concurrency 1")).await.code, Some(4));
        place.run(&format!("resume {id}")).await.ok();
        place.run(&format!("worker --job {id} --concurrency 1")).await.ok();
        assert_eq!(place.job(&id).await["items"]["dead"], 10);
        data.raised_once(90).await;
        place.prove(&id).await;
    }
}
