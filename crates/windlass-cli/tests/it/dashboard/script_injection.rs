//! Scripts in keys, values, errors, params, claims, descriptions, and in names of filters, columns, tables
//! and submitters are escaped on every page.

use crate::api::server_fixture::{TestServer, auth, claims, signed};
use crate::common::{CliSandbox, Data, text};
use crate::dashboard::wallets_fixture::SCRIPT;
use serde_json::{Value as Json, json};
use windlass_testkit::Browser;

/// A short script.
const EVIL: &str = "<img src=x onerror=pwned=1>";

const JOBS: &str = r#"[jobs.'EVIL /?#%']
description = 'EVIL'
source.connection = "app"
source.table = 'EVIL'
source.key = ["id"]
source.filters = { 'EVIL' = "county" }
source.claims = { county = "county" }
params = { 'EVIL' = { required = false, description = 'EVIL' } }
step.sql = 'UPDATE "EVIL" SET amount = amount - 10 WHERE {chunk}'
"#;

async fn server_with_scripts() -> (Data, TestServer, String) {
    let data = Data::sqlite();
    data.run(&format!(
        "CREATE TABLE \"{EVIL}\" (id text PRIMARY KEY NOT NULL, county text NOT NULL, \"{EVIL}\" text,
             amount bigint NOT NULL, CONSTRAINT \"{EVIL}\" CHECK (amount >= 0));
         CREATE INDEX counties ON \"{EVIL}\" (county);
         INSERT INTO \"{EVIL}\" VALUES ('{EVIL}', '{EVIL}', '{SCRIPT}', 1), ('b', '{EVIL}', 'b', 500)"
    ))
    .await;
    let jobs = JOBS.replace("EVIL", EVIL) + &auth();
    let mut server = TestServer::with(CliSandbox::on(&data, &jobs), 2).await;
    let mut said = claims(EVIL, "chief");
    said["county"] = EVIL.into();
    let token = signed(&said);
    server.token(&token);
    (data, server, token)
}

#[tokio::test]
async fn no_page_executes_injected_scripts() {
    let (data, server, token) = server_with_scripts().await;
    let name = format!("{EVIL} /?#%");
    let request = json!({"jobType": name, "params": {EVIL: SCRIPT}, "filter": {EVIL: [EVIL]}});
    let id = server.submit(request).await;
    let job: Json = server.until(&id, "COMPLETED").await;
    assert_eq!(job["items"]["dead"], 1, "{job:#}");
    let letters = server.get("/api/v1/dead-letters").await.is(200);
    let letter = format!("/dead-letters/{}", text(&letters[0]["id"]));
    let chunk = format!("/jobs/{id}?chunk=0&after=-1");
    let browser = Browser::start(&server.url).await;
    browser.open("/").await;
    browser.fill("token", &token).await;
    browser.go("Sign in").await;
    let pages: [(&str, &str); 8] = [
        ("/", "CHECK constraint failed: <img"),
        ("/jobs", EVIL),
        (&chunk, "<script>"),
        (&letter, SCRIPT),
        ("/dead-letters?status=", EVIL),
        ("/job-types", EVIL),
        ("/schedules", EVIL),
        ("/workers", EVIL),
    ];
    for (path, shown) in pages {
        browser.open(path).await;
        browser.run("document.querySelectorAll('details').forEach(one => one.open = true)").await;
        browser.sees(shown).await;
        assert_escaped(&browser, path).await;
    }
    browser.open("/job-types").await;
    browser.go(&name).await;
    browser.sees("Definition").await;
    assert_escaped(&browser, "a job type").await;
    browser.fill(&format!("filter.{EVIL}"), EVIL).await;
    browser.go("Dry run").await;
    browser.sees(SCRIPT).await;
    assert_escaped(&browser, "a dry run").await;
    // In a URL: a filter, a redirect target, an unknown path.
    for path in [
        "/dead-letters?error=%22%3E%3Cimg%20src=x%20onerror=window.pwned=1%3E",
        "/dead-letters?fingerprint=%22%3E%3Cimg%20src=x%20onerror=window.pwned=1%3E",
        "/jobs?jobType=%22%3E%3Cimg%20src=x%20onerror=window.pwned=1%3E",
        "/jobs?status=%3Cimg%20src=x%20onerror=window.pwned=1%3E",
        "/jobs/%3Cimg%20src=x%20onerror=window.pwned=1%3E",
        "/sign-in?to=%22%3E%3Cimg%20src=x%20onerror=window.pwned=1%3E",
        "/%3Cimg%20src=x%20onerror=window.pwned=1%3E",
    ] {
        browser.open(path).await;
        assert_escaped(&browser, path).await;
    }
    // The error of a failed job contains the name of the table.
    server.post("/api/v1/stop", &json!({})).await.is(200);
    let id = server.submit(json!({"jobType": name})).await;
    data.run(&format!("ALTER TABLE \"{EVIL}\" RENAME TO away")).await;
    server.post("/api/v1/start", &json!({})).await.is(200);
    server.until(&id, "FAILED").await;
    for path in [format!("/jobs/{id}"), "/".to_owned()] {
        browser.open(&path).await;
        browser.sees("onerror=pwned").await;
        assert_escaped(&browser, &path).await;
    }
}

/// Texts that try to end the surrounding text, attribute, comment or element.
const PAYLOADS: [&str; 12] = [
    "<script>pwned=1</script>",
    "\"><script>pwned=1</script>",
    "</title><script>pwned=1</script>",
    "</textarea><script>pwned=1</script>",
    "--><script>pwned=1</script>",
    "]]><script>pwned=1</script>",
    "<svg/onload=pwned=1>",
    "<img src=x onerror=pwned=1>",
    "\" autofocus onfocus=\"pwned=1",
    "<a href=\"javascript:pwned=1\">x</a>",
    "<iframe srcdoc=\"<script>parent.pwned=1</script>\">",
    "<style>@import \"//evil.example\"</style>",
];

/// URLs that contain a text of the caller.
const PLACES: [&str; 12] = [
    "/dead-letters?error={}",
    "/dead-letters?fingerprint={}",
    "/dead-letters?jobType={}",
    "/dead-letters/{}",
    "/jobs?jobType={}",
    "/jobs?status={}",
    "/jobs?{}={}",
    "/jobs/{}",
    "/job-types/{}",
    "/sign-in?to={}",
    "/sign-in?error={}",
    "/{}",
];

#[tokio::test]
async fn no_page_reflects_a_url_as_markup() {
    let data = Data::sqlite().with_accounts(1).await;
    let server = TestServer::start(CliSandbox::on(&data, &crate::common::raise(10))).await;
    let mut attempts = 0;
    for payload in PAYLOADS {
        let encoded: String = payload.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for sandbox in PLACES {
            let request = server.request(reqwest::Method::GET, &sandbox.replace("{}", &encoded));
            let response = request.send().await.unwrap();
            assert_eq!(response.headers()["x-content-type-options"], "nosniff", "{sandbox}");
            let kind = response.headers().get("content-type").cloned();
            let kind = kind.as_ref().map_or("", |kind| kind.to_str().unwrap());
            match kind.split(';').next() {
                Some("text/html") => {
                    let page = response.text().await.unwrap();
                    assert!(!page.contains(payload), "{sandbox} {payload}: {page}");
                }
                Some("application/json" | "application/problem+json" | "") => {}
                other => panic!("{sandbox}: {other:?}"),
            }
            attempts += 1;
        }
    }
    assert_eq!(attempts, 144);
}

/// Asserts that no element was injected and no script was executed.
async fn assert_escaped(browser: &Browser, what: &str) {
    let made = "return [window.pwned === undefined, document.querySelectorAll('img').length, \
        document.querySelectorAll('script').length]";
    assert_eq!(browser.run(made).await, json!([true, 0, 1]), "{what}");
}
