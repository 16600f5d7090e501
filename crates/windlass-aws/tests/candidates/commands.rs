//! The queue commands of the `windlass` binary: fill a queue, work it, manage its dead letters.

use crate::fixture::{CandidatesFixture, PATIENCE, migrate};
use serde_json::{Value as Json, json};
use windlass_drivers::dynamodb::sdk::types::AttributeValue;
use windlass_testkit::{Windlass, eventually};

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
