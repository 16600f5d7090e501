//! Callers who may see only their own jobs find nothing about other jobs on any page.

use crate::api::server_fixture::{TestServer, auth, token};
use crate::common::{CliSandbox, text};
use crate::dashboard::wallets_fixture::{take, wallets};
use serde_json::json;

#[tokio::test]
async fn pages_hide_the_jobs_of_others() {
    let data = wallets().await;
    let slow = take("throughput = { items_per_second = 1 }\nschedule = { cron = \"0 3 1 1 *\" }\n");
    let slow = slow.replace("jobs.TAKE", "jobs.STROLL");
    let mut server = TestServer::with(
        CliSandbox::on(&data, &(take("params.word = { required = false }\n") + &slow + &auth())),
        2,
    )
    .await;
    let (chief, clerk) = (token("zara", "chief"), token("oda", "clerk"));
    server.token(&chief);
    let theirs = server.submit(json!({"jobType": "TAKE", "params": {"word": "sesame"}})).await;
    server.until(&theirs, "COMPLETED").await;
    let running = server.submit(json!({"jobType": "STROLL"})).await;
    server.until(&running, "PROCESSING").await;
    let letters = server.get("/api/v1/dead-letters").await.is(200);
    let letter = format!("/dead-letters/{}", text(&letters[0]["id"]));
    // The chief sees everything.
    let told = ["zara", &theirs[28..], &running[28..], "CHECK constraint", "sesame", "pwned"];
    let overview = server.get("/").await.text;
    assert!(told[..4].iter().all(|told| overview.contains(told)), "{overview}");

    server.token(&clerk);
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
        let page = server.request(reqwest::Method::GET, path).send().await.unwrap();
        // An error page may repeat the requested path.
        let page = page.text().await.unwrap().replace(&theirs, "").replace(&theirs[28..], "");
        for told in told {
            assert!(
                !page.contains(told),
                "{path} shows {told}:
{page}"
            );
        }
        if path.ends_with("/workers") {
            assert!(
                !page.contains("STROLL"),
                "it shows the jobs of others:
{page}"
            );
        }
        if path == "/" {
            assert!(page.contains("No jobs submitted."), "{page}");
            assert!(page.contains("No active jobs."), "{page}");
        }
    }
}
