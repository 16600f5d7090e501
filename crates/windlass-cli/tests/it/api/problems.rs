//! Invalid requests get problem details; `ApiResponse` checks their form.

use crate::api::server_fixture::{ApiResponse, TestServer};
use crate::common::{CliSandbox, Data, raise, refused, text};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HOST, ORIGIN};
use serde_json::json;

async fn start_server() -> (Data, TestServer) {
    let data = Data::sqlite().with_accounts(10).await;
    let sandbox = CliSandbox::on(&data, &(raise(10) + "\n[server]\nmax_body = 2_000\n"));
    (data, TestServer::start(sandbox).await)
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let (_data, server) = start_server().await;
    for path in ["/nowhere", "/api/v1", "/api/v1/", "/api/v1/jobs/", "/api/v2/jobs", "/api/v1/job"]
    {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
    let wrong = server.send(Method::DELETE, "/api/v1/jobs", None).await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET,HEAD,POST")));
    for path in ["/healthz", "/metrics", "/api/v1/openapi.json", "/api/v1/stop/"] {
        assert!([404, 405].contains(&server.send(Method::PATCH, path, None).await.status));
    }
}

#[tokio::test]
async fn invalid_queries_and_ids_are_problems() {
    let (_data, server) = start_server().await;
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
        assert_eq!(server.get(path).await.status, 400, "{path}");
    }
    let unknown = "01980000-0000-7000-8000-000000000000";
    for path in ["", "/chunks", "/segments", "/output", "/events"] {
        let response = server.get(&format!("/api/v1/jobs/{unknown}{path}")).await;
        assert_eq!(response.is(404)["code"], "WL0009");
    }
    assert_eq!(server.get(&format!("/api/v1/dead-letters/{unknown}")).await.status, 404);
    for age in ["2years", "h", "-1h", "1000000h", "1.5h"] {
        let response = server.get(&format!("/api/v1/dead-letters?olderThan={age}")).await;
        response.is_rejected(400, "olderThan");
    }
    server.get("/api/v1/dead-letters?olderThan=999999w").await.is(200);
}

#[tokio::test]
async fn invalid_bodies_are_problems() {
    let (_data, server) = start_server().await;
    let post = async |kind: &str, body: String| {
        let request = server.request(Method::POST, "/api/v1/jobs").header(CONTENT_TYPE, kind);
        ApiResponse::of(request.body(body)).await
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
        server.post("/api/v1/jobs", &request).await.is_rejected(400, field);
    }
    assert_eq!(server.get("/api/v1/jobs").await.is(200), json!([]), "nothing was submitted");
}

#[tokio::test]
async fn the_request_id_is_in_the_response_and_the_log() {
    let (_data, server) = start_server().await;
    let named = |id: &str| server.request(Method::GET, "/healthz").header("x-request-id", id);
    let response = ApiResponse::of(named("mine-1")).await;
    assert_eq!(response.header("x-request-id"), Some("mine-1"));
    assert!(server.process.stderr().contains("id=\"mine-1\""), "{}", server.process.stderr());
    for bad in ["a b", "\"", &"x".repeat(200)] {
        let response = ApiResponse::of(named(bad)).await;
        assert_ne!(response.header("x-request-id"), Some(bad));
    }
}

#[tokio::test]
async fn without_auth_only_local_requests_are_allowed() {
    let (data, server) = start_server().await;
    let ask = async |name, value: &str| {
        ApiResponse::of(server.request(Method::POST, "/api/v1/stop").header(name, value))
            .await
            .status
    };
    assert_eq!(ask(ORIGIN, "https://evil.example").await, 403);
    assert_eq!(ask(HOST, "evil.example").await, 403);
    let own = server.url.clone();
    assert_eq!(ask(ORIGIN, &own).await, 200);

    let open = raise(10) + "\n[server]\nlisten = \"0.0.0.0:0\"\n";
    let sandbox = CliSandbox::on(&data, &open);
    refused(&sandbox.run("serve").await, &["server.listen", "[auth]", "127.0.0.1"]);
    let checked = sandbox.run("check").await;
    assert!(checked.stdout.contains("[auth]") && checked.code == Some(2), "{checked:?}");
    refused(&server.sandbox.run("serve --listen 0.0.0.0:0").await, &["server.listen", "[auth]"]);
}

#[tokio::test]
async fn internal_errors_are_logged_and_not_sent_to_the_caller() {
    let (data, server) = start_server().await;
    data.run("DROP TABLE accounts").await;
    let response = server.post("/api/v1/jobs", &json!({"jobType": "RAISE"})).await;
    let problem = response.is(500);
    assert!(!text(&problem["detail"]).contains("accounts"), "{problem}");
    let (id, log) = (response.header("x-request-id").unwrap(), server.process.stderr());
    let line = log.lines().find(|line| line.contains(id) && line.contains("ERROR"));
    assert!(line.is_some_and(|line| line.contains("accounts")), "{log}");
}
