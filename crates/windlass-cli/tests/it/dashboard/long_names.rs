//! Long names without blanks, as job types, keys, claims, params and errors: no page is wider than its screen, and no
//! element is wider than its place.

use crate::api::server_fixture::TestServer;
use crate::common::{CliSandbox, Data, text};
use serde_json::json;
use windlass_testkit::{Browser, Screen};

const NAME: &str = "RECALCULATE_THE_MONTHLY_INTEREST_OF_EVERY_SAVINGS_ACCOUNT_OF_ALL_BRANCHES";

/// Text without a place to break.
fn long(length: usize) -> String {
    "Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft"
        .chars()
        .cycle()
        .take(length)
        .collect()
}

/// Elements whose content is wider than they are. Wide tables scroll in a box of their own.
const OVERFLOWS: &str = "
    const root = document.documentElement;
    const wide = root.scrollWidth > root.clientWidth ? ['the page'] : [];
    for (const element of document.querySelectorAll('body *')) {
        const style = getComputedStyle(element);
        const isBox = element.clientWidth > 0 && !style.display.startsWith('inline');
        const scrolls = style.overflowX !== 'visible';
        const isField = element.matches('input, select, progress, svg, svg *');
        if (isBox && !scrolls && !isField && element.scrollWidth > element.clientWidth + 1) {
            wide.push(element.tagName + '.' + element.className + ': ' + element.innerText.slice(0, 60));
        }
    }
    return wide";

#[tokio::test]
async fn long_names_fit_every_page() {
    let data = Data::sqlite();
    let key = long(120);
    data.run(&format!(
        "CREATE TABLE accounts (id text PRIMARY KEY NOT NULL, county text NOT NULL, amount bigint NOT NULL);
         CREATE INDEX accounts_county ON accounts (county);
         INSERT INTO accounts VALUES ('{key}', '{county}', 1), ('b{key}', '{county}', 2);
         CREATE TRIGGER refused BEFORE UPDATE ON accounts WHEN NEW.amount = 11
         BEGIN SELECT raise(ABORT, '{error}'); END",
        county = long(90),
        error = long(400),
    ))
    .await;
    let jobs = format!(
        "[jobs.{NAME}]\ndescription = \"{description}\"\nsource.connection = \"app\"\n\
         source.table = \"accounts\"\nsource.filters = {{ counties_of_the_savings_accounts = \"county\" }}\n\
         source.claims = {{ county_of_the_submitter_of_the_request = \"county\" }}\n\
         step.sql = \"UPDATE accounts SET amount = amount + 10 + 0 * length(:{param}) WHERE {{chunk}}\"\n\
         params.{param} = {{ type = \"text\", default = \"{default}\" }}\nchunk.items = 1\n\
         failures = {{ budget = 5, on_exceeded = \"pause\" }}\n\
         schedule = {{ cron = \"0 3 1 1 *\", missed = \"skip\", \
         claims = {{ county_of_the_submitter_of_the_request = \"*\" }} }}\n\
         [[dependencies]]\njob = \"{NAME}_AGAIN\"\nafter = [\"{NAME}\"]\n\
         [jobs.{NAME}_AGAIN]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
         step.sql = \"UPDATE accounts SET amount = amount WHERE {{chunk}}\"\n",
        param = "the_reason_that_is_written_into_the_records_of_the_month",
        description = long(150),
        default = long(80),
    );
    let server = TestServer::with(CliSandbox::on(&data, &jobs), 1).await;
    let submit = format!(
        "submit {NAME} --claim county_of_the_submitter_of_the_request={} --filter counties_of_the_savings_accounts={}",
        long(90),
        long(90)
    );
    let id = server.sandbox.submit(submit.trim_start_matches("submit ")).await;
    let job = server.until(&id, "COMPLETED").await;
    assert_eq!(job["items"]["dead"], 1, "{job:#}");
    let letters = server.get("/api/v1/dead-letters").await.is(200);
    let letter = text(&letters[0]["id"]);
    let pages = [
        "/".to_owned(),
        "/jobs".to_owned(),
        format!("/jobs/{id}"),
        format!("/jobs/{id}?chunk=0"),
        format!("/jobs/{id}/audit"),
        "/dead-letters?status=".to_owned(),
        format!("/dead-letters?error={}", long(60)),
        format!("/dead-letters/{letter}"),
        "/alerts?show=all".to_owned(),
        "/job-types".to_owned(),
        format!("/job-types/{NAME}"),
        "/schedules".to_owned(),
        "/workers".to_owned(),
        format!("/jobs/{}", long(80)),
        format!("/{}", long(300)),
    ];
    for screen in [Screen::Desktop, Screen::Phone] {
        let browser = Browser::with_screen(&server.url, screen).await;
        for page in &pages {
            browser.open(page).await;
            browser
                .run("document.querySelectorAll('details').forEach(one => one.open = true)")
                .await;
            assert_eq!(browser.run(OVERFLOWS).await, json!([]), "{page}");
        }
        browser.open(&format!("/job-types/{NAME}")).await;
        browser.fill("priority", "99").await;
        browser.go("Run now").await;
        assert_eq!(browser.run(OVERFLOWS).await, json!([]), "a refused form");
    }
}
