//! Each kind of alert is raised once per occurrence, however many servers look.

use crate::common::{Data, eventually};
use crate::receiver::Receiver;
use crate::world::{break_one, kinds, listed, place, serve, unworkable};

#[tokio::test]
async fn each_kind_is_raised_once_by_two_servers() {
    let data = Data::postgres().await.with_accounts(3).await;
    let receiver = Receiver::start().await;
    let schedule = "schedule = { cron = \"0 0 1 1 *\", deadline = \"1s\" }";
    let place = place(&data, receiver.port, &unworkable(schedule)).await;
    place.run("schedules").await.ok();
    data.run("UPDATE windlass_schedules SET next_at = clock_timestamp() - interval '1 hour'").await;
    let _servers = [serve(&place), serve(&place)];
    let failed = break_one(&place).await;
    let mut expected =
        vec!["budget-exceeded", "dead-letters", "deadline-at-risk", "job-failed", "no-worker"];
    eventually("all kinds are received", async || receiver.kinds() == expected).await;
    for post in receiver.posts() {
        let alert = post.json();
        let about_a_job = !alert["jobId"].is_null();
        match alert["kind"].as_str().unwrap() {
            "job-failed" | "budget-exceeded" => {
                assert_eq!(alert["jobId"], failed.as_str());
                assert_eq!(alert["details"]["items"]["dead"], 3, "{alert:#}");
            }
            "dead-letters" => {
                assert_eq!((&alert["details"]["letters"], about_a_job), (&3.into(), false));
            }
            "no-worker" => {
                assert_eq!((&alert["details"]["handler"], about_a_job), (&"nobody".into(), false));
            }
            _ => assert!(!alert["details"]["deadline"].is_null() && about_a_job, "{alert:#}"),
        }
    }

    // Both servers have looked many times when the next failure is told: nothing else is.
    break_one(&place).await;
    expected.extend(["budget-exceeded", "job-failed"]);
    expected.sort();
    eventually("the second failure", async || receiver.kinds() == expected).await;

    // A condition that is over and comes back is another occurrence.
    place.run("dead ignore --type BREAK").await.ok();
    let over = async || {
        let alerts = listed(&place).await;
        alerts.iter().any(|a| a["kind"] == "dead-letters" && !a["clearedAt"].is_null())
    };
    eventually("the letters are settled", over).await;
    break_one(&place).await;
    expected.extend(["budget-exceeded", "dead-letters", "job-failed"]);
    expected.sort();
    eventually("letters again", async || receiver.kinds() == expected).await;
    assert_eq!(kinds(&place).await, expected);
    let shown = place.run("alerts").await.ok().stdout;
    assert!(shown.contains("delivered") && shown.contains("(cleared)"), "{shown}");
}

#[tokio::test]
async fn a_worker_that_comes_ends_the_alert_and_nothing_is_posted_without_a_webhook() {
    let data = Data::sqlite().with_accounts(3).await;
    let jobs = crate::world::jobs() + "\n[alerts]\nno_worker = \"1s\"\n";
    let place = crate::common::Place::on(&data, &jobs);
    let server = place.spawn("serve --listen 127.0.0.1:0 --concurrency 0");
    let id = place.submit("RAISE").await;
    eventually("nobody is there", async || kinds(&place).await == ["no-worker"]).await;
    assert_eq!(listed(&place).await[0]["delivery"], "logged");
    assert!(server.stderr().contains("no worker has been there for RAISE"), "{}", server.stderr());
    let _worker = place.spawn("worker");
    place.completed(&id).await;
    eventually("it is over", async || !listed(&place).await[0]["clearedAt"].is_null()).await;
    assert_eq!(kinds(&place).await, ["no-worker"]);
}
