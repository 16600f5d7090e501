//! Claims restrict rows: a clerk of one county never reaches the rows of another.

use crate::api::server_fixture::{TestServer, auth, claims, signed};
use crate::api::wallets_fixture::take;
use crate::common::{CliSandbox, Data, text};
use serde_json::{Value as Json, json};

const CLAIMS: &str = "source.claims = { county = \"county\" }\n";

async fn start_server(data: &Data) -> TestServer {
    data.run("CREATE INDEX wallets_county ON wallets (county, id)").await;
    TestServer::with(CliSandbox::on(data, &(take(CLAIMS) + &auth())), 1).await
}

/// A clerk's token.
fn clerk(name: &str, county: Json) -> String {
    let mut claims = claims(name, "clerk");
    claims["county"] = county;
    signed(&claims)
}

async fn changed(data: &Data, county: &str) -> i64 {
    let sql = "SELECT count(*) FROM wallets WHERE amount NOT IN (5, 50) AND county = ";
    data.number(&format!("{sql}'{county}'")).await
}

async fn a_job_its_dead_letters_and_its_redrive_are_limited_to_the_claims(data: Data) {
    let mut server = start_server(&data).await;
    server.token(&clerk("ada", json!("Kent")));
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    let job = server.until(&id, "COMPLETED").await;
    assert_eq!((&job["items"]["processed"], &job["items"]["dead"]), (&json!(19), &json!(1)));
    assert_eq!((changed(&data, "Kent").await, changed(&data, "Essex").await), (19, 0));
    let letters = server.get("/api/v1/dead-letters").await.is(200);
    let counties: Vec<_> = letters
        .as_array()
        .unwrap()
        .iter()
        .map(|letter| text(&letter["record"]["county"]))
        .collect();
    assert_eq!(counties, ["Kent"]);

    // With the claims of another county she may not redrive it.
    let redrive = "/api/v1/dead-letters/redrive";
    server.token(&clerk("ada", json!("Essex")));
    server.post(redrive, &json!({"all": true})).await.is_rejected(403, "claims.county");
    server.token(&clerk("ada", json!(["Essex", "Kent"])));

    // The row of the dead letter moves to Essex: a redrive with the identity of Kent does not reach it.
    data.run("UPDATE wallets SET county = 'Essex', amount = 50 WHERE id = 7").await;
    let redriven = server.post("/api/v1/dead-letters/redrive", &json!({"all": true})).await.is(200);
    server.until(&text(&redriven[0]["jobId"]), "COMPLETED").await;
    assert_eq!(changed(&data, "Essex").await, 0);

    // Neither do the ids of rows of Essex.
    server.token(&clerk("ada", json!("Kent")));
    let named = server.submit(json!({"jobType": "TAKE", "ids": [2, 4, 8]})).await;
    let job = server.until(&named, "COMPLETED").await;
    assert_eq!(job["items"]["processed"], 0);
    assert_eq!(changed(&data, "Essex").await, 0);
    server.token(&clerk("bob", json!("Essex")));
    assert_eq!(server.get("/api/v1/dead-letters").await.is(200), json!([]));
}

async fn a_retry_is_limited_to_the_claims_of_the_job(data: Data) {
    let jobs = take(&format!("{CLAIMS}retry = {{ attempts = 1 }}\n"));
    let jobs = jobs.replace("amount - 10", "amount - 10, seen = 1") + &auth();
    let mut server = TestServer::with(CliSandbox::on(&data, &jobs), 1).await;
    server.token(&clerk("ada", json!("Kent")));
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    server.until(&id, "FAILED").await;
    data.run("ALTER TABLE wallets ADD COLUMN seen integer").await;
    let retry = format!("/api/v1/jobs/{id}/retry");
    // None of these claims cover those of the job.
    let mut chief = claims("eve", "chief");
    chief["county"] = json!("Essex");
    for other in [clerk("ada", json!("Essex")), clerk("ada", json!(null)), signed(&chief)] {
        server.token(&other);
        server.post(&retry, &json!({})).await.is_rejected(403, "claims.county");
    }
    // A token cannot use `*`.
    server.token(&clerk("ada", json!("*")));
    server.post(&retry, &json!({})).await.is_rejected(403, "claims.county");
    // An operator without a county may retry every job.
    server.token(&signed(&claims("eve", "chief")));
    server.post(&retry, &json!({})).await.is(200);
    server.until(&id, "COMPLETED").await;
    assert_eq!((changed(&data, "Kent").await, changed(&data, "Essex").await), (19, 0));
}

async fn a_claim_list_matches_any_value_and_a_missing_claim_is_rejected(data: Data) {
    let mut server = start_server(&data).await;
    let request = json!({"jobType": "TAKE"});
    for nothing in [
        json!(null),
        json!([]),
        json!({"name": "Kent"}),
        json!(["Kent", null]),
        json!("*"),
        json!(["Kent", "*"]),
    ] {
        server.token(&clerk("ada", nothing));
        server.post("/api/v1/jobs", &request).await.is_rejected(403, "claims.county");
    }
    assert_eq!(server.get("/api/v1/jobs").await.is(200), json!([]));
    server.token(&clerk("ada", json!(["Kent", "Essex"])));
    let id = server.submit(request).await;
    assert_eq!(server.until(&id, "COMPLETED").await["items"]["processed"], 38);
    assert_eq!((changed(&data, "Kent").await, changed(&data, "Essex").await), (19, 19));
}

on_both!(
    a_job_its_dead_letters_and_its_redrive_are_limited_to_the_claims,
    a_retry_is_limited_to_the_claims_of_the_job,
    a_claim_list_matches_any_value_and_a_missing_claim_is_rejected,
);
