//! Clients cannot exhaust descriptors, connections or memory.

use crate::api::server_fixture::{ApiResponse, TestServer, auth, token};
use crate::api::wallets_fixture::{take, wallets};
use crate::common::{CliSandbox, Data, eventually, job, raise, text};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HALF_OPEN: usize = 2000;
const STREAMS: usize = 300;
/// The descriptor limit of the server: far below the number of connections that the test opens.
const DESCRIPTORS: u32 = 400;

/// Opens a connection and sends the beginning of a request.
async fn half_open(server: &TestServer, sent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
    // The server may have closed the connection already.
    let _ = stream.write_all(sent.as_bytes()).await;
    stream
}

#[tokio::test]
async fn half_open_connections_and_streams_leave_descriptors_for_jobs() {
    windlass_testkit::allow_descriptors(4096);
    let data = Data::sqlite().with_accounts(200).await;
    let export = "[jobs.EXPORT]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                  step.export = { to = \"file:parts/{job_id}/\", format = \"csv\" }\nchunk.items = 10\n";
    let config = raise(10) + export + &auth();
    let mut server =
        TestServer::with_descriptors(CliSandbox::on(&data, &config), DESCRIPTORS, 2).await;
    let mut open = Vec::new();
    for number in 0..HALF_OPEN {
        let sent = ["", "GET", "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx", "PRI * HT"][number % 4];
        open.push(half_open(&server, sent).await);
    }
    server.token(&token("ada", "clerk"));
    let (mut streams, mut refused) = (Vec::new(), 0);
    for _ in 0..STREAMS {
        let stream = server.request(Method::GET, "/api/v1/events").send().await.unwrap();
        match stream.status().as_u16() {
            200 => streams.push(stream),
            429 => {
                assert!(stream.headers().contains_key("retry-after"));
                let problem: Json = serde_json::from_slice(&stream.bytes().await.unwrap()).unwrap();
                assert!(text(&problem["detail"]).contains("max_streams_per_caller"), "{problem}");
                refused += 1;
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!((streams.len(), refused), (32, STREAMS - 32));
    assert_eq!(server.get("/readyz").await.status, 200);
    for job_type in ["RAISE", "EXPORT"] {
        let id = server.submit(json!({"jobType": job_type})).await;
        let job = server.until(&id, "COMPLETED").await;
        assert_eq!(job["items"]["processed"], 200, "{job:#}");
    }
    assert_eq!(server.get("/readyz").await.status, 200);
    let said = server.process.stderr();
    assert!(!said.contains("Too many open files") && !said.contains("cannot be written"), "{said}");
    // A closed stream can be replaced, and other callers have their own limit.
    streams.truncate(31);
    eventually("a stream is free", async || {
        let stream = server.request(Method::GET, "/api/v1/events").send().await.unwrap();
        stream.status() == 200
    })
    .await;
    let other = server.token(&token("bob", "clerk")).request(Method::GET, "/api/v1/events");
    assert_eq!(other.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn slow_headers_bodies_and_idle_connections_time_out() {
    let data = wallets(Data::sqlite()).await;
    let config = take("")
        + "[server]\nheader_timeout = \"200ms\"\nbody_timeout = \"300ms\"\nidle_timeout = \"1s\"\n";
    let server = TestServer::start(CliSandbox::on(&data, &config)).await;
    for sent in ["", "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ", "PRI * HTTP/2.0\r\n"] {
        let mut stream = half_open(&server, sent).await;
        let mut response = Vec::new();
        // The server ends or resets the connection.
        let _ = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut response))
            .await
            .unwrap_or_else(|_| panic!("still open after {sent:?}"));
    }
    // A server whose header timeout does not end the connection first.
    let config = take("") + "[server]\nbody_timeout = \"300ms\"\n";
    let server = TestServer::start(CliSandbox::on(&data, &config)).await;
    let head = "POST /api/v1/jobs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
                content-length: 100\r\n\r\n{\"jobType\":";
    let mut stream = half_open(&server, head).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    let response = String::from_utf8(response).unwrap();
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    assert!(response.contains("server.body_timeout"), "{response}");
}

/// A line of `/proc/PID/status` of the server, in bytes.
fn memory(server: &TestServer, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Makes `VmHWM`, the peak memory of the server, start again from its current memory.
fn reset_peak_memory(server: &TestServer) {
    std::fs::write(format!("/proc/{}/clear_refs", server.process.id()), "5").unwrap();
}

const LARGE_JOBS: usize = 4;

#[tokio::test]
async fn large_requests_are_not_read_by_lists_metrics_and_events() {
    for data in Data::both().await {
        let data = data.with_accounts(1).await;
        let declared = |n: usize| format!("params.p{n} = {{ required = false }}\n");
        let jobs = raise(10) + &(0..100).map(declared).collect::<String>();
        let server = TestServer::start(CliSandbox::on(&data, &jobs)).await;
        let param = |n: usize| (format!("p{n}"), Json::from("x".repeat(65_000)));
        let params: serde_json::Map<String, Json> = (0..100).map(param).collect();
        let request = json!({"jobType": "RAISE", "params": params});
        let mut events = crate::api::events::Events::of(&server, "/api/v1/events").await;
        let first = server.submit(request.clone()).await;
        let (name, job) = events.next().await.unwrap();
        assert_eq!((name.as_str(), &job["omitted"]["params.p7"]), ("job", &json!(65_002)));
        for _ in 1..LARGE_JOBS {
            server.submit(request.clone()).await;
        }
        let before = memory(&server, "VmRSS:");
        reset_peak_memory(&server);
        // A small job, whose event and metrics prove that both were computed after the reset.
        let mut events = crate::api::events::Events::of(&server, "/api/v1/events").await;
        let last = server.submit(json!({"jobType": "RAISE"})).await;
        while events.next().await.unwrap().1["id"] != last.as_str() {}
        for _ in 0..3 {
            let (one, other, page) = tokio::join!(
                server.get("/api/v1/jobs?limit=1000"),
                server.get("/api/v1/jobs?limit=1000"),
                server.get("/jobs"),
            );
            assert_eq!(one.is(200).as_array().unwrap().len(), LARGE_JOBS + 1);
            assert!(one.text.len() < 1 << 20 && other.text.len() < 1 << 20, "{}", one.text.len());
            assert_eq!(page.status, 200);
        }
        let queued = LARGE_JOBS + 1;
        let gauge = format!("windlass_jobs{{job_type=\"RAISE\",status=\"QUEUED\"}} {queued}");
        eventually("the metrics are sampled", async || {
            server.get("/metrics").await.text.contains(&gauge)
        })
        .await;
        // A list that read all requests would have them three times: as rows, as values, as JSON.
        let requests = LARGE_JOBS * request.to_string().len();
        let increase = memory(&server, "VmHWM:").saturating_sub(before);
        assert!(increase < requests, "{increase} bytes more for {requests} bytes of requests");
        // The job itself still has its complete request.
        let shown = server.get(&format!("/api/v1/jobs/{first}")).await.is(200);
        assert_eq!(shown["request"], request);
    }
}

async fn a_job_may_depend_on_at_most_a_thousand_jobs(data: Data) {
    let server = TestServer::start(CliSandbox::on(&data, &take(""))).await;
    let parent = server.submit(json!({"jobType": "TAKE"})).await;
    let submit = async |after: Vec<&str>| {
        server.post("/api/v1/jobs", &json!({"jobType": "TAKE", "after": after})).await
    };
    submit(vec![&parent; 20_000]).await.is_rejected(400, "after");
    submit(vec![&parent; 1001]).await.is_rejected(400, "after");
    let nil = uuid::Uuid::nil().to_string();
    submit(vec![&parent, &nil]).await.is_rejected(400, "after[1]");
    submit(vec![&parent; 1000]).await.is(201);
}

async fn oversized_fields_are_named_with_their_limit(data: Data) {
    data.run("CREATE INDEX wallets_county ON wallets (county, id)").await;
    let jobs = take("source.filters = { county = \"county\" }\n");
    let server = TestServer::start(CliSandbox::on(&data, &jobs)).await;
    for (more, field) in [
        (json!({"idempotencyKey": "k".repeat(256)}), "idempotencyKey"),
        (json!({"params": {"a": "x".repeat(70_000)}}), "params.a"),
        (json!({"params": {"n".repeat(201): 1}}), "params"),
        (json!({"filter": {"county": vec!["Kent"; 10_001]}}), "filter.county"),
        (json!({"filter": {"county": ["x".repeat(5000)]}}), "filter.county"),
        (json!({"ids": ["1".repeat(5000)]}), "ids[0]"),
    ] {
        let mut request = more;
        request["jobType"] = json!("TAKE");
        let response = server.post("/api/v1/jobs", &request).await;
        response.is_rejected(400, field);
        assert!(text(&response.json()["detail"]).contains("at most"), "{response:?}");
        assert!(response.text.len() < 1000, "the response does not repeat the oversized value");
    }
    let document = server.get("/api/v1/openapi.json").await.is(200);
    let request = &document["components"]["schemas"]["Request"]["properties"];
    assert_eq!(request["idempotencyKey"]["maxLength"], 255);
    assert_eq!(request["after"]["maxItems"], 1000);
    assert_eq!(request["ids"]["maxItems"], 500_000);
}

#[tokio::test]
async fn a_result_is_downloaded_by_frames() {
    let data = Data::sqlite().with_accounts(2500).await;
    let jobs = "[jobs.SUM]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                step.map = \"SELECT id, amount FROM {source} WHERE {chunk}\"\n\
                reduce = \"SELECT id, amount FROM parts ORDER BY id\"\nchunk.items = 500\n";
    let server = TestServer::with(CliSandbox::on(&data, jobs), 2).await;
    let id = server.submit(json!({"jobType": "SUM"})).await;
    server.until(&id, "COMPLETED").await;
    let path = format!("/api/v1/jobs/{id}/output");
    let whole = server.get(&path).await;
    assert_eq!(whole.text.lines().count(), 2500);
    assert_eq!(whole.text, server.sandbox.run(&format!("output {id}")).await.ok().stdout);
    let total = whole.text.len();
    for (from, to) in [(0, 1), (0, total), (total - 1, total), (total / 2, total / 2 + 40_000)] {
        let range = format!("bytes={from}-{}", to - 1);
        let part = ApiResponse::of(server.request(Method::GET, &path).header("range", range)).await;
        let to = to.min(total);
        assert_eq!((part.status, part.text.as_str()), (206, &whole.text[from..to]));
        let expected = format!("bytes {from}-{}/{total}", to - 1);
        assert_eq!(part.header("content-range"), Some(expected.as_str()));
    }
}

#[tokio::test]
async fn without_auth_forwarded_and_cross_site_requests_are_rejected() {
    let data = Data::sqlite().with_accounts(1).await;
    let jobs = job("RAISE", "UPDATE accounts SET amount = amount + 1 WHERE {chunk}", 10);
    let server = TestServer::start(CliSandbox::on(&data, &jobs)).await;
    let mut attempts = 0;
    for path in ["/api/v1/jobs", "/api/v1/events", "/metrics", "/"] {
        for (name, value) in [
            ("forwarded", "for=192.0.2.1"),
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-host", "windlass.example"),
            ("x-forwarded-proto", "https"),
            ("x-real-ip", "192.0.2.1"),
            ("x-client-ip", "192.0.2.1"),
            ("via", "1.1 proxy"),
            ("sec-fetch-site", "cross-site"),
        ] {
            let request = server.request(Method::GET, path).header(name, value);
            assert_eq!(request.send().await.unwrap().status(), 403, "{path} {name}");
            attempts += 1;
        }
        assert_eq!(server.request(Method::GET, path).send().await.unwrap().status(), 200);
    }
    assert_eq!(attempts, 32);
    let probed = server.request(Method::GET, "/readyz").header("x-forwarded-for", "192.0.2.1");
    assert_eq!(ApiResponse::of(probed).await.status, 200, "probes may come through proxies");
}

on_both!(a_job_may_depend_on_at_most_a_thousand_jobs, oversized_fields_are_named_with_their_limit,);
