//! Claims and filters on the write side: a job replaces only the rows that it covers, a result outside its claims is
//! refused, and claims compare by bytes in every collation.

use crate::protocol::common::*;
use serde_json::json;
use windlass_core::{Identity, Job, JobStatus, Value};
use windlass_engine::Engine;

const CLAIMS: &str = "source.claims = { county = \"county\" }\n\
                      source.filters = { counties = \"county\", years = \"year\" }";
const MAP: &str = "step.map = \"SELECT county, count(*) AS n FROM {source} WHERE {chunk} GROUP BY county\"\n\
                   chunk.items = 7";
const REDUCE: &str = "reduce = \"SELECT county, sum(n) AS n FROM parts GROUP BY county\"";

fn load(replace: &str) -> String {
    format!("load = {{ connection = \"app\", table = \"totals\", replace = [{replace}] }}")
}

/// Visits of three counties, of which two are equal in some collations, and totals of an earlier run for all of
/// them.
async fn fixture_with_counties(fixture: &EngineFixture) {
    let create = fixture.spell_for_app(
        "CREATE COLLATION anycase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
         CREATE TABLE visits (id bigint PRIMARY KEY, county text COLLATE anycase, year int);
         CREATE INDEX visits_county ON visits (county, id);
         CREATE INDEX visits_year ON visits (year, id);
         CREATE TABLE totals (day text, county text COLLATE anycase, n bigint)",
        "CREATE TABLE visits (id integer PRIMARY KEY NOT NULL, county text COLLATE NOCASE, year int);
         CREATE INDEX visits_county ON visits (county, id);
         CREATE INDEX visits_year ON visits (year, id);
         CREATE TABLE totals (day text, county text COLLATE NOCASE, n bigint)",
        "CREATE TABLE visits (id bigint PRIMARY KEY, county varchar(20) CHARACTER SET latin1, year int);
         CREATE INDEX visits_county ON visits (county, id);
         CREATE INDEX visits_year ON visits (year, id);
         CREATE TABLE totals (day varchar(20), county varchar(20), n bigint)",
    );
    for statement in create.split(';') {
        fixture.app.run(statement).await;
    }
    for id in 1..=60 {
        let county = ["kent", "KENT", "essex"][id % 3];
        let year = 2020 + id % 2;
        let insert =
            format!("INSERT INTO visits (id, county, year) VALUES ({id}, '{county}', {year})");
        fixture.app.run(&insert).await;
    }
    for county in ["kent", "KENT", "essex"] {
        fixture.app.run(&format!("INSERT INTO totals VALUES ('monday', '{county}', 99)")).await;
    }
}

fn of(county: &str) -> Identity {
    let claims = [("county".to_owned(), vec![Value::from(county)])].into();
    Identity { name: "ann".into(), claims, ..Identity::default() }
}

async fn run(engine: &Engine, identity: Identity, more: serde_json::Value) -> Job {
    let mut request = json!({"jobType": "JOB", "params": {"day": "monday"}});
    let fields = more.as_object().unwrap().clone();
    request.as_object_mut().unwrap().extend(fields);
    let id = engine.submit(asked(request), identity).await.unwrap().id();
    work(engine, id).await
}

/// The totals of kent, KENT and essex, compared by bytes.
async fn totals(fixture: &EngineFixture) -> [i64; 3] {
    let bytes = fixture.spell_for_app(
        "county COLLATE \"C\" = '{}'",
        "CAST(county AS BLOB) = CAST('{}' AS BLOB)",
        "CAST(county AS BINARY) = CAST('{}' AS BINARY)",
    );
    let mut found = [0; 3];
    for (place, county) in ["kent", "KENT", "essex"].into_iter().enumerate() {
        let condition = bytes.replace("{}", county);
        let sql =
            format!("SELECT coalesce(sum(n), 0) FROM totals WHERE day = 'monday' AND {condition}");
        found[place] = fixture.int(&sql).await;
    }
    found
}

pub(crate) async fn a_claim_replaces_only_its_own_rows(fixture: EngineFixture) {
    fixture_with_counties(&fixture).await;
    let jobs = job(&format!("{MAP}\n{REDUCE}\n{CLAIMS}"), &load("\"day\", \"county\""));
    let engine = fixture.engine(&jobs).await;
    let done = run(&engine, of("kent"), json!({})).await;
    assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
    assert_eq!(done.items.total, 20, "rows of KENT are outside the claim");
    assert_eq!(totals(&fixture).await, [20, 99, 99]);
    // Without restriction, as a schedule may declare it.
    let done = run(&engine, of("*"), json!({"filter": {"counties": ["essex"]}})).await;
    assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
    assert_eq!(totals(&fixture).await, [20, 99, 20]);
}

pub(crate) async fn a_result_beyond_the_claim_is_refused(fixture: EngineFixture) {
    fixture_with_counties(&fixture).await;
    let elsewhere = "reduce = \"SELECT 'essex' AS county, sum(n) AS n FROM parts\"";
    let jobs = job(&format!("{MAP}\n{elsewhere}\n{CLAIMS}"), &load("\"day\", \"county\""));
    let engine = fixture.engine(&jobs).await;
    let done = run(&engine, of("kent"), json!({})).await;
    assert_eq!(done.status, JobStatus::Failed, "{done:?}");
    let error = done.error.unwrap();
    assert!(error.contains("claims") && !error.contains("essex"), "{error}");
    assert_eq!(totals(&fixture).await, [99, 99, 99]);
}

pub(crate) async fn a_filtered_job_loads_only_if_load_replace_has_the_filter_column(
    fixture: EngineFixture,
) {
    fixture_with_counties(&fixture).await;
    let filters = "source.filters = { counties = \"county\", years = \"year\" }";
    let engine =
        fixture.engine(&job(&format!("{MAP}\n{REDUCE}\n{filters}"), &load("\"day\""))).await;
    let done =
        run(&engine, Engine::local_identity(), json!({"filter": {"counties": ["essex"]}})).await;
    assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
    assert_eq!(totals(&fixture).await, [99, 99, 99], "a part of the day does not replace the day");
    let jobs = job(&format!("{MAP}\n{REDUCE}\n{filters}"), &load("\"day\", \"county\""));
    let engine = fixture.engine(&jobs).await;
    let by_year = json!({"filter": {"years": [2020]}});
    run(&engine, Engine::local_identity(), by_year).await;
    assert_eq!(totals(&fixture).await, [99, 99, 99], "the year is not in load.replace");
    run(&engine, Engine::local_identity(), json!({"filter": {"counties": ["essex"]}})).await;
    assert_eq!(totals(&fixture).await, [99, 99, 20]);
}

pub(crate) async fn an_output_that_several_claims_would_share_is_refused_at_submit(
    fixture: EngineFixture,
) {
    fixture_with_counties(&fixture).await;
    let report = "report = { to = \"file:reports/{date}.csv\" }";
    for (more, expected) in [(load("\"day\""), "load.replace"), (report.to_owned(), "report.to")] {
        let engine = fixture.engine(&job(&format!("{MAP}\n{REDUCE}\n{CLAIMS}"), &more)).await;
        let refused = engine.submit(request(), of("kent")).await.unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    let to = format!("file:{}/{{claim:county}}.csv", fixture.folder.path().display());
    let report = format!(
        "report = {{ to = \"{to}\" }}\nparams = {{ day = {{ type = \"text\", required = false }} }}"
    );
    let engine = fixture.engine(&job(&format!("{MAP}\n{REDUCE}\n{CLAIMS}"), &report)).await;
    let refused = engine.submit(request(), of("../kent")).await.unwrap_err().to_string();
    assert!(refused.contains("`/`"), "{refused}");
    for county in ["kent", "essex"] {
        let done = run(&engine, of(county), json!({})).await;
        assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
        let text =
            std::fs::read_to_string(fixture.folder.path().join(format!("{county}.csv"))).unwrap();
        assert!(text.contains(county), "{text}");
        assert!(fixture.folder.path().join(format!("{county}.csv.html")).exists());
    }
}

pub(crate) async fn a_statement_that_chunk_does_not_bind_is_refused_at_submit(
    fixture: EngineFixture,
) {
    fixture_with_counties(&fixture).await;
    let sql = "step.sql = \"UPDATE visits SET year = 1 WHERE {chunk} OR year = 2020\"";
    let engine = fixture.engine(&job(sql, "")).await;
    let refused = engine.submit(request(), Engine::local_identity()).await.unwrap_err().to_string();
    assert!(refused.contains("is not restricted by {chunk}"), "{refused}");
}

on_each!(
    a_claim_replaces_only_its_own_rows,
    a_result_beyond_the_claim_is_refused,
    a_filtered_job_loads_only_if_load_replace_has_the_filter_column,
    an_output_that_several_claims_would_share_is_refused_at_submit,
    a_statement_that_chunk_does_not_bind_is_refused_at_submit,
);
