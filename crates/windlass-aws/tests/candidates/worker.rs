//! Without Lambda: this process fills a queue, and a worker polls it.

use crate::fixture::{CandidatesFixture, PATIENCE, Plan};
use serde_json::json;
use windlass_aws::{Process, Start, Steps, Worker};
use windlass_core::{ItemError, Outcome, Request, Value};
use windlass_testkit::{Moto, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_polls_the_queue_and_finishes_received_messages_at_shutdown() {
    let plan = Plan { refresh: "queue.items_per_message = 7", ..Plan::default() };
    let fixture = CandidatesFixture::with(Moto::shared(), plan).await;
    fixture.candidates(100).await;
    let (config, queue) = (fixture.config(Moto::shared()), fixture.queue(&fixture.work).await);
    let start = Start::new(config.clone(), queue.clone());
    let enqueued = start.enqueue_all(Request::new("REFRESH_CANDIDATES")).await.unwrap();
    assert_eq!(enqueued.items, 100);
    let (worker, handle) = Worker::new(Process::new(config, Steps::default()), queue, 3);
    let working = tokio::spawn(worker.run());
    let mapping = fixture.mapping();
    eventually("the queue is empty", PATIENCE, async || mapping.depth().await == 0).await;
    handle.shutdown();
    working.await.unwrap().unwrap();
    for (id, record) in fixture.all_candidates().await {
        assert_eq!((record.version(), record.jobs()), (2, vec![enqueued.job.to_string()]), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_in_rust_is_a_step_and_gets_the_params() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(3).await;
    let mut config = fixture.config(Moto::shared());
    let migrate = config.jobs.get_mut("MIGRATE_CANDIDATES").unwrap();
    migrate.step.kind = windlass_core::StepKind::Handler("rename".to_owned());
    let queue = fixture.queue(&fixture.work).await;
    let mut request = Request::new("MIGRATE_CANDIDATES");
    request.params.insert("title".to_owned(), json!("new"));
    Start::new(config.clone(), queue.clone()).enqueue_all(request).await.unwrap();
    #[derive(serde::Deserialize)]
    struct Candidate {
        title: String,
    }
    let steps = Steps::default().handler("rename", |candidate: Candidate, context| async move {
        let title = context.param("title").and_then(|title| title.as_str()).unwrap_or_default();
        let title = format!("{} {title}", candidate.title);
        Ok::<_, ItemError>(Outcome::set("title", Value::Text(title)))
    });
    let (worker, handle) = Worker::new(Process::new(config, steps), queue, 1);
    let working = tokio::spawn(worker.run());
    let mapping = fixture.mapping();
    eventually("the queue is empty", PATIENCE, async || mapping.depth().await == 0).await;
    handle.shutdown();
    working.await.unwrap().unwrap();
    for record in fixture.all_candidates().await.values() {
        assert_eq!((record.version(), record.text("title")), (2, "a title new"));
    }
}
