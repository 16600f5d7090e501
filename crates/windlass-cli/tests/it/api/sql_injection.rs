//! SQL in every text that the API accepts: bodies, queries, path segments, headers and claims.
//! It is rejected or used as a value: no other row changes, no table is dropped, no response is a 500.

use crate::api::server_fixture::{ApiResponse, TestServer, auth, claims, signed};
use crate::common::{CliSandbox, Data, text};
use reqwest::Method;
use serde_json::{Value as Json, json};

const PAYLOADS: [&str; 20] = [
    "'; DROP TABLE canary; --",
    "'); DELETE FROM visits; --",
    "\"; DROP TABLE visits; --",
    "`; DROP TABLE canary; --",
    "1; DELETE FROM canary",
    "1 OR 1=1",
    "' OR '1'='1",
    "') OR ('1'='1",
    "' UNION SELECT * FROM canary --",
    "\\'; UPDATE visits SET note = 'owned'; --",
    "'||(SELECT n FROM canary)||'",
    "$$; DELETE FROM canary; $$",
    "$1; DELETE FROM canary",
    "?; DELETE FROM canary",
    ":note; DELETE FROM canary",
    "{chunk} OR true",
    "/*! OR 1=1 */",
    "%' OR note LIKE '%",
    "\u{2019}; DELETE FROM canary; --",
    "Kent\n'; DROP TABLE windlass_jobs; --",
];

const JOB: &str = "[jobs.NOTE]\nsource.connection = \"app\"\nsource.table = \"visits\"\n\
    source.filters = { counties = \"county\", years = \"year\" }\n\
    source.claims = { county = \"county\" }\n\
    step.sql = \"UPDATE visits SET note = :note WHERE {chunk}\"\n";

/// Rows of Kent, and of all counties.
const KENT: i64 = 6;
const ALL: i64 = 12;

async fn start_server(data: &Data) -> TestServer {
    data.run(
        "CREATE TABLE visits (id bigint PRIMARY KEY NOT NULL, county varchar(100) NOT NULL,
             year integer NOT NULL, note varchar(200));
         CREATE INDEX visits_county ON visits (county, id);
         CREATE INDEX visits_year ON visits (year, id);
         CREATE TABLE canary (n bigint NOT NULL);
         INSERT INTO canary VALUES (1), (2), (4);",
    )
    .await;
    for id in 1..=ALL {
        let county = if id <= KENT { "Kent" } else { "Essex" };
        data.run(&format!("INSERT INTO visits VALUES ({id}, '{county}', 2024, NULL)")).await;
    }
    TestServer::with(CliSandbox::on(data, &(JOB.to_owned() + &auth())), 1).await
}

/// A token of a caller with this county.
fn of(name: &str, role: &str, county: Option<&str>) -> String {
    let mut claims = claims(name, role);
    if let Some(county) = county {
        claims["county"] = json!(county);
    }
    signed(&claims)
}

/// Each byte that is not a letter or digit, as a URL writes it.
fn encoded(text: &str) -> String {
    let byte = |byte: &u8| match byte.is_ascii_alphanumeric() {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.as_bytes().iter().map(byte).collect()
}

struct Attack<'a> {
    server: &'a mut TestServer,
    attempts: usize,
}

impl Attack<'_> {
    /// One attempt. The server must not fail.
    async fn send(&mut self, method: Method, path: &str, body: Option<&Json>) -> ApiResponse {
        self.attempts += 1;
        let response = self.server.send(method, path, body).await;
        assert!(response.status < 500, "{path} {body:?}: {response:?}");
        response
    }

    /// Submits a request and waits for its job; returns the number of its items if it was accepted.
    async fn submit(&mut self, more: Json) -> Option<i64> {
        let mut request = json!({"jobType": "NOTE", "params": {"note": "x"}});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let response = self.send(Method::POST, "/api/v1/jobs", Some(&request)).await;
        if response.status >= 400 {
            return None;
        }
        let job = self.server.until(&text(&response.json()["id"]), "COMPLETED").await;
        Some(job["items"]["total"].as_i64().unwrap())
    }
}

async fn sql_in_a_request_is_never_executed(data: Data) {
    let mut server = start_server(&data).await;
    let mut attack = Attack { server: &mut server, attempts: 0 };
    let kent = of("ada", "clerk", Some("Kent"));
    for payload in PAYLOADS {
        attack.server.token(&kent);
        // As a value, it matches only an equal value.
        assert_eq!(attack.submit(json!({"filter": {"counties": [payload]}})).await, Some(0));
        let mixed = json!({"filter": {"counties": [payload, "Kent", "Essex"]}});
        assert_eq!(attack.submit(mixed).await, Some(KENT));
        assert_eq!(attack.submit(json!({"params": {"note": payload}})).await, Some(KENT));
        let hex: String = payload.bytes().map(|byte| format!("{byte:02X}")).collect();
        let noted = format!("SELECT count(*) FROM visits WHERE {} = '{hex}'", note_as_hex(&data));
        assert_eq!(data.number(&noted).await, KENT, "{payload}: the param is stored as it is");
        for more in
            [json!({"params": {"note": "x", payload: 1}}), json!({"idempotencyKey": payload})]
        {
            assert!(attack.submit(more).await.is_none_or(|items| items == KENT), "{payload}");
        }
        // Everywhere else it is rejected.
        for more in [
            json!({"filter": {"years": [payload]}}),
            json!({"filter": {payload: ["Kent"]}}),
            json!({"filter": payload}),
            json!({"ids": [payload]}),
            json!({"ids": [1, payload]}),
            json!({"ids": [[payload]]}),
            json!({"ids": payload}),
            json!({"items": [{"id": payload}]}),
            json!({"jobType": payload}),
            json!({"after": [payload]}),
            json!({"onFailed": payload}),
            json!({"priority": payload}),
            json!({"parallelSegments": payload}),
            json!({"maxItemsPerSegment": payload}),
            json!({payload: payload}),
        ] {
            assert_eq!(attack.submit(more.clone()).await, None, "{more}");
        }
        // As a claim or a name of a token.
        for token in [of("ada", "clerk", Some(payload)), of(payload, payload, Some("Kent"))] {
            attack.server.token(&token);
            let items = attack.submit(json!({})).await;
            assert!(items.is_none_or(|items| items == 0), "{payload}: {items:?}");
        }
        attack.server.token(&of("eve", "chief", None));
        in_urls(&mut attack, payload).await;
        in_dead_letters(&mut attack, payload).await;
    }
    assert_eq!(attack.attempts, PAYLOADS.len() * 61, "attempts");

    server.token(&of("eve", "chief", None));
    server.get("/api/v1/jobs").await.is(200);
    assert_eq!(data.number("SELECT sum(n) + 10 * count(*) FROM canary").await, 37);
    assert_eq!(data.number("SELECT count(*) FROM visits").await, ALL);
    let others = "SELECT count(*) FROM visits WHERE note IS NOT NULL AND county <> 'Kent'";
    assert_eq!(data.number(others).await, 0, "rows outside the requests");
    assert_eq!(data.number("SELECT count(*) FROM visits WHERE year = 2024").await, ALL);
}

/// Path segments and parameters of listings.
async fn in_urls(attack: &mut Attack<'_>, payload: &str) {
    let word = encoded(payload);
    for path in [
        format!("/api/v1/jobs/{word}"),
        format!("/api/v1/jobs/{word}/chunks"),
        format!("/api/v1/jobs/{word}/segments"),
        format!("/api/v1/jobs/{word}/events"),
        format!("/api/v1/jobs/{word}/output"),
        format!("/api/v1/jobs/{word}/report"),
        format!("/api/v1/jobs/{word}/dependencies"),
        format!("/api/v1/dead-letters/{word}"),
        format!("/api/v1/{word}"),
        format!("/api/v1/jobs?jobType={word}"),
        format!("/api/v1/jobs?status={word}"),
        format!("/api/v1/jobs?before={word}"),
        format!("/api/v1/jobs?limit={word}"),
        format!("/api/v1/jobs?{word}={word}"),
        format!("/api/v1/dead-letters?job={word}"),
        format!("/api/v1/dead-letters?jobType={word}"),
        format!("/api/v1/dead-letters?error={word}"),
        format!("/api/v1/dead-letters?fingerprint={word}"),
        format!("/api/v1/dead-letters?status={word}"),
        format!("/api/v1/dead-letters?olderThan={word}"),
        format!("/api/v1/dead-letters?before={word}"),
        format!("/api/v1/dead-letters?limit={word}"),
        format!("/api/v1/alerts?before={word}"),
        format!("/api/v1/alerts?limit={word}"),
    ] {
        let response = attack.send(Method::GET, &path, None).await;
        let found = response.status == 200 && response.json() != json!([]);
        assert!(!found, "{path}: {response:?}");
    }
    for path in [
        format!("/api/v1/jobs/{word}/cancel"),
        format!("/api/v1/jobs/{word}/pause"),
        format!("/api/v1/jobs/{word}/resume"),
        format!("/api/v1/jobs/{word}/retry"),
        format!("/api/v1/stop?jobType={word}"),
        format!("/api/v1/start?jobType={word}"),
        format!("/api/v1/schedules/{word}/pause"),
    ] {
        let response = attack.send(Method::POST, &path, Some(&json!({}))).await;
        assert!(response.status >= 400, "{path}: {response:?}");
    }
    for path in [format!("/api/v1/throughput/{word}"), format!("/api/v1/jobs/{word}/throughput")] {
        let response = attack.send(Method::PUT, &path, Some(&json!({"concurrency": 1}))).await;
        assert!(response.status >= 400, "{path}: {response:?}");
    }
}

/// Selections of dead letters.
async fn in_dead_letters(attack: &mut Attack<'_>, payload: &str) {
    for which in [
        json!({"ids": [payload]}),
        json!({"job": payload}),
        json!({"jobType": payload}),
        json!({"error": payload}),
        json!({"fingerprint": payload}),
        json!({"olderThan": payload}),
    ] {
        // There are no dead letters, so none may be found.
        let response =
            attack.send(Method::POST, "/api/v1/dead-letters/redrive", Some(&which)).await;
        assert!(response.status >= 400 || response.json() == json!([]), "{which}: {response:?}");
    }
}

/// The bytes of a note, so that no quoting is needed to compare them.
fn note_as_hex(data: &Data) -> &'static str {
    match data {
        Data::Postgres(_) => "upper(encode(convert_to(note, 'UTF8'), 'hex'))",
        Data::Sqlite(_) => "hex(note)",
        Data::Mariadb(_) => "hex(CONVERT(note USING utf8mb4))",
    }
}

#[tokio::test]
async fn sql_in_a_request_is_never_executed_on_postgres() {
    sql_in_a_request_is_never_executed(Data::postgres().await).await;
}

#[tokio::test]
async fn sql_in_a_request_is_never_executed_on_sqlite() {
    sql_in_a_request_is_never_executed(Data::sqlite()).await;
}

#[tokio::test]
async fn sql_in_a_request_is_never_executed_on_mariadb() {
    sql_in_a_request_is_never_executed(Data::mariadb().await).await;
}
