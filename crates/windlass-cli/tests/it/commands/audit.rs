//! `windlass audit` proves correct jobs and finds errors in others.

use crate::common::{CliSandbox, Data, raise, text};
use serde_json::Value as Json;

#[tokio::test]
async fn a_completed_job_is_proven() {
    for (_data, sandbox) in CliSandbox::on_both(1000, &raise(10)).await {
        let id = text(&sandbox.json("run RAISE").await["id"]);
        let output = sandbox.run(&format!("audit {id}")).await.ok();
        assert!(output.stdout.starts_with("PROVEN"), "{}", output.stdout);
        assert!(output.stdout.contains("1,000 rows read = 1,000 processed"), "{}", output.stdout);
        let audit = sandbox.prove(&id).await;
        assert_eq!(audit["chunks"], 100);
        assert_eq!(audit["planned"], 1000);
        assert_eq!(audit["drift"], serde_json::json!({"appeared": 0, "disappeared": 0}));
        assert_eq!(audit["ledgerRows"], 100);
        assert_eq!(
            (&audit["findings"], &audit["notJudged"]),
            (&serde_json::json!([]), &serde_json::json!([]))
        );
    }
}

#[tokio::test]
async fn rows_inserted_and_deleted_since_are_drift_and_the_job_cannot_be_judged() {
    for (data, sandbox) in CliSandbox::on_both(100, &raise(10)).await {
        let id = text(&sandbox.json("run RAISE").await["id"]);
        data.run("DELETE FROM accounts WHERE id IN (3, 4, 5)").await;
        let output = sandbox.run(&format!("audit {id}")).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stdout.starts_with("CANNOT BE JUDGED"), "{}", output.stdout);
        let drift = "drift since planning: 0 rows appeared, 3 disappeared";
        assert!(output.stdout.contains(drift), "{}", output.stdout);
        assert!(output.stdout.contains("  ? "), "{}", output.stdout);
        let output = sandbox.run(&format!("audit {id} --no-source --json")).await;
        let audit: Json = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((output.code, &audit["verdict"]), (Some(1), &Json::from("cannotBeJudged")));
        assert_eq!(audit["notJudged"], serde_json::json!(["the source was not read"]));
    }
}

#[tokio::test]
async fn an_incomplete_job_is_not_proven() {
    let data = Data::sqlite().with_accounts(100).await;
    let sandbox = CliSandbox::on(&data, &raise(10));
    let id = sandbox.submit("RAISE").await;
    let output = sandbox.run(&format!("audit {id}")).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stdout.starts_with("NOT PROVEN"), "{}", output.stdout);
    assert!(output.stdout.contains("QUEUED, not COMPLETED"), "{}", output.stdout);
}

#[tokio::test]
async fn a_missing_or_incomplete_chunk_is_found() {
    let data = Data::postgres().await.with_accounts(100).await;
    let sandbox = CliSandbox::on(&data, &raise(10));
    for damage in [
        "DELETE FROM windlass_chunks WHERE number = 4 AND job_id = 'ID'",
        "UPDATE windlass_chunks SET cursor = '[35]' WHERE number = 3 AND job_id = 'ID'",
        "UPDATE windlass_chunks SET read = read + 1 WHERE number = 3 AND job_id = 'ID'",
        // The boundaries of the chunks depend on the order of planning, so take any chunk that has a lower bound.
        r#"UPDATE windlass_chunks SET key_set = regexp_replace(key_set, '"after":\[\d+\]', '"after":[-7]')
           WHERE job_id = 'ID' AND number = (SELECT max(number) FROM windlass_chunks
               WHERE job_id = 'ID' AND key_set LIKE '%"after":[%')"#,
        "UPDATE windlass_segments SET status = 'PENDING' WHERE number = 1 AND job_id = 'ID'",
    ] {
        let id = text(&sandbox.json("run RAISE").await["id"]);
        sandbox.prove(&id).await;
        data.run(&damage.replace("ID", &id)).await;
        let output = sandbox.run(&format!("audit {id}")).await;
        assert_eq!(output.code, Some(1), "{damage}: {output:?}");
        assert!(output.stdout.contains("NOT PROVEN"), "{damage}: {}", output.stdout);
        assert!(output.stdout.contains("  ! "), "{damage}: {}", output.stdout);
    }
}
