//! One job per file with all its points, no job for a file without points, and refused requests.

use crate::common::{Data, eventually, text};
use crate::relationships::fixture::{RelationshipsFixture, SOURCES};
use serde_json::json;

#[tokio::test]
async fn the_points_of_a_file_are_one_job_and_a_file_without_points_has_none() {
    for fixture in RelationshipsFixture::both().await {
        let analysed = fixture.analyse(SOURCES).await.ok();
        assert!(analysed.stdout.contains("settings.py: 0 points, no job"), "{analysed:?}");
        let _worker = fixture.worker();
        for (file, points) in [("sources/cart.py", 3), ("sources/payment.py", 5)] {
            let job = fixture.ended(&fixture.job_of(file).await).await;
            assert_eq!(job["items"]["total"], points, "{job:#}");
            assert_eq!(job["request"]["params"]["fileId"], file);
        }
        assert_eq!(fixture.jobs().await.len(), 2);
    }
}

#[tokio::test]
async fn points_of_two_files_are_refused_before_the_application_commits() {
    let point = |id: i64, file: &str| json!({"id": id, "fileId": file, "rawCode": "pass"});
    for fixture in RelationshipsFixture::both().await {
        for payload in [
            json!({"jobId": "1", "fileId": "a", "pois": [point(1, "a"), point(2, "a"), point(3, "b")]}),
            json!({"jobId": "1", "fileId": "b", "pois": [point(1, "a")]}),
            json!({"pois": [point(1, "a"), point(2, "b")]}),
        ] {
            let refused = fixture.put(&payload).await.unwrap_err();
            let expected = match &fixture.data {
                Data::Postgres(_) => "all items of a request must have the same value",
                _ => "items_have_different_units",
            };
            assert!(refused.contains(expected), "{payload}: {refused}");
        }
        // What the application wrote in the same transaction is not there either.
        assert_eq!(fixture.number("SELECT count(*) FROM files").await, 0);
        assert_eq!(fixture.waiting().await.len(), 0);
    }
}

/// As in a database that cannot check it, or that has not been told the unit yet.
#[tokio::test]
async fn the_relay_refuses_points_of_two_files_and_others_continue() {
    for fixture in RelationshipsFixture::both().await {
        let worker = fixture.worker();
        fixture.analyse("sources/cart.py").await.ok();
        fixture.ended(&fixture.job_of("sources/cart.py").await).await;
        fixture.data.run("UPDATE windlass_outbox_types SET unit = NULL").await;
        let point = |id: i64, file: &str| json!({"id": id, "fileId": file, "rawCode": "pass"});
        let mixed = json!({"fileId": "a", "pois": [point(1, "a"), point(2, "a"), point(3, "b")]});
        fixture.put(&mixed).await.unwrap();
        fixture.analyse("sources/payment.py").await.ok();
        let job = fixture.ended(&fixture.job_of("sources/payment.py").await).await;
        assert_eq!(job["status"], "COMPLETED");
        let mut waiting = Vec::new();
        eventually("only the other waits, and is refused", async || {
            waiting = fixture.waiting().await;
            waiting.len() == 1 && waiting[0]["error"].is_string()
        })
        .await;
        let why = text(&waiting[0]["error"]);
        assert!(why.contains("items[2].fileId: is \"b\", but items[0].fileId is \"a\""), "{why}");
        let shown = fixture.sandbox.run("outbox").await.ok();
        assert!(shown.stdout.contains("items[2].fileId"), "{}", shown.stdout);
        let log = worker.stderr();
        assert_eq!(log.matches("outbox request rejected").count(), 1, "once: {log}");
    }
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_with_the_limit() {
    for fixture in RelationshipsFixture::both().await {
        let large = format!("def large():\n    '''{}'''\n", "x".repeat(8 << 20));
        fixture.sandbox.write("large.py", &large);
        let analysed = fixture.analyse("large.py").await;
        assert_eq!(analysed.code, Some(1));
        assert!(analysed.stderr.contains("8388608"), "{}", analysed.stderr);
        assert_eq!(fixture.number("SELECT count(*) FROM files").await, 0);
        assert_eq!(fixture.waiting().await.len(), 0);
    }
}
