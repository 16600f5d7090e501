//! A full disk and a refusing endpoint: the error is reported, nothing is half visible, and a retry completes the job.

use crate::common::{said, text};
use crate::nightly::fixture::{DATE, NightlyFixture};
use crate::nightly::reading::totals;
use windlass_testkit::Moto;

/// The paths of all files in the output folder.
fn files(fixture: &NightlyFixture, folder: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(fixture.sandbox.path("out").join(folder)) else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The only job.
async fn id(fixture: &NightlyFixture) -> String {
    text(&fixture.sandbox.json("jobs").await[0]["id"])
}

/// A job that failed because its output did not fit on the disk.
async fn failed_on_a_full_disk(job_type: &str) -> (NightlyFixture, String) {
    let fixture = NightlyFixture::in_a_folder().await;
    let id = fixture.submit(job_type).await;
    let failed = fixture.sandbox.run_with_room(4, &format!("worker --job {id}")).await;
    assert!(said(&failed).contains("no space left"), "{failed:?}");
    assert_eq!(fixture.sandbox.status(&id).await, "FAILED");
    (fixture, id)
}

#[tokio::test]
async fn an_export_to_a_full_disk_fails_without_output_and_a_retry_completes_it() {
    let (fixture, id) = failed_on_a_full_disk("TRANSACTIONS_EXPORT").await;
    assert_eq!(files(&fixture, &format!("transactions/{DATE}/{id}")), [""; 0]);
    fixture.sandbox.run(&format!("retry {id}")).await.ok();
    fixture.work(&id).await;
    assert_eq!(totals(&fixture.parts(&id).await), fixture.own_totals().await);
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_report_to_a_full_disk_fails_and_a_retry_makes_it_from_the_existing_parts() {
    let (fixture, id) = failed_on_a_full_disk("DAILY_REPORT").await;
    assert_eq!(files(&fixture, "reports"), [""; 0]);
    let before = fixture.sandbox.chunks(&id).await;
    let retried = fixture.sandbox.run(&format!("retry {id}")).await.ok();
    let skipped = format!("0 chunks will run again; {} already completed", before.len());
    assert!(said(&retried).contains(&skipped), "{retried:?}");
    fixture.work(&id).await;
    assert_eq!(fixture.sandbox.chunks(&id).await, before, "no chunk was run again");
    assert_eq!(totals(&fixture.report().await), fixture.own_totals().await);
    fixture.totals_are_the_banks_own().await;
}

#[tokio::test]
async fn an_endpoint_that_starts_to_refuse_fails_the_remaining_chunks_and_a_retry_runs_only_those()
{
    let moto = Moto::start();
    let fixture = NightlyFixture::in_a_bucket(&moto).await;
    let export = fixture.submit("TRANSACTIONS_EXPORT").await;
    fixture.sandbox.run("throughput TRANSACTIONS_EXPORT --rate 500").await.ok();
    let worker = fixture.sandbox.spawn(&format!("worker --job {export}"));
    let some = |job: &serde_json::Value| job["chunks"]["completed"].as_i64() >= Some(3);
    fixture.sandbox.until(&export, "some chunks are completed", some).await;
    moto.refuse();
    fixture.sandbox.run("throughput TRANSACTIONS_EXPORT --rate unlimited").await.ok();
    let failed = worker.wait().await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(said(&failed).contains("permission denied"), "{failed:?}");
    moto.allow();
    assert!(fixture.parts(&export).await.is_null(), "there is no manifest");

    let before = fixture.sandbox.chunks(&export).await;
    let done = before.iter().filter(|chunk| chunk["status"] == "COMPLETED").count();
    assert!(done >= 3 && done < before.len(), "{done} of {}", before.len());
    let retried = fixture.sandbox.run(&format!("retry {export}")).await.ok();
    let counts = format!("{} chunks will run again; {done} already completed", before.len() - done);
    assert!(said(&retried).contains(&counts), "{retried:?} has no `{counts}`");
    fixture.work(&export).await;
    for (before, after) in before.iter().zip(fixture.sandbox.chunks(&export).await) {
        let was_done = before["status"] == "COMPLETED";
        assert_eq!(before["epoch"] == after["epoch"], was_done, "{before:#} {after:#}");
    }
    assert_eq!(totals(&fixture.parts(&export).await), fixture.own_totals().await);
    fixture.sandbox.prove(&export).await;
}

#[tokio::test]
async fn a_refused_report_is_written_by_a_retry() {
    let moto = Moto::start();
    let fixture = NightlyFixture::in_a_bucket(&moto).await;
    moto.refuse();
    let failed = fixture.sandbox.run(&format!("run DAILY_REPORT --param date={DATE}")).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    moto.allow();
    let listing = moto.ask("GET", &format!("/{}", Moto::BUCKET), "");
    assert!(listing.contains(" 200 ") && !listing.contains("<Key>"), "{listing}");
    let id = id(&fixture).await;
    fixture.sandbox.run(&format!("retry {id}")).await.ok();
    fixture.work(&id).await;
    assert_eq!(totals(&fixture.report().await), fixture.own_totals().await);
    fixture.totals_are_the_banks_own().await;
}
