//! Candidates that fail are tried three times, become dead letters, and can be redriven after a repair.

use crate::candidates::fixture::{CandidatesFixture, MISSING};
use crate::common::text;
use serde_json::{Value as Json, json};
use std::fs;

/// All dead letters.
async fn letters(fixture: &CandidatesFixture) -> Vec<Json> {
    fixture.sandbox.json("dead list").await.as_array().unwrap().clone()
}

#[tokio::test]
async fn candidates_without_an_original_are_redriven_when_it_exists() {
    let fixture = CandidatesFixture::new(400).await;
    let job = fixture.complete("MIGRATE_CANDIDATES").await;
    assert_eq!(job["items"]["dead"], MISSING, "{job:#}");
    let found = letters(&fixture).await;
    assert_eq!(found.len() as i64, MISSING);
    for letter in &found {
        assert_eq!(letter["status"], "new", "{letter:#}");
        assert_eq!(letter["error"], "it has no original", "{letter:#}");
        assert_eq!(letter["attempts"], 1, "a permanent error is not retried: {letter:#}");
        assert!(letter["record"]["document"]["creator"].is_string(), "{letter:#}");
    }
    // One letter is ignored.
    let ignored = text(&found[0]["id"]);
    fixture.sandbox.run(&format!("dead ignore {ignored}")).await.ok();
    fixture.generate("--originals --candidates 400").await;
    let id = text(&job["id"]);
    let redriven = fixture.sandbox.json(&format!("dead redrive --job {id}")).await;
    let redrive = text(&redriven[0]["jobId"]);
    fixture.sandbox.run(&format!("worker --job {redrive}")).await.ok();
    assert_eq!(fixture.at_version(2, "document ? 'title'").await, 399);
    assert_eq!(fixture.at_version(1, "NOT document ? 'title'").await, 1);
    let mut statuses: Vec<String> =
        letters(&fixture).await.iter().map(|letter| text(&letter["status"])).collect();
    statuses.sort();
    assert_eq!(statuses, ["ignored", "reprocessed", "reprocessed"]);
}

#[tokio::test]
async fn an_unreadable_original_is_tried_three_times_and_its_batch_continues() {
    let fixture = CandidatesFixture::new(100).await;
    fixture.generate("--originals --candidates 100").await;
    let poison = fixture.identifiers("2023", 2).await;
    for id in &poison {
        fs::write(fixture.sandbox.path(&format!("originals/{id}.json")), "{ not JSON").unwrap();
    }
    let job = fixture.complete("MIGRATE_CANDIDATES").await;
    let items = &job["items"];
    assert_eq!((&items["processed"], &items["dead"]), (&json!(98), &json!(2)), "{job:#}");
    for letter in letters(&fixture).await {
        assert_eq!(letter["attempts"], 3, "{letter:#}");
        assert!(text(&letter["error"]).contains("cannot be read"), "{letter:#}");
        assert!(poison.contains(&text(&letter["key"])), "{letter:#}");
    }
    // The other candidates of the same batches are written once.
    assert_eq!(fixture.at_version(2, "document ? 'title'").await, 98);
    assert_eq!(fixture.at_version(1, "true").await, 2);
}

#[tokio::test]
async fn a_handler_may_answer_with_batch_item_failures() {
    let fixture = CandidatesFixture::new(60).await;
    let failing = fixture.identifiers("2025", 2).await;
    // Reports the failed items of a batch. All others succeed without a change.
    let handler = format!(
        "import json, sys\n\
         for line in sys.stdin:\n    \
             keys = [item['key'] for item in json.loads(line)['items']]\n    \
             open('given', 'a').write(''.join(key + '\\n' for key in keys))\n    \
             failures = [{{'itemIdentifier': key}} for key in keys if key in {failing:?}]\n    \
             print(json.dumps({{'batchItemFailures': failures}}), flush=True)\n"
    );
    fixture.sandbox.write("handler.py", &handler);
    fixture.edit("[\"candidates-migrate\"]", "[\"python3\", \"handler.py\"]");
    let job = fixture.complete("MIGRATE_CANDIDATES").await;
    let items = &job["items"];
    assert_eq!((&items["processed"], &items["dead"]), (&json!(58), &json!(2)), "{job:#}");
    let given = fixture.sandbox.read("given");
    assert_eq!(
        given.lines().count(),
        58 + 2 * 3,
        "the successful ones once, the others three times"
    );
    for letter in letters(&fixture).await {
        assert!(failing.contains(&text(&letter["key"])), "{letter:#}");
        assert_eq!(letter["attempts"], 3, "{letter:#}");
    }
}
