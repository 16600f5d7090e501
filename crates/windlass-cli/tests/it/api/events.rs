//! Event streams: they report changes, and end with their job.

use crate::api::server_fixture::{TestServer, auth, claims, now, signed, token};
use crate::common::{CliSandbox, Data, raise, text};
use reqwest::{Method, Response};
use serde_json::{Value as Json, json};

/// Reads the events of a stream.
pub(crate) struct Events {
    response: Response,
    text: String,
}

impl Events {
    pub(crate) async fn of(server: &TestServer, path: &str) -> Events {
        let response = server.request(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { response, text: String::new() }
    }

    /// The next event's name and data; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<(String, Json)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.map(|line| line.trim().to_owned())
                };
                let found = field("event:").zip(field("data:"));
                self.text = rest.to_owned();
                if let Some((name, data)) = found {
                    return Some((name, serde_json::from_str(&data).unwrap()));
                }
                continue;
            }
            let part = self.response.chunk().await.unwrap()?;
            self.text += std::str::from_utf8(&part).unwrap();
        }
    }
}

/// A command that waits for the file `go`.
const WAITER: &str = r#"
import json, os, sys, time
for line in sys.stdin:
    items = json.loads(line)["items"]
    while items and not os.path.exists("go"):
        time.sleep(0.01)
    print(json.dumps({"results": [{"key": item["key"], "skip": True} for item in items]}), flush=True)
"#;

#[tokio::test]
async fn every_subscriber_receives_all_events_of_a_job() {
    for data in Data::both_with_accounts(20).await {
        let jobs = "[jobs.WAIT]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                    step.version = \"version\"\nstep.command = [\"python3\", \"wait.py\"]\n";
        let sandbox = CliSandbox::on(&data, jobs);
        sandbox.write("wait.py", WAITER);
        let server = TestServer::with(sandbox, 1).await;
        let mut all = Events::of(&server, "/api/v1/events").await;
        // Both subscribe before the chunk starts: earlier changes are not sent.
        server.post("/api/v1/stop", &json!({})).await.is(200);
        let id = server.submit(json!({"jobType": "WAIT"})).await;
        let path = format!("/api/v1/jobs/{id}/events");
        let mut listeners = [Events::of(&server, &path).await, Events::of(&server, &path).await];
        server.post("/api/v1/start", &json!({})).await.is(200);
        for listener in &mut listeners {
            let (first, job) = listener.next().await.unwrap();
            assert_eq!((first.as_str(), text(&job["id"])), ("job", id.clone()));
            let (mut name, mut data) = (first, job);
            while name != "chunk" {
                (name, data) = listener.next().await.unwrap();
            }
            assert_eq!(
                (&data["jobId"], text(&data["status"])),
                (&json!(id), "PROCESSING".to_owned())
            );
        }
        server.sandbox.write("go", "");
        for listener in &mut listeners {
            let mut ended = Vec::new();
            while let Some((name, data)) = listener.next().await {
                if data["status"] == "COMPLETED" {
                    ended.push(name);
                }
            }
            assert_eq!(ended, ["chunk", "job"], "in this order, before the stream ends");
        }
        while let Some((name, job)) = all.next().await {
            assert_eq!((name.as_str(), &job["id"]), ("job", &json!(id)));
            if job["status"] == "COMPLETED" {
                break;
            }
        }
    }
}

#[tokio::test]
async fn an_ended_job_has_one_event_and_reconnects_get_204() {
    let data = Data::sqlite().with_accounts(1).await;
    let server = TestServer::with(CliSandbox::on(&data, &raise(10)), 1).await;
    let id = server.submit(json!({"jobType": "RAISE"})).await;
    server.until(&id, "COMPLETED").await;
    let path = format!("/api/v1/jobs/{id}/events");
    let mut events = Events::of(&server, &path).await;
    assert_eq!(events.next().await.unwrap().1["status"], "COMPLETED");
    assert!(events.next().await.is_none());
    let again = server.request(Method::GET, &path).header("last-event-id", "0");
    assert_eq!(again.send().await.unwrap().status(), 204);
}

#[tokio::test]
async fn the_stream_of_all_jobs_has_only_visible_jobs() {
    let data = Data::sqlite().with_accounts(1).await;
    let mut server = TestServer::start(CliSandbox::on(&data, &(raise(10) + &auth()))).await;
    let mut ada = Events::of(server.token(&token("ada", "clerk")), "/api/v1/events").await;
    let mut chief = Events::of(server.token(&token("chief", "chief")), "/api/v1/events").await;
    // The chief receives each job before the next is submitted.
    let mut heard = Vec::new();
    for who in ["bob", "ada", "bob", "ada"] {
        let id = server.token(&token(who, "clerk")).submit(json!({"jobType": "RAISE"})).await;
        let (_, job) = chief.next().await.unwrap();
        assert_eq!(job["id"], id.as_str());
        if who == "ada" {
            heard.push(id);
        }
    }
    for id in heard {
        let (_, job) = ada.next().await.unwrap();
        assert_eq!((text(&job["id"]), text(&job["submittedBy"])), (id, "ada".to_owned()));
    }
}

#[tokio::test]
async fn a_stream_ends_when_its_token_expires() {
    let data = Data::sqlite().with_accounts(1).await;
    let config = raise(10) + &auth().replace("[auth]", "[auth]\nleeway = \"0s\"");
    let mut server = TestServer::start(CliSandbox::on(&data, &config)).await;
    let mut claims = claims("ada", "clerk");
    claims["exp"] = json!(now() + 30);
    let mut events = Events::of(server.token(&signed(&claims)), "/api/v1/events").await;
    assert!(events.next().await.is_none());
}
