//! The authorization table: every route with every role, for own jobs and jobs of others.

use crate::api::openapi::operations;
use crate::api::server_fixture::{TestServer, auth, token};
use crate::api::wallets_fixture::take;
use crate::common::{CliSandbox, Data, text};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

/// What a route requires of its caller.
enum Requires {
    Nothing,
    /// A permission.
    For(&'static str),
    /// A permission, and access to the job or dead letter in the path.
    ForOwn(&'static str),
    /// A permission, and access to all jobs.
    ForAll(&'static str),
    /// A permission; nothing has the id in the path.
    Missing(&'static str),
}

use Requires::{For, ForAll, ForOwn, Missing, Nothing};

/// Every route of the document.
const ROUTES: [(&str, &str, Requires); 35] = [
    ("GET", "/healthz", Nothing),
    ("GET", "/readyz", Nothing),
    ("GET", "/metrics", ForAll("viewer")),
    ("GET", "/api/v1/openapi.json", Nothing),
    ("GET", "/api/v1/jobs", For("viewer")),
    ("POST", "/api/v1/jobs", For("submitter")),
    ("GET", "/api/v1/jobs/{id}", ForOwn("viewer")),
    ("GET", "/api/v1/jobs/{id}/chunks", ForOwn("viewer")),
    ("GET", "/api/v1/jobs/{id}/segments", ForOwn("viewer")),
    ("GET", "/api/v1/jobs/{id}/output", ForOwn("viewer")),
    ("GET", "/api/v1/jobs/{id}/report", ForOwn("viewer")),
    ("GET", "/api/v1/jobs/{id}/files", ForOwn("viewer")),
    ("GET", "/api/v1/jobs/{id}/files/{name}", Missing("viewer")),
    ("GET", "/api/v1/jobs/{id}/events", ForOwn("viewer")),
    ("POST", "/api/v1/jobs/{id}/cancel", ForOwn("operator")),
    ("POST", "/api/v1/jobs/{id}/pause", ForOwn("operator")),
    ("POST", "/api/v1/jobs/{id}/resume", ForOwn("operator")),
    ("POST", "/api/v1/jobs/{id}/retry", ForOwn("operator")),
    ("PUT", "/api/v1/jobs/{id}/throughput", ForOwn("operator")),
    ("GET", "/api/v1/jobs/{id}/dependencies", ForOwn("viewer")),
    ("GET", "/api/v1/dependencies", For("viewer")),
    ("GET", "/api/v1/events", For("viewer")),
    ("GET", "/api/v1/dead-letters", For("viewer")),
    ("GET", "/api/v1/dead-letters/{id}", ForOwn("viewer")),
    ("POST", "/api/v1/dead-letters/redrive", For("operator")),
    ("POST", "/api/v1/dead-letters/ignore", For("operator")),
    ("GET", "/api/v1/alerts", For("viewer")),
    ("POST", "/api/v1/alerts/{id}/acknowledge", Missing("operator")),
    ("GET", "/api/v1/throughput", For("viewer")),
    ("PUT", "/api/v1/throughput/{jobType}", For("administrator")),
    ("GET", "/api/v1/workers", For("viewer")),
    ("GET", "/api/v1/schedules", For("viewer")),
    ("POST", "/api/v1/schedules/{jobType}/pause", For("administrator")),
    ("POST", "/api/v1/schedules/{jobType}/resume", For("administrator")),
    ("POST", "/api/v1/stop", For("administrator")),
];

const PERMISSIONS: [&str; 5] = ["nobody", "viewer", "submitter", "operator", "administrator"];

const SCHEDULE: &str = "schedule = { cron = \"0 3 1 1 *\", missed = \"skip\" }\n";

/// A server without workers, on which `ada` has a completed job with two dead letters.
async fn with_a_job_of_ada(data: &Data) -> (TestServer, String, String) {
    let mut server = TestServer::start(CliSandbox::on(data, &(take(SCHEDULE) + &auth()))).await;
    let id = server.token(&token("ada", "clerk")).submit(json!({"jobType": "TAKE"})).await;
    server.sandbox.run(&format!("worker --job {id}")).await.with_dead_letters();
    let letters = server.get("/api/v1/dead-letters").await.is(200);
    (server, id, text(&letters[0]["id"]))
}

fn body(method: &str, path: &str) -> Option<Json> {
    match (method, path) {
        ("POST", "/api/v1/jobs") => Some(json!({"jobType": "TAKE", "idempotencyKey": "k"})),
        ("POST", path) if path.contains("dead-letters") => Some(json!({"error": "no such error"})),
        ("PUT", _) => Some(json!({"rate": "default"})),
        _ => None,
    }
}

async fn every_route_requires_its_permission_and_hides_jobs_of_others(data: Data) {
    let (mut server, job, letter) = with_a_job_of_ada(&data).await;
    let mut attempts = 0;
    for (method, route, requires) in &ROUTES {
        let id = if route.contains("dead-letters") { &letter } else { &job };
        let path = route.replace("{id}", id).replace("{jobType}", "TAKE");
        let verb = Method::from_bytes(method.as_bytes()).unwrap();
        let body = body(method, route);
        for (role, all, name) in PERMISSIONS.iter().flat_map(|role| {
            [(role, false, "ada"), (role, false, "bob"), (role, true, "ada"), (role, true, "bob")]
        }) {
            let full =
                if all && *role != "nobody" { format!("all-{role}") } else { (*role).to_owned() };
            server.token(&token(name, &full));
            let response = server.send(verb.clone(), &path, body.as_ref()).await;
            attempts += 1;
            let permitted = |needed: &str| needed == *role;
            let expected = match requires {
                Nothing => None,
                For(needed) | ForOwn(needed) | ForAll(needed) | Missing(needed)
                    if !permitted(needed) =>
                {
                    Some(403)
                }
                Missing(_) => Some(404),
                ForOwn(_) if name != "ada" && !all => Some(404),
                ForAll(_) if !all => Some(403),
                _ => None,
            };
            let refused = [401, 403, 404].contains(&response.status).then_some(response.status);
            assert_eq!(refused, expected, "{method} {path} as {full} {name}: {response:?}");
        }
        server.token("stranger");
        let stranger = server.send(verb, &path, body.as_ref()).await.status;
        assert_eq!(stranger == 401, !matches!(requires, Nothing), "{method} {path}: {stranger}");
    }
    assert_eq!(attempts, 35 * 20);
    // Start requires the same as stop; every other route is in the table.
    let document = server.get("/api/v1/openapi.json").await.is(200);
    let all: BTreeSet<_> =
        operations(&document).iter().map(|(p, m, _)| (m.clone(), p.clone())).collect();
    let mut known: BTreeSet<_> =
        ROUTES.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
    known.insert(("POST".to_owned(), "/api/v1/start".to_owned()));
    assert_eq!(all, known);
}

async fn lists_and_actions_are_limited_to_own_jobs(data: Data) {
    let (mut server, job, letter) = with_a_job_of_ada(&data).await;
    server.put(&format!("/api/v1/jobs/{job}/throughput"), &json!({"rate": 5})).await.is(200);
    server.token(&token("bob", "clerk"));
    let own = server.submit(json!({"jobType": "TAKE", "ids": [1]})).await;
    for selection in [json!({"all": true}), json!({"job": job}), json!({"ids": [letter]})] {
        let redriven = server.post("/api/v1/dead-letters/redrive", &selection).await.is(200);
        assert_eq!(redriven, json!([]), "{selection}");
        let ignored = server.post("/api/v1/dead-letters/ignore", &selection).await.is(200);
        assert_eq!(ignored["ignored"], 0, "{selection}");
    }
    assert_eq!(server.get("/api/v1/dead-letters").await.is(200), json!([]));
    assert_eq!(server.get(&format!("/api/v1/dead-letters?job={job}")).await.is(200), json!([]));
    let limits = server.get("/api/v1/throughput").await;
    assert!(!limits.text.contains(&job), "{limits:?}");
    let listed = async |server: &TestServer| {
        let jobs = server.get("/api/v1/jobs").await.is(200);
        jobs.as_array().unwrap().iter().map(|job| text(&job["id"])).collect::<Vec<_>>()
    };
    assert_eq!(listed(&server).await, [own.as_str()]);
    server.token(&token("eve", "chief"));
    assert_eq!(listed(&server).await, [own, job.clone()]);
    let letters = server.get("/api/v1/dead-letters").await.is(200);
    assert!(letters.as_array().unwrap().iter().all(|letter| letter["status"] == "new"));
    // A redrive belongs to the submitter of the original job.
    let redriven = server.post("/api/v1/dead-letters/redrive", &json!({"job": job})).await.is(200);
    server.token(&token("ada", "clerk"));
    let path = format!("/api/v1/jobs/{}", text(&redriven[0]["jobId"]));
    assert_eq!(server.get(&path).await.is(200)["submittedBy"], "ada");
}

on_both!(
    every_route_requires_its_permission_and_hides_jobs_of_others,
    lists_and_actions_are_limited_to_own_jobs,
);
