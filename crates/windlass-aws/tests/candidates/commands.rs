//! The queue commands of the `windlass` binary: fill a queue, work it, manage its dead letters.

use crate::fixture::{CandidatesFixture, JOB, PATIENCE, Plan, migrate};
use serde_json::{Value as Json, json};
use windlass_drivers::dynamodb::sdk::types::AttributeValue;
use windlass_testkit::{Moto, Windlass, eventually};

fn windlass(fixture: &CandidatesFixture) -> Windlass {
    let mut windlass = Windlass::new(fixture.folder());
    for (name, value) in fixture.environment() {
        windlass = windlass.env(name, value);
    }
    windlass
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_filled_worked_and_its_dead_letters_managed() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(25).await;
    fixture.put_candidate("bad", &[("poison", "yes")]).await;
    let windlass = windlass(&fixture);
    let queue = format!("sqs://{}", fixture.work.rsplit('/').next().unwrap());
    let dead = fixture.dead.as_str();
    let run = async |arguments: &[&str]| windlass.run(arguments).await.ok().stdout;

    let enqueued = run(&["submit", "MIGRATE_CANDIDATES", "--queue", &queue, "--json"]).await;
    let enqueued: Json = serde_json::from_str(&enqueued).unwrap();
    assert_eq!(enqueued["itemsEnqueued"], 26);
    // The queue releases failed messages at once, so that the test does not wait.
    fixture.hide_for(&fixture.work, 1).await;
    let worker = windlass.spawn(["worker", "--queue", &queue, "--concurrency", "3"]);
    let mapping = fixture.mapping();
    eventually("all is worked", PATIENCE, async || mapping.depth().await == 0).await;
    worker.term();
    worker.wait().await.ok();
    // From here a function works the queue, whose start may take longer than a second.
    fixture.hide_for(&fixture.work, 60).await;
    for (id, record) in fixture.all_candidates().await {
        assert_eq!(record.version(), if id == "bad" { 1 } else { 2 }, "{id}");
    }

    let listed = run(&["dead", "list", "--queue", dead, "--json"]).await;
    let listed: Json = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["message"], migrate("bad"));
    assert_eq!(listed[0]["jobId"], enqueued["jobId"]);
    let listed = run(&["dead", "list", "--queue", dead]).await;
    assert!(listed.contains("MIGRATE_CANDIDATE") && listed.contains("bad"), "{listed}");
    let none = run(&["dead", "list", "--queue", dead, "--type", "REFRESH_PERIODS"]).await;
    assert!(none.contains("no dead letters"), "{none}");

    let key = AttributeValue::S("bad".to_owned());
    let mend = fixture.dynamo.update_item().table_name(&fixture.candidates).key("identifier", key);
    mend.update_expression("REMOVE poison").send().await.unwrap();
    let refused = windlass.run(["dead", "redrive", "--queue", dead]).await;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let redriven =
        run(&["dead", "redrive", "--queue", dead, "--all", "--rate", "100", "--json"]).await;
    let redriven: Json = serde_json::from_str(&redriven).unwrap();
    assert_eq!(redriven["redriven"], 1);
    assert!(redriven["to"].as_str().unwrap().ends_with(&queue["sqs://".len()..]), "{redriven}");
    fixture.drain().await;
    assert_eq!(fixture.candidate("bad").await.version(), 2);

    // Ignore a letter that cannot be repaired.
    let ids = fixture.folder().join("ids");
    std::fs::write(&ids, "nobody\n").unwrap();
    let ids = ids.display().to_string();
    run(&["submit", "MIGRATE_CANDIDATES", "--ids-file", &ids, "--queue", &queue]).await;
    fixture.drain().await;
    let ignored = ["dead", "ignore", "--queue", dead, "--type", "MIGRATE_CANDIDATES"];
    assert!(run(&ignored).await.contains("1 dead letter"));
    assert!(run(&["dead", "list", "--queue", dead]).await.contains("no dead letters"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_progress_of_a_job_and_the_errors_of_its_dead_letters_are_shown() {
    let plan = Plan { migrate: "queue.progress = true", ..Plan::default() };
    let fixture = CandidatesFixture::with(Moto::shared(), plan).await;
    fixture.candidates(12).await;
    fixture.put_candidate("bad", &[("poison", "yes")]).await;
    let windlass = windlass(&fixture);
    let (work, dead) = (fixture.work.as_str(), fixture.dead.as_str());
    let run = async |arguments: &[&str]| windlass.run(arguments).await.ok().stdout;
    let json = |text: String| serde_json::from_str::<Json>(&text).unwrap();

    let submit = ["submit", "MIGRATE_CANDIDATES", "--queue", work, "--json"];
    let stopped = windlass.clone().env("PROCESSING_ENABLED", "false").run(submit).await;
    assert_ne!(stopped.code, Some(0));
    assert!(stopped.stderr.contains("PROCESSING_ENABLED is false"), "{}", stopped.stderr);
    assert_eq!(fixture.mapping().depth().await, 0);

    let submitted = json(run(&submit).await);
    let id = submitted["jobId"].as_str().unwrap();
    let show = ["job", id, "--queue", work, "--json"];
    let job = json(run(&show).await);
    assert_eq!((&job["status"], &job["phase"]), (&json!("PROCESSING"), &json!("working")));
    assert_eq!((&job["items"]["total"], &job["items"]["processed"]), (&json!(13), &json!(0)));
    assert_eq!(job["waitsFor"], "the queue: 13 messages waiting, 0 messages in progress");

    fixture.hide_for(&fixture.work, 1).await;
    let refused = windlass.run(["worker", "--queue", work, "--batch-size", "11"]).await;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let worker = windlass.spawn(["worker", "--queue", work, "--batch-size", "3"]);
    eventually("the job ends", PATIENCE, async || json(run(&show).await)["status"] == "COMPLETED")
        .await;
    worker.term();
    let worked = worker.wait().await.ok();
    assert!(!worked.stderr.contains("messages=4"), "at most three at a time: {}", worked.stderr);
    let job = json(run(&show).await);
    let items = json!({"total": 13, "processed": 12, "skipped": 0, "dead": 1, "conflicts": 0});
    assert_eq!((&job["items"], &job["waitsFor"]), (&items, &Json::Null));
    assert!(job["finishedAt"].is_string(), "{job}");
    let text = run(&["job", id, "--queue", work]).await;
    assert!(text.contains("COMPLETED") && text.contains("13 of 13: 12 processed"), "{text}");
    assert_eq!(fixture.bus.others().len(), 1);
    let unknown = windlass.run(["job", JOB, "--queue", work]).await;
    assert!(unknown.stderr.contains("is not counted"), "{}", unknown.stderr);

    let listed = json(run(&["dead", "list", "--queue", dead, "--json"]).await);
    let letter = listed[0]["id"].as_str().unwrap();
    let shown = json(run(&["dead", "show", letter, "--queue", dead, "--json"]).await);
    assert_eq!((&shown["error"], &shown["attempts"]), (&json!("this one is bad"), &json!(3)));
    assert_eq!((&shown["message"], &shown["jobId"]), (&migrate("bad"), &json!(id)));
    let text = run(&["dead", "show", letter, "--queue", dead]).await;
    assert!(text.contains("error     this one is bad"), "{text}");
    let file = fixture.folder().join("letters").display().to_string();
    run(&["dead", "export", "--queue", dead, "--to", &file, "--error", "is bad"]).await;
    let exported = json(std::fs::read_to_string(&file).unwrap());
    assert_eq!((&exported["id"], &exported["error"]), (&shown["id"], &shown["error"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_between_write_and_delete_causes_no_second_write() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(30).await;
    fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES"})).await;
    fixture.hide_for(&fixture.work, 1).await;
    let windlass = windlass(&fixture);
    let worker = windlass.spawn(["worker", "--queue", &fixture.work, "--concurrency", "1"]);
    let id = nix::unistd::Pid::from_raw(i32::try_from(worker.id()).unwrap());
    fixture.gateway.at("DeleteMessageBatch", windlass_testkit::aws::Moment::Before, 1, move || {
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGKILL).unwrap();
    });
    assert_eq!(worker.wait().await.code, None);
    let written = fixture.gateway.count("UpdateItem");
    assert!(written > 10, "{written}");
    fixture.drain().await;
    for (id, record) in fixture.all_candidates().await {
        assert_eq!(record.version(), 2, "{id}");
    }
    assert_eq!(fixture.gateway.count("UpdateItem"), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_queue_is_refused() {
    let fixture = CandidatesFixture::new().await;
    let windlass = windlass(&fixture);
    for (queue, expected) in [("work", "sqs://NAME"), ("sqs://nobody", "nobody")] {
        let refused = windlass.run(["worker", "--queue", queue]).await;
        assert_ne!(refused.code, Some(0));
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
}
