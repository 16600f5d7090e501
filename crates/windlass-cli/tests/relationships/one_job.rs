//! One job per file with all its points, none for none, and what a request may not be.

use crate::common::{eventually, text};
use crate::world::{SOURCES, World};
use serde_json::json;

#[tokio::test]
async fn the_points_of_a_file_are_one_job_and_no_points_are_none() {
    for world in World::both().await {
        let analysed = world.analyse(SOURCES).await.ok();
        assert!(analysed.stdout.contains("settings.py: 0 points, no job"), "{analysed:?}");
        let _worker = world.worker();
        for (file, points) in [("sources/cart.py", 3), ("sources/payment.py", 5)] {
            let job = world.ended(&world.job_of(file).await).await;
            assert_eq!(job["items"]["total"], points, "{job:#}");
            assert_eq!(job["request"]["params"]["fileId"], file);
        }
        assert_eq!(world.jobs().await.len(), 2);
    }
}

#[tokio::test]
async fn points_of_two_files_are_refused_and_named_while_others_go_on() {
    for world in World::both().await {
        let point = |id: i64, file: &str| json!({"id": id, "fileId": file, "rawCode": "pass"});
        world.put(&json!({"items": [point(1, "a"), point(2, "a"), point(3, "b")]})).await;
        world.analyse("sources/cart.py").await.ok();
        let worker = world.worker();
        let job = world.ended(&world.job_of("sources/cart.py").await).await;
        assert_eq!(job["status"], "COMPLETED");
        eventually("the other is refused", async || world.waiting().await[0]["error"].is_string())
            .await;
        let waiting = world.waiting().await;
        assert_eq!(waiting.len(), 1, "{waiting:#?}");
        let why = text(&waiting[0]["error"]);
        assert!(why.contains("items[2].fileId: is \"b\", and items[0].fileId is \"a\""), "{why}");
        let shown = world.sandbox.run("outbox").await.ok();
        assert!(shown.stdout.contains("items[2].fileId"), "{}", shown.stdout);
        let log = worker.stderr();
        assert_eq!(log.matches("is refused; it stays there").count(), 1, "once: {log}");
    }
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_with_the_limit_and_leaves_nothing() {
    for world in World::both().await {
        let large = format!("def large():\n    '''{}'''\n", "x".repeat(8 << 20));
        world.sandbox.write("large.py", &large);
        let analysed = world.analyse("large.py").await;
        assert_eq!(analysed.code, Some(1));
        assert!(analysed.stderr.contains("8388608"), "{}", analysed.stderr);
        assert_eq!(world.number("SELECT count(*) FROM files").await, 0);
        assert_eq!(world.waiting().await.len(), 0);
    }
}
