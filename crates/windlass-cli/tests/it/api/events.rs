//! Events arrive as things happen, and end when the job has.

use crate::api::served::{Served, auth, claims, now, signed, token};
use crate::common::{CliSandbox, Data, raise, text};
use reqwest::{Method, Response};
use serde_json::{Value as Json, json};

/// The events of a stream, as they come.
pub(crate) struct Events {
    response: Response,
    text: String,
}

impl Events {
    pub(crate) async fn of(served: &Served, path: &str) -> Events {
        let response = served.request(Method::GET, path).send().await.unwrap();
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

/// Answers when there is a file `go`.
const WAITER: &str = r#"
import json, os, sys, time
for line in sys.stdin:
    items = json.loads(line)["items"]
    while items and not os.path.exists("go"):
        time.sleep(0.01)
    print(json.dumps({"results": [{"key": item["key"], "skip": True} for item in items]}), flush=True)
"#;

#[tokio::test]
async fn a_job_is_followed_to_its_end_by_everybody_who_listens() {
    for data in Data::both().await {
        let data = data.with_accounts(20).await;
        let jobs = "[jobs.WAIT]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                    step.version = \"version\"\nstep.command = [\"python3\", \"wait.py\"]\n";
        let sandbox = CliSandbox::on(&data, jobs);
        sandbox.write("wait.py", WAITER);
        let served = Served::with(sandbox, 1).await;
        let mut all = Events::of(&served, "/api/v1/events").await;
        // The chunk begins when both listen: what was before is not told.
        served.post("/api/v1/stop", &json!({})).await.is(200);
        let id = served.submit(json!({"jobType": "WAIT"})).await;
        let path = format!("/api/v1/jobs/{id}/events");
        let mut listeners = [Events::of(&served, &path).await, Events::of(&served, &path).await];
        served.post("/api/v1/start", &json!({})).await.is(200);
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
        served.sandbox.write("go", "");
        for listener in &mut listeners {
            let mut ended = Vec::new();
            while let Some((name, data)) = listener.next().await {
                if data["status"] == "COMPLETED" {
                    ended.push(name);
                }
            }
            assert_eq!(ended, ["chunk", "job"], "in this order, and then the stream is over");
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
async fn an_ended_job_is_told_once_and_browsers_do_not_come_back() {
    let data = Data::sqlite().with_accounts(1).await;
    let served = Served::with(CliSandbox::on(&data, &raise(10)), 1).await;
    let id = served.submit(json!({"jobType": "RAISE"})).await;
    served.until(&id, "COMPLETED").await;
    let path = format!("/api/v1/jobs/{id}/events");
    let mut events = Events::of(&served, &path).await;
    assert_eq!(events.next().await.unwrap().1["status"], "COMPLETED");
    assert!(events.next().await.is_none());
    let again = served.request(Method::GET, &path).header("last-event-id", "0");
    assert_eq!(again.send().await.unwrap().status(), 204);
}

#[tokio::test]
async fn those_who_follow_all_jobs_hear_of_their_own() {
    let data = Data::sqlite().with_accounts(1).await;
    let mut served = Served::start(CliSandbox::on(&data, &(raise(10) + &auth()))).await;
    let mut ada = Events::of(served.token(&token("ada", "clerk")), "/api/v1/events").await;
    let mut chief = Events::of(served.token(&token("chief", "chief")), "/api/v1/events").await;
    // Both follow by now; each job is heard of by the chief before the next is submitted.
    let mut heard = Vec::new();
    for who in ["bob", "ada", "bob", "ada"] {
        let id = served.token(&token(who, "clerk")).submit(json!({"jobType": "RAISE"})).await;
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
async fn a_stream_is_no_longer_than_its_token() {
    let data = Data::sqlite().with_accounts(1).await;
    let config = raise(10) + &auth().replace("[auth]", "[auth]\nleeway = \"0s\"");
    let mut served = Served::start(CliSandbox::on(&data, &config)).await;
    let mut claims = claims("ada", "clerk");
    claims["exp"] = json!(now() + 5);
    let mut events = Events::of(served.token(&signed(&claims)), "/api/v1/events").await;
    assert!(events.next().await.is_none());
}
