//! Schedules: listed, paused and resumed.

use crate::api::server_fixture::{TestServer, auth, token};
use crate::api::wallets_fixture::take;
use crate::common::{CliSandbox, Data, config, eventually, raise, text};
use serde_json::json;

const YEARLY: &str = "schedule = { cron = \"0 3 1 1 *\", timezone = \"Asia/Tokyo\", \
                     deadline = \"3h\", params = { day = \"{date}\" } }\n";

async fn schedules_are_listed_paused_and_resumed(data: Data) {
    let data = data.with_accounts(1).await;
    let server = TestServer::start(CliSandbox::on(&data, &(take(YEARLY) + &raise(10)))).await;
    let shown = async || server.get("/api/v1/schedules").await.is(200);
    eventually("the server has stored its schedules", async || {
        shown().await.as_array().unwrap().len() == 1
    })
    .await;
    let listed = shown().await;
    assert_eq!(listed, server.sandbox.json("schedules").await);
    let one = &listed[0];
    assert_eq!((&one["jobType"], &one["paused"]), (&json!("TAKE"), &json!(false)));
    assert_eq!(one["schedule"]["timezone"], "Asia/Tokyo");
    assert_eq!(one["nextTimes"].as_array().unwrap().len(), 3);
    assert!(text(&one["nextTimes"][0]).ends_with("-12-31T18:00:00Z"), "{one}");

    let paused = server.post("/api/v1/schedules/TAKE/pause", &json!({})).await.is(200);
    assert_eq!(paused["paused"], true);
    assert_eq!(shown().await[0], paused);
    let resumed = server.post("/api/v1/schedules/TAKE/resume", &json!({})).await.is(200);
    assert_eq!(resumed, *one);
    for none in ["RAISE", "NONE"] {
        let path = format!("/api/v1/schedules/{none}/pause");
        assert!(text(&server.post(&path, &json!({})).await.is(404)["detail"]).contains(none));
    }
}

async fn the_last_job_of_a_schedule_is_shown_to_those_who_see_it(data: Data) {
    let every_minute = "schedule = { cron = \"* * * * *\" }\n";
    // The store is in the same database, so that the test can change the next time.
    let jobs = take(every_minute) + &auth();
    let sandbox = CliSandbox::with(&config(&data.url(), &data.url(), &jobs));
    sandbox.json("schedules").await;
    let back = match &data {
        Data::Postgres(_) => "next_at - interval '5 minutes'",
        _ => "next_at - 300000",
    };
    data.run(&format!("UPDATE windlass_schedules SET next_at = {back}")).await;
    let mut server = TestServer::start(sandbox).await;
    server.token(&token("eve", "chief"));
    eventually("the schedule has fired", async || {
        let shown = server.get("/api/v1/schedules").await.is(200);
        shown[0]["lastJob"].is_string()
    })
    .await;
    server.token(&token("ada", "clerk"));
    let shown = server.get("/api/v1/schedules").await.is(200);
    assert!(shown[0]["lastJob"].is_null() && shown[0]["lastAt"].is_string(), "{shown}");
}

on_both!(
    schedules_are_listed_paused_and_resumed,
    the_last_job_of_a_schedule_is_shown_to_those_who_see_it
);
