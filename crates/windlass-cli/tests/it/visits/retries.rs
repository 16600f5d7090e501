//! A failing chunk is retried three times, the others continue, and `windlass retry` runs only the failed ones.

use crate::common::said;
use crate::visits::fixture::{CHUNKS, VisitsFixture};
use serde_json::json;

#[tokio::test]
async fn the_example_has_the_settings_that_its_readme_states() {
    let fixture = VisitsFixture::new().await;
    let check = fixture.sandbox.json("check").await;
    let definition = &check["jobTypes"][0]["definition"];
    // Three retries after 2, 4 and 8 seconds, as `RetryPolicy` computes them.
    let retry = json!({"attempts": 4, "backoff": "2s", "factor": 2.0, "max": "1m"});
    assert_eq!(definition["retry"], retry);
    assert_eq!(definition["throughput"], json!({"concurrency": 5}));
    assert_eq!(definition["chunk"]["timeout"], "15m");
    assert_eq!(definition["step"]["mark"], "UpdateFlag");
    assert_eq!(definition["source"]["key"], json!(["VisitDate", "SSN"]));
}

#[tokio::test]
async fn two_chunks_of_thirty_fail_and_only_they_are_retried() {
    let fixture = VisitsFixture::new().await;
    // A transient error (object in use), so the whole chunk is retried.
    for position in [1_250, 9_000] {
        fixture.break_at(position, "55006").await;
    }
    let run = fixture.sandbox.run("run UPDATE_VISITS --parallel-segments 1").await;
    assert_eq!(run.code, Some(1), "{run:?}");
    let id = fixture.sandbox.json("jobs").await[0]["id"].as_str().unwrap().to_owned();

    // The failed chunks are those with the broken rows, after four attempts each.
    let chunks = fixture.sandbox.chunks(&id).await;
    let mut failed = Vec::new();
    for chunk in &chunks {
        let broken = "SELECT count(*) FROM broken JOIN maps USING (visit_id) WHERE";
        let broken = fixture.number(&format!("{broken} {}", VisitsFixture::within(chunk))).await;
        let (status, attempts) = if broken > 0 { ("FAILED", 4) } else { ("COMPLETED", 0) };
        assert_eq!(chunk["status"], status, "{chunk:#}");
        assert_eq!(chunk["attempts"], attempts, "{chunk:#}");
        if broken > 0 {
            assert!(chunk["error"].as_str().unwrap().contains("is broken"), "{chunk:#}");
            failed.push(chunk["chunk"].to_string());
        }
    }
    assert_eq!(failed.len(), 2);

    // The summary shows how many succeeded, and which failed and why.
    let summary = said(&run);
    for line in [
        "28 of 30 completed, 2 failed".to_owned(),
        format!("28/30 chunks completed, failed: [{}]", failed.join(", ")),
        "is broken".to_owned(),
        format!("windlass retry {id}"),
    ] {
        assert!(summary.contains(&line), "`{line}` is not in: {summary}");
    }
    assert!(said(&fixture.sandbox.run("jobs").await).contains("28/30"));
    assert_eq!(fixture.marked().await, 0, "a failed chunk leaves no mark");
    let audit = fixture.sandbox.run(&format!("audit {id}")).await;
    assert_eq!(audit.code, Some(1));
    for number in &failed {
        assert!(said(&audit).contains(&format!("chunk {number} is FAILED")), "{audit:?}");
    }

    // After a repair, a retry continues the two chunks. The others are not changed.
    fixture.mend().await;
    let retried = fixture.sandbox.run(&format!("retry {id}")).await.ok();
    assert!(said(&retried).contains(&format!("windlass worker --job {id}")));
    fixture.complete(&id).await;
    for (before, after) in chunks.iter().zip(fixture.sandbox.chunks(&id).await) {
        let was_retried = failed.contains(&after["chunk"].to_string());
        assert_eq!(before["epoch"] != after["epoch"], was_retried, "{after:#}");
        assert_eq!(after["status"], "COMPLETED", "{after:#}");
    }
    assert_eq!(chunks.len() as i64, CHUNKS);
    fixture.updated_once().await;
    fixture.sandbox.prove(&id).await;
}
