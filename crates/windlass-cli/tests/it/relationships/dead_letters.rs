//! A point that cannot be resolved becomes a dead letter with all its data. It is reviewed, redriven, ignored and
//! archived.

use crate::common::text;
use crate::relationships::fixture::RelationshipsFixture;
use serde_json::Value as Json;

const RESOLVED: &str = "SELECT count(*) FROM relationships";

#[tokio::test]
async fn a_failing_point_is_a_dead_letter_and_the_others_are_resolved() {
    for fixture in RelationshipsFixture::both().await {
        let _worker = fixture.resolve().await;
        let id = fixture.job_of("sources/payment.py").await;
        let job = fixture.ended(&id).await;
        assert_eq!(job["status"], "COMPLETED");
        assert_eq!((&job["items"]["processed"], &job["items"]["dead"]), (&3.into(), &2.into()));
        fixture.sandbox.prove(&id).await;

        let letters = fixture.letters(&format!("--job {id}")).await;
        let letter = &letters[0];
        assert_eq!(letters.len(), 2);
        assert_eq!((&letter["jobId"], &letter["status"]), (&Json::from(id), &"new".into()));
        assert!(text(&letter["createdAt"]).ends_with('Z'), "in UTC: {letter:#}");
        assert_eq!(letter["error"], "what is called is computed: HANDLERS[kind]");
        assert!(text(&letter["context"]["trace"]).contains("Traceback"), "{letter:#}");
        // The complete item, as the application wrote it.
        let record = letter["record"].as_object().unwrap();
        let fields: Vec<&str> = record.keys().map(String::as_str).collect();
        let all = "context fileId filePath id lineNumber name rawCode type";
        assert_eq!(fields.join(" "), all);
        assert_eq!(record["rawCode"], "def pay(kind, amount):\n    HANDLERS[kind](amount)");

        // Each relationship of the resolved points, once.
        let expected = "('append', 'total', 'sum', 'price_of', 'list', 'Exception', 'Refused', \
                        'print', 'format')";
        let wrong = format!("SELECT count(*) FROM relationships WHERE name NOT IN {expected}");
        assert_eq!(fixture.number(&wrong).await, 0);
        // A class includes the calls of its methods.
        assert_eq!(fixture.number(RESOLVED).await, 11);
    }
}

#[tokio::test]
async fn letters_are_reviewed_redriven_ignored_and_archived() {
    for fixture in RelationshipsFixture::both().await {
        let _worker = fixture.resolve().await;
        let letters = fixture.letters("").await;
        let shown =
            fixture.sandbox.run(&format!("dead show {}", text(&letters[0]["id"]))).await.ok();
        assert!(shown.stdout.contains("HANDLERS[kind](amount)"), "{}", shown.stdout);

        // One of them is ignored.
        fixture.sandbox.run(&format!("dead ignore {}", text(&letters[1]["id"]))).await.ok();
        // The other still fails and stays the same letter.
        let again = fixture.sandbox.json("dead redrive --type RESOLVE_RELATIONSHIPS").await;
        fixture.ended(&text(&again[0]["jobId"])).await;
        assert_eq!(fixture.letters("--status new").await[0]["id"], letters[0]["id"]);

        fixture.sandbox.write("overrides.json", r#"{"HANDLERS[kind]": ["pay_by_card"]}"#);
        let again = fixture.sandbox.json("dead redrive --type RESOLVE_RELATIONSHIPS").await;
        let job = fixture.ended(&text(&again[0]["jobId"])).await;
        assert_eq!((&job["items"]["total"], &job["items"]["processed"]), (&1.into(), &1.into()));
        let found = "SELECT count(*) FROM relationships WHERE name = 'pay_by_card'";
        assert_eq!((fixture.number(found).await, fixture.number(RESOLVED).await), (1, 12));

        fixture.sandbox.run("dead export --to archive.jsonl").await.ok();
        let archive = fixture.sandbox.read("archive.jsonl");
        let mut lines: Vec<Json> =
            archive.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.sort_by_key(|letter| text(&letter["key"]));
        let statuses: Vec<String> = lines.iter().map(|letter| text(&letter["status"])).collect();
        assert_eq!(statuses, ["reprocessed", "ignored"]);
        assert!(lines.iter().all(|letter| letter["record"]["rawCode"].is_string()));
    }
}
