//! Services and programs that are down: nothing becomes a dead letter, the job says what it waits
//! for, and goes on by itself.

use crate::common::{Data, Place, eventually, text};
use crate::server::{Server, url};
use crate::world::{TWO_TRIES, by_command, by_service, is_held, letters, with_accounts};
use serde_json::Value as Json;
use windlass_testkit::free_port;

const ROWS: i64 = 100;
const MORE: &str = "chunk.items = 10\nretry = { attempts = 3, backoff = \"10ms\" }\n";

/// The job waits with a reason that has this word, and nothing is dead.
async fn held(place: &Place, id: &str, word: &str) -> Json {
    let job = place.until(id, "the job waits and says why", is_held).await;
    assert!(text(&job["error"]).contains(word), "{job:#}");
    assert_eq!(job["items"]["dead"], 0, "{job:#}");
    job
}

/// The job comes to its end with every account raised once and no reason left.
async fn goes_on(data: &Data, place: &Place, id: &str) {
    let job = place.completed(id).await;
    let rows = data.number("SELECT count(*) FROM accounts").await;
    assert_eq!(job["items"]["processed"], rows, "{job:#}");
    assert_eq!(job["error"], Json::Null, "{job:#}");
    assert!(letters(place, id).await.is_empty());
    data.raised_once(rows).await;
    place.prove(id).await;
}

#[tokio::test]
async fn a_service_that_is_not_there_yet() {
    let port = free_port();
    let (data, place) = with_accounts(ROWS, &by_service(&url(port, ""), MORE)).await;
    let id = place.submit("RAISE").await;
    let worker = place.spawn("worker");
    held(&place, &id, "refused").await;
    data.untouched().await;
    assert!(worker.is_running());
    let _server = Server::start_on(port).await;
    goes_on(&data, &place, &id).await;
}

#[tokio::test]
async fn a_service_that_is_killed_in_the_middle() {
    let port = free_port();
    let first = Server::start_on(port).await;
    first.put("stuck");
    let jobs = by_service(&first.url("stick=5:stuck"), MORE);
    let (data, place) = with_accounts(ROWS, &jobs).await;
    let id = place.submit("RAISE").await;
    let _worker = place.spawn("worker --concurrency 2");
    eventually("a request is stuck", async || first.batches().len() >= 5).await;
    first.kill9();
    let job = held(&place, &id, "refused").await;
    let done = job["items"]["processed"].as_i64().unwrap();
    assert!((10..ROWS).contains(&done), "{job:#}");
    let _second = Server::start_on(port).await;
    goes_on(&data, &place, &id).await;
}

#[tokio::test]
async fn a_service_that_is_out_of_order() {
    let server = Server::start().await;
    server.put("down");
    let jobs = by_service(&server.url("during=down:503"), MORE);
    let (data, place) = with_accounts(ROWS, &jobs).await;
    let id = place.submit("RAISE").await;
    let _worker = place.spawn("worker");
    held(&place, &id, "503").await;
    data.untouched().await;
    // The reason is there for as long as nothing is tried.
    for look in ["jobs".to_owned(), format!("job {id}")] {
        let says = async || place.run(&look).await.ok().stdout.contains("503");
        eventually(&format!("`windlass {look}` says why the job waits"), says).await;
    }
    server.remove("down");
    goes_on(&data, &place, &id).await;
}

#[tokio::test]
async fn run_waits_for_a_service_and_then_completes() {
    let server = Server::start().await;
    server.put("down");
    let jobs = by_service(&server.url("during=down:503"), MORE);
    let (data, place) = with_accounts(ROWS, &jobs).await;
    let run = place.spawn("run RAISE");
    eventually("the job waits", async || {
        let jobs = place.json("jobs").await;
        jobs.get(0).is_some_and(is_held)
    })
    .await;
    assert!(run.is_running());
    server.remove("down");
    run.wait().await.ok();
    data.raised_once(ROWS).await;
}

#[tokio::test]
async fn a_program_that_fails_on_everything() {
    // Few items and few tries: it takes little to use all of them up.
    let (data, place) = with_accounts(30, &by_command("python3 poison.py", TWO_TRIES)).await;
    place.write("broken", "");
    let id = place.submit("RAISE").await;
    let worker = place.spawn("worker --concurrency 1");
    held(&place, &id, "exit").await;
    // It is tried again and held again, as often as any item has tries: still nothing is dead.
    eventually("the worker says that it is held, four times", async || {
        let job = place.job(&id).await;
        assert_eq!((&job["status"], &job["items"]["dead"]), (&"PROCESSING".into(), &0.into()));
        worker.stderr().lines().filter(|line| line.contains("held")).count() >= 4
    })
    .await;
    data.untouched().await;
    std::fs::remove_file(place.path("broken")).unwrap();
    goes_on(&data, &place, &id).await;
}
