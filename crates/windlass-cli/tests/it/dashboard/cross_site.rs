//! Pages of other sites cannot make a browser act on the dashboard.

use crate::api::server_fixture::{TestServer, auth, token};
use crate::api::stub_service::StubService;
use crate::common::{CliSandbox, text};
use crate::dashboard::wallets_fixture::{sign_in, take, wallets};
use reqwest::{Client, StatusCode, redirect};
use serde_json::json;
use windlass_testkit::Browser;

/// Every form action of the dashboard.
const POSTS: [&str; 14] = [
    "/stop",
    "/start",
    "/jobs/{id}/cancel",
    "/jobs/{id}/pause",
    "/jobs/{id}/resume",
    "/jobs/{id}/retry",
    "/jobs/{id}/throughput",
    "/dead-letters/redrive",
    "/dead-letters/ignore",
    "/job-types/TAKE/run",
    "/job-types/TAKE/dry-run",
    "/job-types/TAKE/throughput",
    "/schedules/TAKE/pause",
    "/schedules/TAKE/resume",
];

fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().redirect(redirect::Policy::none()).build().unwrap()
}

#[tokio::test]
async fn a_form_of_another_site_is_rejected() {
    let data = wallets().await;
    let mut server = TestServer::start(CliSandbox::on(&data, &(take("") + &auth()))).await;
    let chief = token("eve", "chief");
    let id = server.token(&chief).submit(json!({"jobType": "TAKE"})).await;
    let (client, cookie) = (client(), format!("windlass_session={chief}"));
    let mut attempts = 0;
    for path in POSTS {
        for origin in [
            None,
            Some("https://evil.example"),
            Some("null"),
            Some("http://127.0.0.1"),
            Some("http://localhost:1"),
            Some(""),
            Some("file://"),
        ] {
            attempts += 1;
            let address = format!("{}{}", server.url, path.replace("{id}", &id));
            let mut post = client.post(address).header("cookie", &cookie);
            post = post.header("content-type", "application/x-www-form-urlencoded").body("all=yes");
            if let Some(origin) = origin {
                post = post.header("origin", origin);
            }
            let response = post.send().await.unwrap();
            assert_eq!(response.status(), StatusCode::SEE_OTHER, "{path} {origin:?}");
            let sandbox = response.headers()["location"].to_str().unwrap().to_owned();
            assert!(sandbox.starts_with("/sign-in"), "{path} {origin:?}: {sandbox}");
        }
    }
    assert_eq!(attempts, 14 * 7);
    // Another site cannot sign a user in or out.
    for path in ["/sign-in", "/sign-out"] {
        let post = client.post(format!("{}{path}", server.url)).header("cookie", &cookie);
        let post = post.header("origin", "https://evil.example");
        let post = post.header("content-type", "application/x-www-form-urlencoded");
        let response = post.body(format!("token={chief}")).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{path}");
        assert!(!response.headers().contains_key("set-cookie"), "{path}");
    }
    // The same cookie works from our own page.
    let pause = client.post(format!("{}/jobs/{id}/pause", server.url)).header("cookie", &cookie);
    let response = pause.header("origin", &server.url).send().await.unwrap();
    assert_eq!(response.headers()["location"], format!("/jobs/{id}"));
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}")).await.is(200)["status"], "PAUSED");
    let controls = server.get("/api/v1/throughput").await.is(200);
    assert!(controls.as_array().unwrap().iter().all(|said| said["stopped"] == false), "{controls}");
}

#[tokio::test]
async fn without_auth_a_form_of_another_site_is_rejected_too() {
    let data = wallets().await;
    let server = TestServer::start(CliSandbox::on(&data, &take(""))).await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    for path in POSTS {
        let address = format!("{}{}", server.url, path.replace("{id}", &id));
        let post = client().post(address).header("origin", "https://evil.example");
        let response = post.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn a_page_on_another_port_cannot_stop_processing() {
    let data = wallets().await;
    let server = TestServer::start(CliSandbox::on(&data, &(take("") + &auth()))).await;
    let evil = format!(
        "<form id=f method=post action=\"{}/stop\"></form><script>f.submit()</script>",
        server.url
    );
    let head = "<!doctype html><meta charset=utf-8>";
    let stub = StubService::responding(&format!("{head}{evil}")).await;
    let browser = Browser::start(&server.url).await;
    sign_in(&browser, &token("eve", "chief")).await;
    browser.sees("Processing is enabled.").await;
    // For a browser, another port is the same site, so it sends the cookie.
    browser.client.goto(&stub.url).await.unwrap();
    browser.sees("Sign in").await;
    browser.shows("/", "Processing is enabled.").await;
}

#[tokio::test]
async fn pages_allow_only_own_scripts_and_assets_are_small() {
    let data = wallets().await;
    let server = TestServer::start(CliSandbox::on(&data, &take(""))).await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    let job = format!("/jobs/{id}");
    for path in [
        "/",
        "/jobs",
        &job,
        "/dead-letters",
        "/job-types",
        "/job-types/TAKE",
        "/schedules",
        "/workers",
    ] {
        let page = server.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(page.header("cache-control"), Some("no-store"));
        for inside in ["<style", " style=", " onclick", "<script>"] {
            assert!(!page.text.contains(inside), "{path} has {inside}");
        }
    }
    let mut bytes = 0;
    for asset in ["/assets/style.css", "/assets/live.js", "/assets/icon.svg"] {
        bytes += server.get(asset).await.text.len();
    }
    assert!(bytes < 150_000, "{bytes} bytes of assets");
    let missing =
        client().get(format!("{}/jobs/{}", server.url, uuid::Uuid::nil())).send().await.unwrap();
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    assert!(text(&json!(missing.text().await.unwrap())).contains("there is no job"));
}

/// Places that a link could try to send one to, or to read.
const ELSEWHERE: [&str; 12] = [
    "https://evil.example",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "/a\r\nlocation: https://evil.example",
    "\t//evil.example",
    " //evil.example",
    "/\t/evil.example",
    "http:evil.example",
];

#[tokio::test]
async fn no_redirect_leaves_the_site_and_no_path_reads_a_file() {
    let data = wallets().await;
    let server = TestServer::start(CliSandbox::on(&data, &(take("") + &auth()))).await;
    let (client, chief) = (client(), token("eve", "chief"));
    let mut attempts = 0;
    for sandbox in ELSEWHERE {
        for (path, field) in
            [("/sign-in", "to"), ("/start", "back"), ("/job-types/TAKE/throughput", "back")]
        {
            let encoded: String = sandbox.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let form = format!("token={chief}&{field}={encoded}");
            let post = client.post(format!("{}{path}", server.url)).header("origin", &server.url);
            let post = post.header("cookie", format!("windlass_session={chief}"));
            let post = post.header("content-type", "application/x-www-form-urlencoded");
            let response = post.body(form).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::SEE_OTHER, "{path} {sandbox:?}");
            assert_eq!(response.headers()["location"], "/", "{path} {sandbox:?}");
            attempts += 1;
        }
    }
    let address = server.url.trim_start_matches("http://");
    for start in ["/", "/assets/", "/jobs/", "/api/v1/jobs/", "/job-types/"] {
        for path in [
            "../windlass.toml",
            "../../../../etc/passwd",
            "..%2f..%2f..%2fetc%2fpasswd",
            "%2e%2e/%2e%2e/etc/passwd",
            "..%5c..%5cetc%5cpasswd",
            "....//....//etc/passwd",
            "%00windlass.toml",
            "windlass.toml%00.css",
        ] {
            // Sent as raw bytes, because HTTP clients normalize paths.
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let head = format!(
                "GET {start}{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
                 authorization: Bearer {chief}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).await.unwrap();
            assert!(response.starts_with("HTTP/1.1 40"), "{start}{path}: {response}");
            assert!(
                !response.contains("root:") && !response.contains("[connections"),
                "{response}"
            );
            attempts += 1;
        }
    }
    assert_eq!(attempts, 36 + 40);
}
