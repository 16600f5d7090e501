//! Whatever people, records and databases say is shown, not run, wherever it is shown: keys, values,
//! errors, params, claims, descriptions, and names of filters, columns, tables and submitters.

use crate::api::served::{Served, auth, claims, signed};
use crate::common::{CliSandbox, Data, text};
use crate::dashboard::fixture::SCRIPT;
use serde_json::{Value as Json, json};
use windlass_testkit::Browser;

/// A script in few letters.
const EVIL: &str = "<img src=x onerror=pwned=1>";

const JOBS: &str = r#"[jobs.'EVIL /?#%']
description = 'EVIL'
source.connection = "app"
source.table = 'EVIL'
source.key = ["id"]
source.filters = { 'EVIL' = "county" }
source.claims = { county = "county" }
step.sql = 'UPDATE "EVIL" SET amount = amount - 10 WHERE {chunk}'
"#;

async fn evil() -> (Data, Served, String) {
    let data = Data::sqlite();
    data.run(&format!(
        "CREATE TABLE \"{EVIL}\" (id text PRIMARY KEY NOT NULL, county text NOT NULL, \"{EVIL}\" text,
             amount bigint NOT NULL, CONSTRAINT \"{EVIL}\" CHECK (amount >= 0));
         CREATE INDEX counties ON \"{EVIL}\" (county);
         INSERT INTO \"{EVIL}\" VALUES ('{EVIL}', '{EVIL}', '{SCRIPT}', 1), ('b', '{EVIL}', 'b', 500)"
    ))
    .await;
    let jobs = JOBS.replace("EVIL", EVIL) + &auth();
    let mut served = Served::with(CliSandbox::on(&data, &jobs), 2).await;
    let mut said = claims(EVIL, "chief");
    said["county"] = EVIL.into();
    let token = signed(&said);
    served.token(&token);
    (data, served, token)
}

#[tokio::test]
async fn nothing_that_is_shown_is_run() {
    let (data, served, token) = evil().await;
    let name = format!("{EVIL} /?#%");
    let request = json!({"jobType": name, "params": {EVIL: SCRIPT}, "filter": {EVIL: [EVIL]}});
    let id = served.submit(request).await;
    let job: Json = served.until(&id, "COMPLETED").await;
    assert_eq!(job["items"]["dead"], 1, "{job:#}");
    let letters = served.get("/api/v1/dead-letters").await.is(200);
    let letter = format!("/dead-letters/{}", text(&letters[0]["id"]));
    let chunk = format!("/jobs/{id}?chunk=0&after=-1");
    let browser = Browser::start(&served.url).await;
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
        is_sound(&browser, path).await;
    }
    browser.open("/job-types").await;
    browser.go(&name).await;
    browser.sees("What it does").await;
    is_sound(&browser, "a job type").await;
    browser.fill(&format!("filter.{EVIL}"), EVIL).await;
    browser.go("Dry run: change nothing, show a sample").await;
    browser.sees(SCRIPT).await;
    is_sound(&browser, "a dry run").await;
    // What a link brings: a search, a place to go to, an address that is none.
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
        is_sound(&browser, path).await;
    }
    // A job that fails says which table is not there.
    served.post("/api/v1/stop", &json!({})).await.is(200);
    let id = served.submit(json!({"jobType": name})).await;
    data.run(&format!("ALTER TABLE \"{EVIL}\" RENAME TO away")).await;
    served.post("/api/v1/start", &json!({})).await.is(200);
    served.until(&id, "FAILED").await;
    for path in [format!("/jobs/{id}"), "/".to_owned()] {
        browser.open(&path).await;
        browser.sees("onerror=pwned").await;
        is_sound(&browser, &path).await;
    }
}

/// Texts that end the text, attribute, comment or element that they stand in.
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

/// Where a link can carry a text into a page.
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
async fn no_page_repeats_a_link_as_markup() {
    let data = Data::sqlite().with_accounts(1).await;
    let served = Served::start(CliSandbox::on(&data, &crate::common::raise(10))).await;
    let mut attempts = 0;
    for payload in PAYLOADS {
        let encoded: String = payload.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for template in PLACES {
            let request = served.request(reqwest::Method::GET, &template.replace("{}", &encoded));
            let answer = request.send().await.unwrap();
            assert_eq!(answer.headers()["x-content-type-options"], "nosniff", "{template}");
            let kind = answer.headers().get("content-type").cloned();
            let kind = kind.as_ref().map_or("", |kind| kind.to_str().unwrap());
            match kind.split(';').next() {
                Some("text/html") => {
                    let page = answer.text().await.unwrap();
                    assert!(!page.contains(payload), "{template} {payload}: {page}");
                }
                Some("application/json" | "application/problem+json" | "") => {}
                other => panic!("{template}: {other:?}"),
            }
            attempts += 1;
        }
    }
    assert_eq!(attempts, 144);
}

/// No element has come to be of what was said, and no script has run.
async fn is_sound(browser: &Browser, what: &str) {
    let made = "return [window.pwned === undefined, document.querySelectorAll('img').length, \
        document.querySelectorAll('script').length]";
    assert_eq!(browser.run(made).await, json!([true, 0, 1]), "{what}");
}
