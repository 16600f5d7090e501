//! Jobs that follow others, over HTTP: by request and by rule, within what a caller sees.

use crate::api::accounts_fixture::take;
use crate::api::served::{Served, auth, claims, signed, token};
use crate::common::{CliSandbox, Data, eventually, raise, text};
use serde_json::{Value as Json, json};

const RULES: &str = "[[dependencies]]\njob = \"SUMMARY\"\nafter = [\"RAISE\", \"LIFT\"]\n\
                     match = [\"month\"]\n";

fn three() -> String {
    raise(10) + &raise(10).replace("RAISE", "LIFT") + &raise(10).replace("RAISE", "SUMMARY") + RULES
}

async fn jobs_of(served: &Served, job_type: &str) -> Vec<Json> {
    let listed = served.get(&format!("/api/v1/jobs?jobType={job_type}")).await.is(200);
    listed.as_array().unwrap().clone()
}

#[tokio::test]
async fn the_last_parent_triggers_the_child_and_the_graph_shows_it() {
    for data in Data::both().await {
        let data = data.with_accounts(20).await;
        let served = Served::with(CliSandbox::on(&data, &three()), 2).await;
        let parent =
            |job_type: &str, month: i64| json!({"jobType": job_type, "params": {"month": month}});
        let raise = served.submit(parent("RAISE", 1)).await;
        served.until(&raise, "COMPLETED").await;
        let waiting = served.get("/api/v1/dependencies").await.is(200);
        assert_eq!(waiting["rules"][0]["job"], "SUMMARY");
        assert_eq!(waiting["waiting"][0]["arrived"]["RAISE"]["job"], raise.as_str());
        assert_eq!(waiting, served.sandbox.json("dependencies").await);
        let shown = served.sandbox.run("dependencies").await.ok().stdout;
        assert!(shown.contains("missing  LIFT"), "{shown}");

        let other_month = served.submit(parent("LIFT", 2)).await;
        served.until(&other_month, "COMPLETED").await;
        assert_eq!(jobs_of(&served, "SUMMARY").await.len(), 0);
        let lift = served.submit(parent("LIFT", 1)).await;
        let mut children = Vec::new();
        eventually("the child is there", async || {
            children = jobs_of(&served, "SUMMARY").await;
            !children.is_empty()
        })
        .await;
        let child = text(&children[0]["id"]);
        let child = served.until(&child, "COMPLETED").await;
        assert_eq!(child["request"]["params"], json!({"month": 1}));
        assert_eq!(jobs_of(&served, "SUMMARY").await.len(), 1);
        let id = text(&child["id"]);
        let graph = served.get(&format!("/api/v1/jobs/{id}/dependencies")).await.is(200);
        assert_eq!(graph, served.sandbox.json(&format!("dependencies {raise}")).await);
        assert_eq!(graph[2]["id"], id.as_str());
        let parents = graph[2]["after"].as_array().unwrap();
        assert!(parents.contains(&json!(raise)) && parents.contains(&json!(lift)), "{graph:#}");
        let shown = served.sandbox.run(&format!("job {raise}")).await.ok().stdout;
        assert!(shown.contains(&format!("then    {id}")), "{shown}");
    }
}

#[tokio::test]
async fn a_request_waits_for_the_jobs_it_names() {
    let data = Data::sqlite().with_accounts(20).await;
    let served = Served::start(CliSandbox::on(&data, &three())).await;
    let parent = served.submit(json!({"jobType": "RAISE"})).await;
    let child = served.submit(json!({"jobType": "LIFT", "after": [parent]})).await;
    let run = json!({"jobType": "LIFT", "after": [parent], "onFailed": "run"});
    let run = served.submit(run).await;
    let third = served.sandbox.submit(&format!("LIFT --after {parent} --on-failed cancel")).await;
    let shown = served.get(&format!("/api/v1/jobs/{child}")).await.is(200);
    assert_eq!(shown["status"], "QUEUED");
    assert!(
        text(&shown["error"]).contains(&format!("waits for 1 job: {parent} QUEUED")),
        "{shown}"
    );
    served.post(&format!("/api/v1/jobs/{parent}/cancel"), &json!({})).await.is(200);
    served.sandbox.run(&format!("worker --job {run}")).await.ok();
    served.until(&run, "COMPLETED").await;
    served.until(&third, "CANCELLED").await;
    served.until(&child, "QUEUED").await;

    let refused = |body: Json| {
        let served = &served;
        async move { served.post("/api/v1/jobs", &body).await }
    };
    let unknown = "0193a0c0-0000-7000-8000-000000000000";
    refused(json!({"jobType": "LIFT", "after": [run, unknown]})).await.refuses(400, "after[1]");
    refused(json!({"jobType": "LIFT", "after": [parent]})).await.refuses(400, "after[0]");
    refused(json!({"jobType": "LIFT", "onFailed": "run"})).await.refuses(400, "onFailed");
}

async fn what_a_caller_does_not_see_is_no_parent_and_in_no_graph(data: Data) {
    let mut served = Served::start(CliSandbox::on(&data, &(take("") + &auth()))).await;
    let of_ada = served.token(&token("ada", "clerk")).submit(json!({"jobType": "TAKE"})).await;
    let request = json!({"jobType": "TAKE", "after": [of_ada]});
    served
        .token(&token("bob", "clerk"))
        .post("/api/v1/jobs", &request)
        .await
        .refuses(400, "after[0]");
    let of_eve = served.token(&token("eve", "chief")).submit(request).await;
    let graph = format!("/api/v1/jobs/{of_ada}/dependencies");
    let seen = served.get(&graph).await.is(200);
    assert_eq!(seen.as_array().unwrap().len(), 2);
    let seen = served.token(&token("ada", "clerk")).get(&graph).await.is(200);
    assert_eq!(seen.as_array().unwrap().len(), 1);
    assert!(!seen.to_string().contains(&of_eve));
}

async fn a_dependent_job_stays_in_the_county_of_its_parents(data: Data) {
    data.run("CREATE INDEX savings_county ON savings (county, id)").await;
    let claimed = "source.claims = { county = \"county\" }\n";
    let child = take(claimed).replace("TAKE", "AGAIN").replace("- 10", "+ 100");
    let rule = "[[dependencies]]\njob = \"AGAIN\"\nafter = [\"TAKE\"]\n";
    let sandbox = CliSandbox::on(&data, &(take(claimed) + &child + rule + &auth()));
    let mut served = Served::with(sandbox, 1).await;
    let mut kent = claims("ada", "clerk");
    kent["county"] = json!("Kent");
    served.token(&signed(&kent)).submit(json!({"jobType": "TAKE"})).await;
    let mut children = Vec::new();
    eventually("the child has run", async || {
        children = jobs_of(&served, "AGAIN").await;
        children.first().is_some_and(|job| job["status"] == "COMPLETED")
    })
    .await;
    assert_eq!(children[0]["submittedBy"], "ada");
    assert_eq!(children[0]["items"]["processed"], 20);
    let reached = "SELECT count(*) FROM savings WHERE amount > 60 AND county = ";
    assert_eq!(data.number(&format!("{reached}'Essex'")).await, 0);
    assert_eq!(data.number(&format!("{reached}'Kent'")).await, 20);
}

on_both!(
    what_a_caller_does_not_see_is_no_parent_and_in_no_graph,
    a_dependent_job_stays_in_the_county_of_its_parents,
);
