//! A destination that refuses the last write: the error is reported, nothing is half visible, and a retry completes it.

use crate::common::{Data, said, text};
use crate::merge::fixture::{MergeFixture, REPORT};

/// Asserts that a job failed with this error, and that its parts are complete.
async fn failed_with_all_parts(fixture: &MergeFixture, id: &str, error: &str) {
    let job = fixture.sandbox.job(id).await;
    assert_eq!(job["status"], "FAILED");
    assert!(text(&job["error"]).contains(error), "{job:#}");
    fixture.has_only_parts();
}

/// Asserts that a retry completes a job without running a chunk again.
async fn is_completed_by_a_retry(fixture: &MergeFixture, id: &str) {
    let before = fixture.sandbox.chunks(id).await;
    fixture.sandbox.run(&format!("retry {id}")).await.ok();
    fixture.work(id).await;
    assert_eq!(fixture.sandbox.chunks(id).await, before, "no chunk was run again");
    fixture.parts_are_right(id).await;
}

#[tokio::test]
async fn a_refused_manifest_fails_the_job_and_a_retry_completes_it() {
    let (fixture, id, gate, worker) = MergeFixture::held_at_manifest().await;
    fixture.moto().refuse();
    gate.open();
    let failed = worker.wait().await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    fixture.moto().allow();
    failed_with_all_parts(&fixture, &id, "permission denied").await;
    is_completed_by_a_retry(&fixture, &id).await;
}

/// The page beside a report is optional: if it cannot be written, the job still completes.
#[tokio::test]
async fn a_refused_page_does_not_fail_the_job() {
    let fixture = MergeFixture::in_a_bucket().await;
    let id = fixture.submit("TOTALS").await;
    let (gate, worker) = fixture.held_at_request(&id, "PUT /windlass/totals.csv.html").await;
    fixture.moto().refuse();
    gate.open();
    let done = worker.wait().await.ok();
    assert!(said(&done).contains(&format!("windlass job {id} --html FILE")), "{done:?}");
    fixture.moto().allow();
    assert_eq!(fixture.sandbox.status(&id).await, "COMPLETED");
    assert_eq!(fixture.names(), [REPORT]);
    fixture.report_is_right().await;
    fixture.totals_are_right().await;
    fixture.sandbox.run(&format!("job {id} --html page.html")).await.ok();
    assert!(fixture.sandbox.read("page.html").contains("s3://windlass/totals.csv"));
}

/// An unavailable endpoint is not a failure: the job waits for it and shows that.
#[tokio::test]
async fn a_job_waits_for_an_unavailable_endpoint() {
    let (fixture, id, gate, worker) = MergeFixture::held_at_manifest().await;
    // This process cannot reach the endpoint again.
    drop(gate);
    let says = |job: &serde_json::Value| job["error"].is_string();
    let job = fixture.sandbox.until(&id, "the job shows what it waits for", says).await;
    assert_eq!((&job["status"], &job["phase"]), (&"PROCESSING".into(), &"merging".into()));
    assert!(text(&job["error"]).contains("s3://windlass/"), "{job:#}");
    worker.kill9();
    worker.wait().await;
    fixture.expire().await;
    fixture.work(&id).await;
    fixture.parts_are_right(&id).await;
}

/// The small parts fit, and the manifest does not.
#[tokio::test]
async fn a_manifest_on_a_full_disk_fails_the_job_and_a_retry_completes_it() {
    let fixture = MergeFixture::with(Data::postgres().await).await;
    let id = fixture.submit("PARTS").await;
    let failed = fixture.sandbox.run_with_room(4, &format!("worker --job {id}")).await;
    assert!(said(&failed).contains("no space left"), "{failed:?}");
    failed_with_all_parts(&fixture, &id, "no space left").await;
    is_completed_by_a_retry(&fixture, &id).await;
}
