//! Each kind of alert is raised once per occurrence, with any number of servers.

use crate::alerts::fixture::{break_one, fail_one, kinds, listed, sandbox, serve, unworkable};
use crate::alerts::webhook_receiver::Receiver;
use crate::common::{Data, eventually};

#[tokio::test]
async fn each_kind_is_raised_once_by_two_servers() {
    let data = Data::postgres().await.with_accounts(3).await;
    let receiver = Receiver::start().await;
    let schedule = "schedule = { cron = \"0 0 1 1 *\", deadline = \"1s\" }";
    let sandbox = sandbox(&data, receiver.port, &unworkable(schedule)).await;
    let config = sandbox.read("windlass.toml");
    let config = config.replace("dead_letters = 1", "dead_letters = 1\nno_worker = \"1s\"");
    sandbox.write("windlass.toml", &config);
    sandbox.run("schedules").await.ok();
    data.run("UPDATE windlass_schedules SET next_at = clock_timestamp() - interval '1 hour'").await;
    let _servers = [serve(&sandbox), serve(&sandbox)];
    let exceeded = break_one(&sandbox).await;
    let failed = fail_one(&sandbox, &data).await;
    let mut expected =
        vec!["budget-exceeded", "dead-letters", "deadline-at-risk", "job-failed", "no-worker"];
    eventually("all kinds are received", async || receiver.kinds() == expected).await;
    for post in receiver.posts() {
        let alert = post.json();
        let about_a_job = !alert["jobId"].is_null();
        match alert["kind"].as_str().unwrap() {
            "job-failed" => assert_eq!(alert["jobId"], failed.as_str()),
            "budget-exceeded" => {
                assert_eq!(alert["jobId"], exceeded.as_str());
                assert_eq!(alert["details"]["items"]["dead"], 3, "{alert:#}");
                let message = alert["message"].as_str().unwrap();
                assert_eq!(message.matches("budget exceeded").count(), 1, "{message}");
                assert!(
                    message.contains("of BREAK failed: failure budget exceeded: 3"),
                    "{message}"
                );
            }
            "dead-letters" => {
                assert_eq!((&alert["details"]["letters"], about_a_job), (&3.into(), false));
            }
            "no-worker" => {
                assert_eq!((&alert["details"]["handler"], about_a_job), (&"missing".into(), false));
            }
            _ => assert!(!alert["details"]["deadline"].is_null() && about_a_job, "{alert:#}"),
        }
    }

    // Both servers have checked many times before the next failure, and raised nothing else.
    break_one(&sandbox).await;
    expected.extend(["budget-exceeded"]);
    expected.sort();
    eventually("the second failure", async || receiver.kinds() == expected).await;

    // A condition that ends and returns is a new occurrence.
    sandbox.run("dead ignore --type BREAK").await.ok();
    let over = async || {
        let alerts = listed(&sandbox).await;
        alerts.iter().any(|a| a["kind"] == "dead-letters" && !a["clearedAt"].is_null())
    };
    eventually("the alert is cleared", over).await;
    eventually("its end is posted", async || receiver.cleared() == ["dead-letters"]).await;
    break_one(&sandbox).await;
    expected.extend(["budget-exceeded", "dead-letters"]);
    expected.sort();
    eventually("letters again", async || receiver.kinds() == expected).await;
    assert_eq!(kinds(&sandbox).await, expected);
    let shown = sandbox.run("alerts").await.ok().stdout;
    assert!(shown.contains("delivered") && shown.contains("(cleared)"), "{shown}");
}

#[tokio::test]
async fn a_new_worker_clears_the_alert_and_without_a_webhook_it_is_only_logged() {
    let data = Data::sqlite().with_accounts(3).await;
    let jobs = crate::alerts::fixture::jobs() + "\n[alerts]\nno_worker = \"1s\"\n";
    let sandbox = crate::common::CliSandbox::on(&data, &jobs);
    let server = sandbox.spawn("serve --listen 127.0.0.1:0 --concurrency 0");
    let id = sandbox.submit("RAISE").await;
    eventually("the alert is raised", async || kinds(&sandbox).await == ["no-worker"]).await;
    assert_eq!(listed(&sandbox).await[0]["delivery"], "logged");
    let logged = "no worker has been available for RAISE";
    eventually("it is logged", async || server.stderr().contains(logged)).await;
    let _worker = sandbox.spawn("worker");
    sandbox.completed(&id).await;
    eventually("the alert is cleared", async || !listed(&sandbox).await[0]["clearedAt"].is_null())
        .await;
    assert_eq!(kinds(&sandbox).await, ["no-worker"]);
}
