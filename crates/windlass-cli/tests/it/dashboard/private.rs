//! Who sees only their own jobs sees nothing of those of others, on any page.

use crate::api::served::{Served, auth, token};
use crate::common::{CliSandbox, text};
use crate::dashboard::fixture::{savings_accounts, take};
use serde_json::json;

#[tokio::test]
async fn a_clerk_sees_nothing_of_the_jobs_of_others() {
    let data = savings_accounts().await;
    let slow = take("throughput = { items_per_second = 1 }\nschedule = { cron = \"0 3 1 1 *\" }\n");
    let slow = slow.replace("jobs.TAKE", "jobs.STROLL");
    let mut served = Served::with(CliSandbox::on(&data, &(take("") + &slow + &auth())), 2).await;
    let (chief, clerk) = (token("zara", "chief"), token("oda", "clerk"));
    served.token(&chief);
    let theirs = served.submit(json!({"jobType": "TAKE", "params": {"word": "sesame"}})).await;
    served.until(&theirs, "COMPLETED").await;
    let running = served.submit(json!({"jobType": "STROLL"})).await;
    served.until(&running, "PROCESSING").await;
    let letters = served.get("/api/v1/dead-letters").await.is(200);
    let letter = format!("/dead-letters/{}", text(&letters[0]["id"]));
    // The chief sees all of it.
    let told = ["zara", &theirs[28..], &running[28..], "CHECK constraint", "sesame", "pwned"];
    let overview = served.get("/").await.text;
    assert!(told[..4].iter().all(|told| overview.contains(told)), "{overview}");

    served.token(&clerk);
    let (job, audit) = (format!("/jobs/{theirs}"), format!("/jobs/{theirs}/audit"));
    let of_job = format!("/dead-letters?status=&job={theirs}");
    let export = format!("/dead-letters/export?job={theirs}");
    for path in [
        "/",
        "/jobs",
        "/jobs?status=PROCESSING",
        &job,
        &audit,
        "/dead-letters?status=",
        &of_job,
        &export,
        &letter,
        "/job-types",
        "/job-types/TAKE",
        "/job-types/STROLL",
        "/schedules",
        "/workers",
        "/api/v1/workers",
    ] {
        let page = served.request(reqwest::Method::GET, path).send().await.unwrap();
        // An address that was asked for comes back in a page that knows nothing there.
        let page = page.text().await.unwrap().replace(&theirs, "").replace(&theirs[28..], "");
        for told in told {
            assert!(!page.contains(told), "{path} tells of {told}:\n{page}");
        }
        if path.ends_with("/workers") {
            assert!(!page.contains("STROLL"), "it tells what others run:\n{page}");
        }
        if path == "/" {
            assert!(page.contains("No job was submitted."), "{page}");
            assert!(page.contains("Nothing runs and nothing waits."), "{page}");
        }
    }
}
