//! Roles that are limited to some job types and priorities.

use crate::api::events::Events;
use crate::api::server_fixture::{SECRET, TestServer, token};
use crate::api::wallets_fixture::take;
use crate::common::{CliSandbox, Data, eventually, text};
use reqwest::Method;
use serde_json::{Value as Json, json};

/// Two job types that match `REPORT_*`, one that does not, and roles for the former.
fn config() -> String {
    let other = |name: &str| take("").replace("jobs.TAKE", &format!("jobs.{name}"));
    let scheduled = take(
        "schedule = { cron = \"0 3 1 1 *\", missed = \"skip\", params = { secret = \"hush\" } }\n",
    );
    format!(
        "{scheduled}{}{}\n[auth]\nkey = \"{SECRET}\"\nissuer = \"tests\"\naudience = \"windlass\"\n\
         [auth.roles]\n\
         chief = {{ may = [\"view\", \"submit\", \"operate\", \"administer\"], all_jobs = true }}\n\
         clerk = {{ may = [\"view\", \"submit\", \"operate\"] }}\n\
         low = {{ may = [\"view\", \"submit\"], max_priority = 2 }}\n\
         reporter = {{ may = [\"view\", \"submit\", \"operate\", \"administer\"], all_jobs = true, \
         jobs = [\"REPORT_*\"] }}\n\
         watcher = {{ may = [\"view\"], all_jobs = true, jobs = [\"REPORT_A\"] }}\n",
        other("REPORT_A"),
        other("REPORT_B")
    )
}

async fn ids(server: &TestServer, path: &str) -> Vec<String> {
    let listed = server.get(path).await.is(200);
    listed.as_array().unwrap().iter().map(|row| text(&row["id"])).collect()
}

async fn a_role_is_limited_to_its_job_types(data: Data) {
    let mut server = TestServer::start(CliSandbox::on(&data, &config())).await;
    server.token(&token("eve", "chief"));
    let mut jobs = Vec::new();
    for job_type in ["TAKE", "REPORT_A", "REPORT_B"] {
        jobs.push(server.submit(json!({"jobType": job_type})).await);
    }
    for job in &jobs {
        server.sandbox.run(&format!("worker --job {job}")).await;
    }
    let letters = server.get("/api/v1/dead-letters").await.is(200);
    let letter = |job: &str| {
        let found = letters.as_array().unwrap().iter().find(|letter| letter["jobId"] == job);
        text(&found.unwrap()["id"])
    };
    let (taken, report) = (letter(&jobs[0]), letter(&jobs[1]));
    server.put("/api/v1/throughput/TAKE", &json!({"rate": 5})).await.is(200);

    server.token(&token("ron", "reporter"));
    assert_eq!(ids(&server, "/api/v1/jobs").await, [jobs[2].clone(), jobs[1].clone()]);
    assert_eq!(ids(&server, "/api/v1/jobs?jobType=TAKE").await, Vec::<String>::new());
    let seen = ids(&server, "/api/v1/dead-letters").await;
    assert!(seen.contains(&report) && !seen.contains(&taken), "{seen:?}");
    let mut attempts = 0;
    let mut missing = async |method: Method, path: String, body: Option<Json>, expected: u16| {
        let response = server.send(method, &path, body.as_ref()).await;
        assert_eq!(response.status, expected, "{path}: {response:?}");
        attempts += 1;
    };
    for rest in ["", "/chunks", "/segments", "/output", "/report", "/events", "/dependencies"] {
        missing(Method::GET, format!("/api/v1/jobs/{}{rest}", jobs[0]), None, 404).await;
    }
    for verb in ["cancel", "pause", "resume", "retry"] {
        missing(Method::POST, format!("/api/v1/jobs/{}/{verb}", jobs[0]), None, 404).await;
    }
    let rate = || Some(json!({"rate": 1}));
    missing(Method::PUT, format!("/api/v1/jobs/{}/throughput", jobs[0]), rate(), 404).await;
    missing(Method::PUT, "/api/v1/throughput/TAKE".to_owned(), rate(), 404).await;
    missing(Method::GET, format!("/api/v1/dead-letters/{taken}"), None, 404).await;
    missing(Method::POST, "/api/v1/schedules/TAKE/pause".to_owned(), None, 404).await;
    missing(Method::POST, "/api/v1/schedules/TAKE/resume".to_owned(), None, 404).await;
    for verb in ["stop", "start"] {
        missing(Method::POST, format!("/api/v1/{verb}?jobType=TAKE"), None, 404).await;
        missing(Method::POST, format!("/api/v1/{verb}"), None, 403).await;
    }
    let submitted = Some(json!({"jobType": "TAKE"}));
    missing(Method::POST, "/api/v1/jobs".to_owned(), submitted, 403).await;
    let after = Some(json!({"jobType": "REPORT_A", "after": [jobs[0]]}));
    missing(Method::POST, "/api/v1/jobs".to_owned(), after, 400).await;
    missing(Method::GET, "/metrics".to_owned(), None, 403).await;
    assert_eq!(attempts, 23);
    for which in [json!({"ids": [taken]}), json!({"job": jobs[0]}), json!({"jobType": "TAKE"})] {
        let redriven = server.post("/api/v1/dead-letters/redrive", &which).await.is(200);
        assert_eq!(redriven, json!([]), "{which}");
        let ignored = server.post("/api/v1/dead-letters/ignore", &which).await.is(200);
        assert_eq!(ignored["ignored"], 0, "{which}");
    }
    let said = server.get("/api/v1/throughput").await;
    assert!(!said.text.contains("TAKE"), "{said:?}");
    assert_eq!(server.get("/api/v1/schedules").await.is(200), json!([]));
    for page in ["/", "/jobs", "/dead-letters?status=", "/job-types", "/schedules"] {
        let page = server.get(page).await;
        assert!(page.status == 200 && !page.text.contains("TAKE"), "{page:?}");
    }
    for page in [format!("/jobs/{}", jobs[0]), "/job-types/TAKE".to_owned()] {
        let request = server.request(Method::GET, &page).send().await.unwrap();
        assert_eq!(request.status(), 404, "{page}");
    }
    // They may do everything with their own job types.
    server.post("/api/v1/stop?jobType=REPORT_B", &json!({})).await.is(200);
    server.post("/api/v1/start?jobType=REPORT_B", &json!({})).await.is(200);
    server.get(&format!("/api/v1/jobs/{}", jobs[1])).await.is(200);
    let mut events = Events::of(&server, "/api/v1/events").await;
    server.token(&token("eve", "chief")).submit(json!({"jobType": "TAKE"})).await;
    let heard =
        server.token(&token("ron", "reporter")).submit(json!({"jobType": "REPORT_A"})).await;
    assert_eq!(events.next().await.unwrap().1["id"], heard.as_str());
    server.token(&token("will", "watcher"));
    let mut all = ids(&server, "/api/v1/jobs").await;
    all.retain(|id| *id != heard);
    assert_eq!(all, [jobs[1].clone()]);
    let refused = server.post("/api/v1/jobs", &json!({"jobType": "REPORT_A"})).await;
    assert_eq!(refused.status, 403);
}

async fn a_role_limits_the_priority(data: Data) {
    let mut server = TestServer::start(CliSandbox::on(&data, &config())).await;
    for (role, highest) in [("low", 2), ("clerk", 7), ("chief", 9)] {
        server.token(&token("ada", role));
        for priority in 0..=9 {
            let request = json!({"jobType": "TAKE", "priority": priority});
            let response = server.post("/api/v1/jobs", &request).await;
            match priority <= highest {
                true => drop(response.is(201)),
                false => response.is_rejected(400, "priority"),
            }
        }
        let response = server.post("/api/v1/jobs", &json!({"jobType": "TAKE"})).await.is(201);
        assert_eq!(response["priority"], highest.min(5), "the default priority is limited too");
    }
}

async fn schedule_params_are_shown_to_those_who_see_its_jobs(data: Data) {
    let mut server = TestServer::start(CliSandbox::on(&data, &config())).await;
    server.token(&token("eve", "chief"));
    eventually("the schedule is there", async || {
        server.get("/api/v1/schedules").await.is(200) != json!([])
    })
    .await;
    let params = async |server: &TestServer| {
        let listed = server.get("/api/v1/schedules").await;
        (listed.text.contains("hush"), listed.is(200)[0]["schedule"]["params"].clone())
    };
    assert_eq!(params(server.token(&token("ada", "clerk"))).await, (false, Json::Null));
    let shown = params(server.token(&token("eve", "chief"))).await;
    assert_eq!(shown, (true, json!({"secret": "hush"})));
}

#[tokio::test]
async fn a_secret_of_a_command_is_neither_shown_nor_stored() {
    let data = Data::sqlite().with_accounts(3).await;
    let jobs = "[jobs.RUN]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                step.version = \"version\"\nstep.command = [\"python3\", \"run.py\", \"${HUSH}\"]\n";
    let sandbox = CliSandbox::on(&data, jobs).env("HUSH", "unutterable");
    let script = "import json, sys\nassert sys.argv[1] == 'unutter' + 'able'\nfor line in sys.stdin:\n    \
                  items = json.loads(line)['items']\n    \
                  print(json.dumps({'results': [{'key': i['key'], 'skip': True} for i in items]}), flush=True)\n";
    sandbox.write("run.py", script);
    let server = TestServer::with(sandbox, 1).await;
    let id = server.submit(json!({"jobType": "RUN"})).await;
    let job = server.until(&id, "COMPLETED").await;
    assert_eq!(job["items"]["skipped"], 3, "the command had its secret: {job:#}");
    let shown = server.sandbox.run(&format!("job {id} --json")).await.ok().stdout;
    let mut all = vec![shown, server.process.stderr()];
    for path in ["/job-types", "/job-types/RUN", &format!("/jobs/{id}"), "/api/v1/jobs"] {
        all.push(server.get(path).await.text);
    }
    assert!(all[3].contains("command python3 …"), "{}", all[3]);
    for file in std::fs::read_dir(server.sandbox.path(".")).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("windlass.db") {
            all.push(String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).into_owned());
        }
    }
    assert!(all.last().unwrap().len() > 1000 && all.iter().any(|text| text.contains("${HUSH}")));
    for text in all {
        assert!(!text.contains("unutterable"), "{text}");
    }
}

on_both!(
    a_role_is_limited_to_its_job_types,
    a_role_limits_the_priority,
    schedule_params_are_shown_to_those_who_see_its_jobs,
);
