//! A place that refuses at the very end: said clearly, nothing half visible, and gone on with.

use crate::common::{Data, said, text};
use crate::world::{REPORT, World};

#[tokio::test]
async fn a_manifest_that_the_endpoint_refuses() {
    let world = World::in_a_bucket().await;
    let id = world.submit("PARTS").await;
    let put = format!("PUT /windlass/{id}/manifest.json");
    let (gate, worker) = world.held_at_request(&id, &put).await;
    world.moto().refuse();
    gate.open();
    let failed = worker.wait().await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let job = world.place.job(&id).await;
    assert_eq!(job["status"], "FAILED");
    assert!(text(&job["error"]).contains("not allowed"), "{job:#}");
    world.moto().allow();
    let parts = world.names();
    assert!(parts.len() == 10 && parts.iter().all(|name| name.contains("/part-")), "{parts:?}");
    let before = world.place.chunks(&id).await;
    world.place.run(&format!("retry {id}")).await.ok();
    world.work(&id).await;
    assert_eq!(world.place.chunks(&id).await, before, "no chunk was run again");
    world.parts_are_right(&id).await;
}

/// The page beside a report is a courtesy: the result is there, and the job ends as if nothing were.
#[tokio::test]
async fn a_page_that_the_endpoint_refuses() {
    let world = World::in_a_bucket().await;
    let id = world.submit("TOTALS").await;
    let (gate, worker) = world.held_at_request(&id, "PUT /windlass/totals.csv.html").await;
    world.moto().refuse();
    gate.open();
    let done = worker.wait().await.ok();
    assert!(said(&done).contains(&format!("windlass job {id} --html FILE")), "{done:?}");
    world.moto().allow();
    assert_eq!(world.place.status(&id).await, "COMPLETED");
    assert_eq!(world.names(), [REPORT]);
    world.report_is_right().await;
    world.totals_are_right().await;
    world.place.run(&format!("job {id} --html page.html")).await.ok();
    assert!(world.place.read("page.html").contains("s3://windlass/totals.csv"));
}

/// An endpoint that is away is no failure: the job waits for it, and says so.
#[tokio::test]
async fn a_manifest_whose_endpoint_is_away() {
    let world = World::in_a_bucket().await;
    let id = world.submit("PARTS").await;
    let put = format!("PUT /windlass/{id}/manifest.json");
    let (gate, worker) = world.held_at_request(&id, &put).await;
    // This process will not reach it any more.
    drop(gate);
    let says = |job: &serde_json::Value| job["error"].is_string();
    let job = world.place.until(&id, "it says what it waits for", says).await;
    assert_eq!((&job["status"], &job["phase"]), (&"PROCESSING".into(), &"merging".into()));
    assert!(text(&job["error"]).contains("s3://windlass/"), "{job:#}");
    worker.kill9();
    worker.wait().await;
    world.expire().await;
    world.work(&id).await;
    world.parts_are_right(&id).await;
}

/// Small parts fit, and the list of them does not.
#[tokio::test]
async fn a_manifest_on_a_full_disk() {
    let world = World::with(Data::postgres().await).await;
    let id = world.submit("PARTS").await;
    let failed = world.place.run_with_room(4, &format!("worker --job {id}")).await;
    assert!(said(&failed).contains("no space left"), "{failed:?}");
    let job = world.place.job(&id).await;
    assert_eq!(job["status"], "FAILED");
    assert!(text(&job["error"]).contains("no space left"), "{job:#}");
    let parts = world.names();
    assert!(parts.len() == 10 && parts.iter().all(|name| name.contains("/part-")), "{parts:?}");
    let before = world.place.chunks(&id).await;
    world.place.run(&format!("retry {id}")).await.ok();
    world.work(&id).await;
    assert_eq!(world.place.chunks(&id).await, before, "no chunk was run again");
    world.parts_are_right(&id).await;
}
