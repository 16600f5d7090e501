//! Dependencies by request and by rule, limited to visible jobs.

use crate::api::server_fixture::{TestServer, auth, claims, signed, token};
use crate::api::wallets_fixture::take;
use crate::common::{CliSandbox, Data, eventually, raise, text};
use serde_json::{Value as Json, json};

const RULES: &str = "[[dependencies]]\njob = \"SUMMARY\"\nafter = [\"RAISE\", \"LIFT\"]\n\
                     match = [\"month\"]\n";

fn three() -> String {
    raise(10) + &raise(10).replace("RAISE", "LIFT") + &raise(10).replace("RAISE", "SUMMARY") + RULES
}

async fn jobs_of(server: &TestServer, job_type: &str) -> Vec<Json> {
    let listed = server.get(&format!("/api/v1/jobs?jobType={job_type}")).await.is(200);
    listed.as_array().unwrap().clone()
}

#[tokio::test]
async fn the_last_parent_triggers_the_child_and_the_graph_shows_it() {
    for data in Data::both_with_accounts(20).await {
        let server = TestServer::with(CliSandbox::on(&data, &three()), 2).await;
        let parent =
            |job_type: &str, month: i64| json!({"jobType": job_type, "params": {"month": month}});
        let raise = server.submit(parent("RAISE", 1)).await;
        server.until(&raise, "COMPLETED").await;
        let waiting = server.get("/api/v1/dependencies").await.is(200);
        assert_eq!(waiting["rules"][0]["job"], "SUMMARY");
        assert_eq!(waiting["waiting"][0]["arrived"]["RAISE"]["job"], raise.as_str());
        assert_eq!(waiting, server.sandbox.json("dependencies").await);
        let shown = server.sandbox.run("dependencies").await.ok().stdout;
        assert!(shown.contains("missing  LIFT"), "{shown}");

        let other_month = server.submit(parent("LIFT", 2)).await;
        server.until(&other_month, "COMPLETED").await;
        assert_eq!(jobs_of(&server, "SUMMARY").await.len(), 0);
        let lift = server.submit(parent("LIFT", 1)).await;
        let mut children = Vec::new();
        eventually("the child is there", async || {
            children = jobs_of(&server, "SUMMARY").await;
            !children.is_empty()
        })
        .await;
        let child = text(&children[0]["id"]);
        let child = server.until(&child, "COMPLETED").await;
        assert_eq!(child["request"]["params"], json!({"month": 1}));
        assert_eq!(jobs_of(&server, "SUMMARY").await.len(), 1);
        let id = text(&child["id"]);
        let graph = server.get(&format!("/api/v1/jobs/{id}/dependencies")).await.is(200);
        assert_eq!(graph, server.sandbox.json(&format!("dependencies {raise}")).await);
        assert_eq!(graph[2]["id"], id.as_str());
        let parents = graph[2]["after"].as_array().unwrap();
        assert!(parents.contains(&json!(raise)) && parents.contains(&json!(lift)), "{graph:#}");
        let shown = server.sandbox.run(&format!("job {raise}")).await.ok().stdout;
        assert!(shown.contains(&format!("then    {id}")), "{shown}");
    }
}

#[tokio::test]
async fn a_job_waits_for_the_jobs_in_after() {
    let data = Data::sqlite().with_accounts(20).await;
    let server = TestServer::start(CliSandbox::on(&data, &three())).await;
    let parent = server.submit(json!({"jobType": "RAISE"})).await;
    let child = server.submit(json!({"jobType": "LIFT", "after": [parent]})).await;
    let run = json!({"jobType": "LIFT", "after": [parent], "onFailed": "run"});
    let run = server.submit(run).await;
    let third = server.sandbox.submit(&format!("LIFT --after {parent} --on-failed cancel")).await;
    let shown = server.get(&format!("/api/v1/jobs/{child}")).await.is(200);
    assert_eq!(shown["status"], "QUEUED");
    assert!(
        text(&shown["error"]).contains(&format!("waits for 1 job: {parent} QUEUED")),
        "{shown}"
    );
    server.post(&format!("/api/v1/jobs/{parent}/cancel"), &json!({})).await.is(200);
    server.sandbox.run(&format!("worker --job {run}")).await.ok();
    server.until(&run, "COMPLETED").await;
    server.until(&third, "CANCELLED").await;
    server.until(&child, "QUEUED").await;

    let refused = |body: Json| {
        let server = &server;
        async move { server.post("/api/v1/jobs", &body).await }
    };
    let unknown = "0193a0c0-0000-7000-8000-000000000000";
    refused(json!({"jobType": "LIFT", "after": [run, unknown]})).await.is_rejected(400, "after[1]");
    refused(json!({"jobType": "LIFT", "after": [parent]})).await.is_rejected(400, "after[0]");
    refused(json!({"jobType": "LIFT", "onFailed": "run"})).await.is_rejected(400, "onFailed");
}

async fn invisible_jobs_cannot_be_parents_and_are_not_in_graphs(data: Data) {
    let mut server = TestServer::start(CliSandbox::on(&data, &(take("") + &auth()))).await;
    let of_ada = server.token(&token("ada", "clerk")).submit(json!({"jobType": "TAKE"})).await;
    let request = json!({"jobType": "TAKE", "after": [of_ada]});
    server
        .token(&token("bob", "clerk"))
        .post("/api/v1/jobs", &request)
        .await
        .is_rejected(400, "after[0]");
    let of_eve = server.token(&token("eve", "chief")).submit(request).await;
    let graph = format!("/api/v1/jobs/{of_ada}/dependencies");
    let seen = server.get(&graph).await.is(200);
    assert_eq!(seen.as_array().unwrap().len(), 2);
    let seen = server.token(&token("ada", "clerk")).get(&graph).await.is(200);
    assert_eq!(seen.as_array().unwrap().len(), 1);
    assert!(!seen.to_string().contains(&of_eve));
}

async fn a_dependent_job_inherits_the_claims_of_its_parents(data: Data) {
    data.run("CREATE INDEX wallets_county ON wallets (county, id)").await;
    let claimed = "source.claims = { county = \"county\" }\n";
    let child = take(claimed).replace("TAKE", "AGAIN").replace("- 10", "+ 100");
    let rule = "[[dependencies]]\njob = \"AGAIN\"\nafter = [\"TAKE\"]\n";
    let sandbox = CliSandbox::on(&data, &(take(claimed) + &child + rule + &auth()));
    let mut server = TestServer::with(sandbox, 1).await;
    let mut kent = claims("ada", "clerk");
    kent["county"] = json!("Kent");
    server.token(&signed(&kent)).submit(json!({"jobType": "TAKE"})).await;
    let mut children = Vec::new();
    eventually("the child has run", async || {
        children = jobs_of(&server, "AGAIN").await;
        children.first().is_some_and(|job| job["status"] == "COMPLETED")
    })
    .await;
    assert_eq!(children[0]["submittedBy"], "ada");
    assert_eq!(children[0]["items"]["processed"], 20);
    let reached = "SELECT count(*) FROM wallets WHERE amount > 60 AND county = ";
    assert_eq!(data.number(&format!("{reached}'Essex'")).await, 0);
    assert_eq!(data.number(&format!("{reached}'Kent'")).await, 20);
}

on_both!(
    invisible_jobs_cannot_be_parents_and_are_not_in_graphs,
    a_dependent_job_inherits_the_claims_of_its_parents,
);
