//! Alerts that tell when they are over, and alerts that a person acknowledges.

use crate::alerts::fixture::{HIDDEN, alerts, break_one, jobs, listed, sandbox, serve};
use crate::alerts::webhook_receiver::Receiver;
use crate::common::{CliSandbox, Data, eventually, text};
use crate::steps::fixture::{by_service, with_accounts};
use crate::steps::server::{Server, url};
use serde_json::Value as Json;
use windlass_testkit::free_port;

/// The alerts of a kind, newest first.
async fn of_kind(sandbox: &CliSandbox, kind: &str) -> Vec<Json> {
    let mut alerts = listed(sandbox).await;
    alerts.retain(|alert| alert["kind"] == kind);
    alerts
}

/// Waits until the receiver has the beginning and the end of one alert of this kind; returns the end.
async fn ended(receiver: &Receiver, kind: &str) -> Json {
    eventually("the alert and its end are received", async || {
        receiver.kinds().iter().filter(|known| *known == kind).count() == 1
            && receiver.cleared() == [kind]
    })
    .await;
    let posts = receiver.posts();
    let (begin, end): (Vec<_>, Vec<_>) = posts
        .iter()
        .filter(|post| post.json()["kind"] == kind)
        .partition(|post| post.json()["clearedAt"].is_null());
    assert_eq!(begin[0].json()["id"], end[0].json()["id"]);
    assert_ne!(begin[0].headers["webhook-id"], end[0].headers["webhook-id"]);
    end[0].json()
}

#[tokio::test]
async fn a_suspended_job_type_raises_an_alert_that_ends_when_its_step_works_again() {
    let (port, receiver) = (free_port(), Receiver::start().await);
    let more = "chunk.items = 10\nretry = { attempts = 3, backoff = \"10ms\" }\n";
    let config = by_service(&url(port, ""), more) + &alerts(receiver.port, "suspended = \"1s\"");
    let (_data, sandbox) = with_accounts(50, &config).await;
    let server = serve(&sandbox);
    let id = sandbox.submit("RAISE").await;
    eventually("the alert is received", async || receiver.kinds() == ["suspended"]).await;
    let alert = of_kind(&sandbox, "suspended").await.remove(0);
    assert!(text(&alert["message"]).starts_with("RAISE: job type suspended"), "{alert:#}");
    let _service = Server::start_on(port).await;
    sandbox.completed(&id).await;
    let end = ended(&receiver, "suspended").await;
    assert_eq!(end["clearedReason"], "RAISE is no longer suspended");
    let logged = "alert cleared: RAISE is no longer suspended";
    eventually("it is logged", async || server.stderr().contains(logged)).await;
}

#[tokio::test]
async fn a_deadline_alert_ends_with_its_job() {
    for data in Data::both_with_accounts(3).await {
        let receiver = Receiver::start().await;
        let more = "schedule = { cron = \"0 0 1 1 *\", deadline = \"1s\" }\n";
        let config = jobs().replacen("[jobs.RAISE]\n", &format!("[jobs.RAISE]\n{more}"), 1);
        let sandbox = CliSandbox::on(&data, &(config + &alerts(receiver.port, "")));
        sandbox.run("stop RAISE").await.ok();
        sandbox.run("schedules").await.ok();
        match &data {
            Data::Postgres(_) => {
                let past =
                    "UPDATE windlass_schedules SET next_at = clock_timestamp() - interval '1 hour'";
                data.run(past).await;
            }
            _ => {
                let store = rusqlite::Connection::open(sandbox.path("windlass.db")).unwrap();
                let past = "UPDATE windlass_schedules SET next_at = 1000 * (unixepoch() - 3600)";
                store.execute(past, []).unwrap();
            }
        }
        let _server = serve(&sandbox);
        eventually("the alert is received", async || receiver.kinds() == ["deadline-at-risk"])
            .await;
        sandbox.run("start RAISE").await.ok();
        let end = ended(&receiver, "deadline-at-risk").await;
        let reason = text(&end["clearedReason"]);
        assert!(reason.contains("of RAISE ended COMPLETED"), "{reason}");
        assert!(reason.ends_with("after its deadline"), "{reason}");
    }
}

#[tokio::test]
async fn refused_outbox_requests_raise_one_alert_until_none_is_left() {
    for data in Data::both_with_accounts(3).await {
        let receiver = Receiver::start().await;
        let config = data.config(&(jobs() + &alerts(receiver.port, "")));
        let config = config.replace("\n\n[jobs.BREAK", "\noutbox = true\n\n[jobs.BREAK");
        assert!(config.contains("outbox = true"), "{config}");
        let sandbox = CliSandbox::with(&config);
        sandbox.run("migrate").await.ok();
        let insert = match &data {
            Data::Postgres(_) => "SELECT windlass_enqueue('SHIP', '{}')",
            _ => "INSERT INTO windlass_outbox (job_type, request) VALUES ('SHIP', '{}')",
        };
        for _ in 0..2 {
            data.run(insert).await;
        }
        let server = serve(&sandbox);
        eventually("the alert is received", async || receiver.kinds() == ["outbox-refused"]).await;
        let alert = of_kind(&sandbox, "outbox-refused").await.remove(0);
        let message = text(&alert["message"]);
        assert!(message.contains("refused in the outbox of `app` for SHIP: WL0002"), "{message}");
        assert_eq!((&alert["jobType"], &alert["jobId"]), (&"SHIP".into(), &Json::Null));
        // Another request of this type is the same alert.
        data.run(insert).await;
        let attempted = "SELECT count(*) FROM windlass_outbox WHERE error IS NOT NULL";
        eventually("it is refused too", async || data.number(attempted).await == 3).await;
        data.run("DELETE FROM windlass_outbox").await;
        let end = ended(&receiver, "outbox-refused").await;
        assert!(text(&end["clearedReason"]).contains("no refused requests for SHIP"), "{end:#}");
        assert!(!server.stderr().contains(HIDDEN));
    }
}

#[tokio::test]
async fn an_acknowledged_alert_is_no_longer_open() {
    let data = Data::sqlite().with_accounts(3).await;
    let sandbox = sandbox(&data, free_port(), "").await;
    let _server = serve(&sandbox);
    break_one(&sandbox).await;
    let open = async || sandbox.json("alerts --open").await.as_array().unwrap().clone();
    eventually("two alerts are open", async || open().await.len() == 2).await;
    let first = text(&open().await[0]["id"]);
    let short = &first[first.len() - 8..];
    let shown = sandbox.run("alerts").await.ok().stdout;
    assert!(shown.contains(short), "{shown}");
    let unknown = sandbox.run("alerts acknowledge zzzz").await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("there is no alert zzzz"), "{unknown:?}");
    assert_eq!(sandbox.run("alerts acknowledge").await.code, Some(2));
    let done = sandbox.run(&format!("alerts acknowledge {short}")).await.ok().stdout;
    assert_eq!(done.trim(), "1 alert acknowledged");
    let again = sandbox.json(&format!("alerts acknowledge {first}")).await;
    assert_eq!(again["acknowledged"], serde_json::json!([]), "the first acknowledgement stays");
    assert_eq!(open().await.len(), 1);
    let acknowledged =
        listed(&sandbox).await.into_iter().find(|alert| alert["id"] == first.as_str());
    let acknowledged = acknowledged.unwrap();
    assert!(!acknowledged["acknowledgedAt"].is_null() && !acknowledged["acknowledgedBy"].is_null());
    assert!(sandbox.run("alerts").await.ok().stdout.contains("(acknowledged by "));
    sandbox.run("alerts acknowledge --all").await.ok();
    assert!(open().await.is_empty());
    let none = sandbox.run("alerts --open").await.ok().stdout;
    assert!(none.contains("no open alerts"), "{none}");
}
