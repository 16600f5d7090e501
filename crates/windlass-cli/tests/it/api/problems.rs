//! Whatever is wrong with a request, the answer is a problem that says so; `Answer` checks its form.

use crate::api::served::{Answer, Served};
use crate::common::{CliSandbox, Data, raise, refused, text};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HOST, ORIGIN};
use serde_json::json;

async fn served() -> (Data, Served) {
    let data = Data::sqlite().with_accounts(10).await;
    let sandbox = CliSandbox::on(&data, &(raise(10) + "\n[server]\nmax_body = 2_000\n"));
    (data, Served::start(sandbox).await)
}

#[tokio::test]
async fn unknown_routes_and_methods() {
    let (_data, served) = served().await;
    for path in ["/nowhere", "/api/v1", "/api/v1/", "/api/v1/jobs/", "/api/v2/jobs", "/api/v1/job"]
    {
        assert_eq!(served.get(path).await.status, 404, "{path}");
    }
    let wrong = served.send(Method::DELETE, "/api/v1/jobs", None).await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET,HEAD,POST")));
    for path in ["/healthz", "/metrics", "/api/v1/openapi.json", "/api/v1/stop/"] {
        assert!([404, 405].contains(&served.send(Method::PATCH, path, None).await.status));
    }
}

#[tokio::test]
async fn bad_queries_and_ids() {
    let (_data, served) = served().await;
    for path in [
        "/api/v1/jobs?colour=red",
        "/api/v1/jobs?status=DONE",
        "/api/v1/jobs?status=QUEUED&status=FAILED",
        "/api/v1/jobs?limit=many",
        "/api/v1/jobs?limit=0",
        "/api/v1/jobs?limit=1001",
        "/api/v1/jobs?before=x",
        "/api/v1/jobs?jobType=%00",
        "/api/v1/jobs/x",
        "/api/v1/jobs/%FF",
        "/api/v1/dead-letters?olderThan=soon",
        "/api/v1/dead-letters/x",
    ] {
        assert_eq!(served.get(path).await.status, 400, "{path}");
    }
    let unknown = "01980000-0000-7000-8000-000000000000";
    for path in ["", "/chunks", "/segments", "/output", "/events"] {
        let answer = served.get(&format!("/api/v1/jobs/{unknown}{path}")).await;
        assert_eq!(answer.is(404)["code"], "WL0009");
    }
    assert_eq!(served.get(&format!("/api/v1/dead-letters/{unknown}")).await.status, 404);
    for age in ["2years", "h", "-1h", "1000000h", "1.5h"] {
        let answer = served.get(&format!("/api/v1/dead-letters?olderThan={age}")).await;
        answer.refuses(400, "olderThan");
    }
    served.get("/api/v1/dead-letters?olderThan=999999w").await.is(200);
}

#[tokio::test]
async fn bad_bodies() {
    let (_data, served) = served().await;
    let post = async |kind: &str, body: String| {
        let request = served.request(Method::POST, "/api/v1/jobs").header(CONTENT_TYPE, kind);
        Answer::of(request.body(body)).await
    };
    for body in [
        "",
        "{",
        "[]",
        "[\"RAISE\"]",
        "{\"jobType\": 1}",
        "{\"jobType\": \"RAISE\", \"colour\": 1}",
        "{}",
    ] {
        assert_eq!(
            post("application/json", body.to_owned()).await.is(400)["code"],
            "WL0003",
            "{body}"
        );
    }
    assert_eq!(post("text/plain", "{}".to_owned()).await.status, 415);
    assert_eq!(post("application/json", " ".repeat(2_001)).await.status, 413);
    let nul = r#"{"jobType": "RAISE", "idempotencyKey": "\u0000"}"#;
    assert_eq!(post("application/json; charset=utf-8", nul.to_owned()).await.status, 400);
    for (request, field) in [
        (json!({"jobType": "NONE"}), "jobType"),
        (json!({"jobType": "RAISE", "priority": 10}), "priority"),
        (json!({"jobType": "RAISE", "filter": {"years": [1]}}), "filter.years"),
        (json!({"jobType": "RAISE", "ids": ["x"]}), "ids[0]"),
    ] {
        served.post("/api/v1/jobs", &request).await.refuses(400, field);
    }
    assert_eq!(served.get("/api/v1/jobs").await.is(200), json!([]), "nothing was submitted");
}

#[tokio::test]
async fn a_request_keeps_its_name_in_the_answer_and_the_log() {
    let (_data, served) = served().await;
    let named = |id: &str| served.request(Method::GET, "/healthz").header("x-request-id", id);
    let answer = Answer::of(named("mine-1")).await;
    assert_eq!(answer.header("x-request-id"), Some("mine-1"));
    assert!(served.process.stderr().contains("id=\"mine-1\""), "{}", served.process.stderr());
    for bad in ["a b", "\"", &"x".repeat(200)] {
        let answer = Answer::of(named(bad)).await;
        assert_ne!(answer.header("x-request-id"), Some(bad));
    }
}

#[tokio::test]
async fn without_auth_only_this_machine_is_served() {
    let (data, served) = served().await;
    let ask = async |name, value: &str| {
        Answer::of(served.request(Method::POST, "/api/v1/stop").header(name, value)).await.status
    };
    assert_eq!(ask(ORIGIN, "https://evil.example").await, 403);
    assert_eq!(ask(HOST, "evil.example").await, 403);
    let own = served.url.clone();
    assert_eq!(ask(ORIGIN, &own).await, 200);

    let open = raise(10) + "\n[server]\nlisten = \"0.0.0.0:0\"\n";
    let sandbox = CliSandbox::on(&data, &open);
    refused(&sandbox.run("serve").await, &["server.listen", "[auth]", "127.0.0.1"]);
    let checked = sandbox.run("check").await;
    assert!(checked.stdout.contains("[auth]") && checked.code == Some(2), "{checked:?}");
    refused(&served.sandbox.run("serve --listen 0.0.0.0:0").await, &["server.listen", "[auth]"]);
}

#[tokio::test]
async fn a_table_that_does_not_fit_is_for_the_log_and_not_for_the_caller() {
    let (data, served) = served().await;
    data.run("DROP TABLE accounts").await;
    let answer = served.post("/api/v1/jobs", &json!({"jobType": "RAISE"})).await;
    let problem = answer.is(500);
    assert!(!text(&problem["detail"]).contains("accounts"), "{problem}");
    let (id, log) = (answer.header("x-request-id").unwrap(), served.process.stderr());
    let line = log.lines().find(|line| line.contains(id) && line.contains("ERROR"));
    assert!(line.is_some_and(|line| line.contains("accounts")), "{log}");
}
