//! What strangers and callers cannot use up: descriptors, memory, look-ups.

use crate::api::accounts_fixture::{savings_accounts, take};
use crate::api::served::{Answer, Served, auth, token};
use crate::common::{CliSandbox, Data, eventually, job, raise, text};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HALF_OPEN: usize = 2000;
const STREAMS: usize = 300;
/// Descriptors of the server: far fewer than the connections that are made to it.
const DESCRIPTORS: u32 = 400;

/// A connection that has sent the beginning of a request.
async fn half_open(served: &Served, sent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(served.url.trim_start_matches("http://")).await.unwrap();
    // One that was closed already is as good.
    let _ = stream.write_all(sent.as_bytes()).await;
    stream
}

#[tokio::test]
async fn half_open_connections_and_streams_leave_descriptors_for_the_work() {
    windlass_testkit::allow_descriptors(4096);
    let data = Data::sqlite().with_accounts(200).await;
    let export = "[jobs.EXPORT]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                  step.export = { to = \"file:parts/{job_id}/\", format = \"csv\" }\nchunk.items = 10\n";
    let config = raise(10) + export + &auth();
    let mut served = Served::with_descriptors(CliSandbox::on(&data, &config), DESCRIPTORS, 2).await;
    let mut open = Vec::new();
    for number in 0..HALF_OPEN {
        let sent = ["", "GET", "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx", "PRI * HT"][number % 4];
        open.push(half_open(&served, sent).await);
    }
    served.token(&token("ada", "clerk"));
    let (mut streams, mut refused) = (Vec::new(), 0);
    for _ in 0..STREAMS {
        let stream = served.request(Method::GET, "/api/v1/events").send().await.unwrap();
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
    assert_eq!(served.get("/readyz").await.status, 200);
    for job_type in ["RAISE", "EXPORT"] {
        let id = served.submit(json!({"jobType": job_type})).await;
        let job = served.until(&id, "COMPLETED").await;
        assert_eq!(job["items"]["processed"], 200, "{job:#}");
    }
    assert_eq!(served.get("/readyz").await.status, 200);
    let said = served.process.stderr();
    assert!(!said.contains("Too many open files") && !said.contains("cannot be written"), "{said}");
    // Who ends a stream may begin another, and others have their own.
    streams.truncate(31);
    eventually("a stream is free", async || {
        let stream = served.request(Method::GET, "/api/v1/events").send().await.unwrap();
        stream.status() == 200
    })
    .await;
    let other = served.token(&token("bob", "clerk")).request(Method::GET, "/api/v1/events");
    assert_eq!(other.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn headers_bodies_and_idle_connections_have_their_time() {
    let data = savings_accounts(Data::sqlite()).await;
    let config = take("")
        + "[server]\nheader_timeout = \"200ms\"\nbody_timeout = \"300ms\"\nidle_timeout = \"1s\"\n";
    let served = Served::start(CliSandbox::on(&data, &config)).await;
    for sent in ["", "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ", "PRI * HTTP/2.0\r\n"] {
        let mut stream = half_open(&served, sent).await;
        let mut answer = Vec::new();
        // An end, or a reset: not for ever.
        let _ = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer))
            .await
            .unwrap_or_else(|_| panic!("still open after {sent:?}"));
    }
    let head = "POST /api/v1/jobs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
                content-length: 100\r\n\r\n{\"jobType\":";
    let mut stream = half_open(&served, head).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("server.body_timeout"), "{answer}");
}

/// The most memory that the server ever had, in mebibytes.
fn peak(served: &Served) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

const LARGE_JOBS: usize = 50;
/// Mebibytes. A list that reads all requests has them three times: as rows, as values, as its answer.
const MOST_MEMORY: u64 = 700;

#[tokio::test]
async fn large_requests_are_not_read_by_lists_metrics_and_events() {
    for data in Data::both().await {
        let data = data.with_accounts(1).await;
        let served = Served::start(CliSandbox::on(&data, &raise(10))).await;
        let param = |n: usize| (format!("p{n}"), Json::from("x".repeat(65_000)));
        let params: serde_json::Map<String, Json> = (0..100).map(param).collect();
        let request = json!({"jobType": "RAISE", "params": params});
        let mut events = crate::api::events::Events::of(&served, "/api/v1/events").await;
        let first = served.submit(request.clone()).await;
        let (name, heard) = events.next().await.unwrap();
        assert_eq!((name.as_str(), &heard["omitted"]["params.p7"]), ("job", &json!(65_002)));
        for _ in 1..LARGE_JOBS {
            served.submit(request.clone()).await;
        }
        for _ in 0..3 {
            let (one, other, page) = tokio::join!(
                served.get("/api/v1/jobs?limit=1000"),
                served.get("/api/v1/jobs?limit=1000"),
                served.get("/jobs"),
            );
            assert_eq!(one.is(200).as_array().unwrap().len(), LARGE_JOBS);
            assert!(one.text.len() < 1 << 20 && other.text.len() < 1 << 20, "{}", one.text.len());
            assert_eq!(page.status, 200);
        }
        eventually("the metrics have been taken", async || {
            let metrics = served.get("/metrics").await.text;
            metrics.contains(&format!(
                "windlass_jobs{{job_type=\"RAISE\",status=\"QUEUED\"}} {LARGE_JOBS}"
            ))
        })
        .await;
        // The job itself has its request as it was.
        let shown = served.get(&format!("/api/v1/jobs/{first}")).await.is(200);
        assert_eq!(shown["request"], request);
        assert!(peak(&served) < MOST_MEMORY, "{} MiB", peak(&served));
    }
}

async fn a_job_may_come_after_a_thousand_others_and_not_more(data: Data) {
    let served = Served::start(CliSandbox::on(&data, &take(""))).await;
    let parent = served.submit(json!({"jobType": "TAKE"})).await;
    let submit = async |after: Vec<&str>| {
        served.post("/api/v1/jobs", &json!({"jobType": "TAKE", "after": after})).await
    };
    submit(vec![&parent; 20_000]).await.refuses(400, "after");
    submit(vec![&parent; 1001]).await.refuses(400, "after");
    let nil = uuid::Uuid::nil().to_string();
    submit(vec![&parent, &nil]).await.refuses(400, "after[1]");
    submit(vec![&parent; 1000]).await.is(201);
}

async fn what_is_too_long_is_named_with_its_limit(data: Data) {
    data.run("CREATE INDEX savings_county ON savings (county, id)").await;
    let jobs = take("source.filters = { county = \"county\" }\n");
    let served = Served::start(CliSandbox::on(&data, &jobs)).await;
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
        let answer = served.post("/api/v1/jobs", &request).await;
        answer.refuses(400, field);
        assert!(text(&answer.json()["detail"]).contains("at most"), "{answer:?}");
        assert!(answer.text.len() < 1000, "what is too long is not repeated");
    }
    let document = served.get("/api/v1/openapi.json").await.is(200);
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
    let served = Served::with(CliSandbox::on(&data, jobs), 2).await;
    let id = served.submit(json!({"jobType": "SUM"})).await;
    served.until(&id, "COMPLETED").await;
    let path = format!("/api/v1/jobs/{id}/output");
    let whole = served.get(&path).await;
    assert_eq!(whole.text.lines().count(), 2500);
    assert_eq!(whole.text, served.sandbox.run(&format!("output {id}")).await.ok().stdout);
    let total = whole.text.len();
    for (from, to) in [(0, 1), (0, total), (total - 1, total), (total / 2, total / 2 + 40_000)] {
        let range = format!("bytes={from}-{}", to - 1);
        let part = Answer::of(served.request(Method::GET, &path).header("range", range)).await;
        let to = to.min(total);
        assert_eq!((part.status, part.text.as_str()), (206, &whole.text[from..to]));
        let expected = format!("bytes {from}-{}/{total}", to - 1);
        assert_eq!(part.header("content-range"), Some(expected.as_str()));
    }
}

#[tokio::test]
async fn without_auth_what_a_proxy_or_another_site_sends_is_refused() {
    let data = Data::sqlite().with_accounts(1).await;
    let jobs = job("RAISE", "UPDATE accounts SET amount = amount + 1 WHERE {chunk}", 10);
    let served = Served::start(CliSandbox::on(&data, &jobs)).await;
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
            let request = served.request(Method::GET, path).header(name, value);
            assert_eq!(request.send().await.unwrap().status(), 403, "{path} {name}");
            attempts += 1;
        }
        assert_eq!(served.request(Method::GET, path).send().await.unwrap().status(), 200);
    }
    assert_eq!(attempts, 32);
    let probed = served.request(Method::GET, "/readyz").header("x-forwarded-for", "192.0.2.1");
    assert_eq!(Answer::of(probed).await.status, 200, "probes come through proxies");
}

on_both!(
    a_job_may_come_after_a_thousand_others_and_not_more,
    what_is_too_long_is_named_with_its_limit,
);
