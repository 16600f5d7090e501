//! Jobs over HTTP: submitted, listed, shown, steered, in the words of the command line.

use crate::api::accounts_fixture::{savings_accounts, take};
use crate::api::served::Served;
use crate::common::{CliSandbox, Data, raise, text};
use serde_json::json;

#[tokio::test]
async fn a_job_is_submitted_worked_and_shown_as_the_command_line_shows_it() {
    for data in Data::both().await {
        let data = data.with_accounts(100).await;
        let served = Served::with(CliSandbox::on(&data, &raise(10)), 2).await;
        let answer = served.post("/api/v1/jobs", &json!({"jobType": "RAISE", "priority": 7})).await;
        let id = text(&answer.is(201)["id"]);
        assert_eq!(answer.header("location"), Some(format!("/api/v1/jobs/{id}").as_str()));
        let job = served.until(&id, "COMPLETED").await;
        assert_eq!(job["items"]["processed"], 100);
        assert_eq!(job, served.sandbox.job(&id).await);
        let listed = served.get("/api/v1/jobs").await.is(200);
        assert_eq!(listed, served.sandbox.json("jobs").await);
        let chunks = served.get(&format!("/api/v1/jobs/{id}/chunks")).await.is(200);
        assert_eq!(chunks, served.sandbox.json(&format!("chunks {id}")).await);
        let segments = served.get(&format!("/api/v1/jobs/{id}/segments")).await.is(200);
        assert!(segments.as_array().unwrap().iter().all(|one| one["status"] == "COMPLETED"));
        data.raised_once(100).await;
    }
}

#[tokio::test]
async fn the_same_key_gives_the_same_job_and_another_body_a_conflict() {
    let data = Data::sqlite().with_accounts(10).await;
    let served = Served::start(CliSandbox::on(&data, &raise(10))).await;
    let request = json!({"jobType": "RAISE", "idempotencyKey": "k"});
    let id = served.submit(request.clone()).await;
    let again = served.post("/api/v1/jobs", &request).await.is(200);
    assert_eq!(again["id"], id.as_str());
    let other = json!({"jobType": "RAISE", "idempotencyKey": "k", "priority": 9});
    let conflict = served.post("/api/v1/jobs", &other).await.is(409);
    assert_eq!(conflict["code"], "WL0007");
    assert_eq!(served.get("/api/v1/jobs").await.is(200).as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn lists_are_filtered_and_paged_by_a_link() {
    let data = Data::sqlite().with_accounts(100).await;
    let jobs = raise(10) + &raise(10).replace("RAISE", "LIFT");
    let served = Served::start(CliSandbox::on(&data, &jobs)).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(served.submit(json!({"jobType": "RAISE", "idempotencyKey": n.to_string()})).await);
    }
    let other = served.submit(json!({"jobType": "LIFT"})).await;
    served.post(&format!("/api/v1/jobs/{other}/cancel"), &json!({})).await.is(200);
    let cancelled = served.get("/api/v1/jobs?status=CANCELLED").await.is(200);
    assert_eq!(cancelled[0]["id"], other.as_str());
    let mut found = Vec::new();
    let mut path = Some("/api/v1/jobs?jobType=RAISE&limit=2".to_owned());
    while let Some(next) = path {
        let page = served.get(&next).await;
        found.extend(page.is(200).as_array().unwrap().iter().map(|job| text(&job["id"])));
        path = page.header("link").map(|link| {
            let (path, relation) = link[1..].split_once('>').unwrap();
            assert_eq!(relation, "; rel=\"next\"");
            path.to_owned()
        });
    }
    found.reverse();
    assert_eq!(found, ids);
    served.sandbox.run(&format!("worker --job {}", ids[0])).await.ok();
    let page = served.get(&format!("/api/v1/jobs/{}/chunks?after=3&limit=2", ids[0])).await;
    let numbers: Vec<_> =
        page.is(200).as_array().unwrap().iter().map(|chunk| chunk["chunk"].clone()).collect();
    assert_eq!(numbers, [4, 5]);
    assert!(page.header("link").unwrap().contains("after=5"));
}

#[tokio::test]
async fn jobs_are_paused_resumed_cancelled_and_retried() {
    let data = Data::sqlite().with_accounts(10).await;
    let served = Served::start(CliSandbox::on(&data, &raise(10))).await;
    let id = served.submit(json!({"jobType": "RAISE"})).await;
    let steer =
        async |what: &str| served.post(&format!("/api/v1/jobs/{id}/{what}"), &json!({})).await;
    assert_eq!(steer("pause").await.is(200)["status"], "PAUSED");
    assert_eq!(steer("pause").await.is(409)["code"], "WL0008");
    assert_eq!(steer("resume").await.is(200)["status"], "QUEUED");
    assert_eq!(steer("retry").await.is(409)["code"], "WL0008");
    assert_eq!(steer("cancel").await.is(200)["status"], "CANCELLED");
    data.untouched().await;
}

#[tokio::test]
async fn what_failed_is_retried() {
    let data = savings_accounts(Data::sqlite()).await;
    // No such column, which fails the job, until somebody adds it.
    let jobs = take("retry = { attempts = 1 }\n").replace("amount - 10", "amount - 10, seen = 1");
    let served = Served::with(CliSandbox::on(&data, &jobs), 1).await;
    let id = served.submit(json!({"jobType": "TAKE", "ids": [1, 2]})).await;
    served.until(&id, "FAILED").await;
    data.run("ALTER TABLE savings ADD COLUMN seen integer").await;
    served.post(&format!("/api/v1/jobs/{id}/retry"), &json!({})).await.is(200);
    served.until(&id, "COMPLETED").await;
    assert_eq!(data.number("SELECT count(*) FROM savings WHERE seen = 1").await, 2);
}
