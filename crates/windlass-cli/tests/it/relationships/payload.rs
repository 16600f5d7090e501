//! The payload of the specification (`jobId`, `fileId`, `pois`) is accepted as it is, by the outbox, the API and the
//! command line.

use crate::api::server_fixture::TestServer;
use crate::common::{eventually, text};
use crate::relationships::fixture::RelationshipsFixture;
use serde_json::{Value as Json, json};

/// A payload with the fields of the specification, and no others.
fn payload(job_id: &str) -> Json {
    let poi = |name: &str, code: &str| {
        json!({"id": format!("a.py:{name}"), "type": "function_definition", "name": name,
            "filePath": "a.py", "lineNumber": 1, "rawCode": code, "context": ""})
    };
    json!({"jobId": job_id, "fileId": "a.py",
        "pois": [poi("f", "def f():\n    g()"), poi("h", "def h():\n    HANDLERS[1]()")]})
}

/// Asserts that the job of a payload resolved one of its points and set the other aside.
async fn is_resolved(fixture: &RelationshipsFixture, id: &str, job_id: &str) {
    let job = fixture.ended(id).await;
    assert_eq!(
        (&job["status"], &job["items"]["total"]),
        (&"COMPLETED".into(), &2.into()),
        "{job:#}"
    );
    assert_eq!((&job["items"]["processed"], &job["items"]["dead"]), (&1.into(), &1.into()));
    let request = &fixture.sandbox.job(id).await["request"];
    assert_eq!(
        (&request["params"], &request["idempotencyKey"]),
        (&json!({"fileId": "a.py"}), &job_id.into())
    );
    assert_eq!(
        fixture.number("SELECT count(*) FROM relationships WHERE file_id = 'a.py'").await,
        1
    );
    let letter = &fixture.letters(&format!("--job {id}")).await[0];
    assert_eq!(letter["record"], payload(job_id)["pois"][1]);
    fixture.data.run("DELETE FROM relationships").await;
}

#[tokio::test]
async fn the_outbox_accepts_the_payload_and_repeats_it_as_the_same_job() {
    for fixture in RelationshipsFixture::both().await {
        let worker = fixture.worker();
        fixture.put(&payload("first")).await.unwrap();
        eventually("it is a job", async || fixture.jobs().await.len() == 1).await;
        let id = text(&fixture.jobs().await[0]["id"]);
        is_resolved(&fixture, &id, "first").await;
        let log = worker.stderr();
        let letters =
            log.lines().filter(|line| line.contains("dead letter") && line.contains("INFO"));
        let named = letters.filter(|line| line.contains("a.py:h") && line.contains("HANDLERS[1]"));
        assert_eq!(named.count(), 1, "an informational line per dead letter: {log}");

        // The application publishes the file again under the same jobId.
        fixture.data.run("DELETE FROM files").await;
        fixture.put(&payload("first")).await.unwrap();
        eventually("it is relayed", async || fixture.waiting().await.is_empty()).await;
        assert_eq!(fixture.jobs().await.len(), 1);
    }
}

#[tokio::test]
async fn the_api_accepts_the_payload() {
    for fixture in RelationshipsFixture::both().await {
        let RelationshipsFixture { data, sandbox } = fixture;
        let server = TestServer::with(sandbox, 2).await;
        let mut request = payload("by-api");
        request["jobType"] = "RESOLVE_RELATIONSHIPS".into();
        let id = server.submit(request.clone()).await;
        assert_eq!(server.post("/api/v1/jobs", &request).await.is(200)["id"], id, "the same job");
        for (field, value, expected) in [
            ("pois", json!([]), "is empty, so there is nothing to do"),
            ("pois", Json::Null, "is missing"),
            ("pios", json!([]), "unknown field `pios`"),
            ("items", json!([]), "is given twice, also as `items`"),
            ("fileId", json!(["a.py"]), "must be of type"),
        ] {
            let mut wrong = request.clone();
            wrong["jobId"] = "other".into();
            wrong[field] = value;
            let problem = server.post("/api/v1/jobs", &wrong).await;
            let refused = problem.status == 400 && problem.text.contains(expected);
            assert!(refused, "{wrong}: {problem:?}");
        }
        server.until(&id, "COMPLETED").await;
        let fixture = RelationshipsFixture { data, sandbox: server.sandbox };
        is_resolved(&fixture, &id, "by-api").await;
    }
}

#[tokio::test]
async fn the_command_line_accepts_the_payload() {
    for fixture in RelationshipsFixture::both().await {
        fixture.sandbox.write("payload.json", &payload("by-file").to_string());
        let run = "run RESOLVE_RELATIONSHIPS --request-file payload.json --json";
        let run = fixture.sandbox.run(run).await;
        assert_eq!(run.code, Some(5), "{run:?}");
        let job: Json = serde_json::from_str(&run.stdout).unwrap();
        is_resolved(&fixture, &text(&job["id"]), "by-file").await;
        // Flags replace fields of the file.
        let again = "submit RESOLVE_RELATIONSHIPS --request-file payload.json --idempotency-key k --priority 7";
        let id = fixture.sandbox.submit(&again["submit ".len()..]).await;
        let job = fixture.sandbox.job(&id).await;
        assert_eq!((&job["priority"], &job["request"]["idempotencyKey"]), (&7.into(), &"k".into()));
        for (text, expected) in [
            (
                "{\"jobType\": \"OTHER\"}",
                "is a request for \"OTHER\", not for RESOLVE_RELATIONSHIPS",
            ),
            ("[]", "must be a JSON object"),
            ("{\"pios\": []}", "unknown field `pios`"),
        ] {
            fixture.sandbox.write("wrong.json", text);
            let wrong = "submit RESOLVE_RELATIONSHIPS --request-file wrong.json";
            let refused = fixture.sandbox.run(wrong).await;
            assert_eq!(refused.code, Some(2), "{refused:?}");
            assert!(refused.stderr.contains(expected), "{refused:?}");
        }
    }
}

#[tokio::test]
async fn an_empty_or_missing_list_is_acknowledged_with_a_warning_and_makes_no_job() {
    for fixture in RelationshipsFixture::both().await {
        let payloads = [
            json!({"jobId": "1", "fileId": "empty.py", "pois": []}),
            json!({"jobId": "2", "fileId": "missing.py"}),
            json!({"jobId": "3", "fileId": "null.py", "pois": null}),
        ];
        for payload in &payloads {
            fixture.put(payload).await.unwrap();
        }
        assert_eq!(
            fixture.number("SELECT count(*) FROM files").await,
            3,
            "the application commits"
        );
        let worker = fixture.worker();
        eventually("they are acknowledged", async || fixture.waiting().await.is_empty()).await;
        assert_eq!(fixture.jobs().await.len(), 0);
        let log = worker.stderr();
        for payload in &payloads {
            let file = text(&payload["fileId"]);
            let warnings = log.lines().filter(|line| {
                line.contains("WARN") && line.contains("has no items") && line.contains(&file)
            });
            assert_eq!(warnings.count(), 1, "{file}: {log}");
        }
    }
}
