//! Row level: a clerk of one county gets not one row of another, whatever is asked.

use crate::api::accounts_fixture::take;
use crate::api::served::{Served, auth, claims, signed};
use crate::common::{CliSandbox, Data, text};
use serde_json::{Value as Json, json};

const CLAIMS: &str = "source.claims = { county = \"county\" }\n";

async fn served(data: &Data) -> Served {
    data.run("CREATE INDEX savings_county ON savings (county, id)").await;
    Served::with(CliSandbox::on(data, &(take(CLAIMS) + &auth())), 1).await
}

/// A clerk's token.
fn clerk(name: &str, county: Json) -> String {
    let mut claims = claims(name, "clerk");
    claims["county"] = county;
    signed(&claims)
}

async fn changed(data: &Data, county: &str) -> i64 {
    let sql = "SELECT count(*) FROM savings WHERE amount NOT IN (5, 50) AND county = ";
    data.number(&format!("{sql}'{county}'")).await
}

async fn a_run_its_letters_and_its_redrive_stay_in_the_county(data: Data) {
    let mut served = served(&data).await;
    served.token(&clerk("ada", json!("Kent")));
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    let job = served.until(&id, "COMPLETED").await;
    assert_eq!((&job["items"]["processed"], &job["items"]["dead"]), (&json!(19), &json!(1)));
    assert_eq!((changed(&data, "Kent").await, changed(&data, "Essex").await), (19, 0));
    let letters = served.get("/api/v1/dead-letters").await.is(200);
    let counties: Vec<_> = letters
        .as_array()
        .unwrap()
        .iter()
        .map(|letter| text(&letter["record"]["county"]))
        .collect();
    assert_eq!(counties, ["Kent"]);

    // Once she has moved to another county she may not redrive it.
    let redrive = "/api/v1/dead-letters/redrive";
    served.token(&clerk("ada", json!("Essex")));
    served.post(redrive, &json!({"all": true})).await.refuses(403, "claims.county");
    served.token(&clerk("ada", json!(["Essex", "Kent"])));

    // The letter's row moves away: a redrive under Kent's identity does not follow it.
    data.run("UPDATE savings SET county = 'Essex', amount = 50 WHERE id = 7").await;
    let redriven = served.post("/api/v1/dead-letters/redrive", &json!({"all": true})).await.is(200);
    served.until(&text(&redriven[0]["jobId"]), "COMPLETED").await;
    assert_eq!(changed(&data, "Essex").await, 0);

    // Naming the other county's rows does not reach them either.
    served.token(&clerk("ada", json!("Kent")));
    let named = served.submit(json!({"jobType": "TAKE", "ids": [2, 4, 8]})).await;
    let job = served.until(&named, "COMPLETED").await;
    assert_eq!(job["items"]["processed"], 0);
    assert_eq!(changed(&data, "Essex").await, 0);
    served.token(&clerk("bob", json!("Essex")));
    assert_eq!(served.get("/api/v1/dead-letters").await.is(200), json!([]));
}

async fn a_retry_stays_in_the_county_whoever_asks_for_it(data: Data) {
    let jobs = take(&format!("{CLAIMS}retry = {{ attempts = 1 }}\n"));
    let jobs = jobs.replace("amount - 10", "amount - 10, seen = 1") + &auth();
    let mut served = Served::with(CliSandbox::on(&data, &jobs), 1).await;
    served.token(&clerk("ada", json!("Kent")));
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    served.until(&id, "FAILED").await;
    data.run("ALTER TABLE savings ADD COLUMN seen integer").await;
    let retry = format!("/api/v1/jobs/{id}/retry");
    // Claims that do not cover the job's: ada has moved, and eve's own county is another.
    let mut chief = claims("eve", "chief");
    chief["county"] = json!("Essex");
    for other in [clerk("ada", json!("Essex")), clerk("ada", json!(null)), signed(&chief)] {
        served.token(&other);
        served.post(&retry, &json!({})).await.refuses(403, "claims.county");
    }
    // Neither is `*`, which a token cannot say.
    served.token(&clerk("ada", json!("*")));
    served.post(&retry, &json!({})).await.refuses(403, "claims.county");
    // An operator has no county, and every job.
    served.token(&signed(&claims("eve", "chief")));
    served.post(&retry, &json!({})).await.is(200);
    served.until(&id, "COMPLETED").await;
    assert_eq!((changed(&data, "Kent").await, changed(&data, "Essex").await), (19, 0));
}

async fn a_list_means_any_and_nothing_means_refusal(data: Data) {
    let mut served = served(&data).await;
    let request = json!({"jobType": "TAKE"});
    for nothing in [
        json!(null),
        json!([]),
        json!({"name": "Kent"}),
        json!(["Kent", null]),
        json!("*"),
        json!(["Kent", "*"]),
    ] {
        served.token(&clerk("ada", nothing));
        served.post("/api/v1/jobs", &request).await.refuses(403, "claims.county");
    }
    assert_eq!(served.get("/api/v1/jobs").await.is(200), json!([]));
    served.token(&clerk("ada", json!(["Kent", "Essex"])));
    let id = served.submit(request).await;
    assert_eq!(served.until(&id, "COMPLETED").await["items"]["processed"], 38);
    assert_eq!((changed(&data, "Kent").await, changed(&data, "Essex").await), (19, 19));
}

on_both!(
    a_run_its_letters_and_its_redrive_stay_in_the_county,
    a_retry_stays_in_the_county_whoever_asks_for_it,
    a_list_means_any_and_nothing_means_refusal,
);
