//! Many bad records, a service that hangs, a saturated step, a missing secret: good records are processed anyway.

use crate::common::{Data, parse, text};
use crate::steps::fixture::{
    TWO_TRIES, by_command, by_service, is_held, keys, letters, raised_but, sandbox, with_accounts,
};
use crate::steps::server::Server;

/// Exits on a run of consecutive keys and on every hundredth key.
const STRETCH: &str = r#"
import os
from handler import raised, serve

def result(item):
    if 101 <= item["key"] <= 130 or item["key"] % 100 == 0:
        os._exit(3)
    return raised(item)

serve(lambda batch: {"results": [result(item) for item in batch["items"]]})
"#;

#[tokio::test]
async fn many_consecutive_bad_records_do_not_stop_the_records_after_them() {
    let data = Data::sqlite().with_accounts(400).await;
    let sandbox = sandbox(&data, &by_command("python3 stretch.py", TWO_TRIES));
    sandbox.write("stretch.py", STRETCH);
    let job = parse(&sandbox.run("run RAISE --concurrency 1 --json").await.with_dead_letters());
    let bad: Vec<i64> = (1..=400).filter(|n| (101..=130).contains(n) || n % 100 == 0).collect();
    assert_eq!(keys(&letters(&sandbox, &text(&job["id"])).await), bad);
    raised_but(&data, 400, &bad).await;
}

#[tokio::test]
async fn a_program_that_fails_on_everything_pauses_its_job() {
    let jobs = by_command("python3 poison.py", TWO_TRIES);
    let (data, sandbox) = with_accounts(200, &jobs).await;
    sandbox.write("broken", "");
    let id = sandbox.submit("RAISE").await;
    let worked = sandbox.run(&format!("worker --job {id} --concurrency 1")).await;
    assert_eq!(worked.code, Some(4), "{worked:?}");
    let job = sandbox.job(&id).await;
    assert_eq!((&job["status"], &job["items"]["dead"]), (&"PAUSED".into(), &0.into()));
    assert!(text(&job["error"]).contains("the step failed repeatedly"), "{job:#}");
    data.untouched().await;
    std::fs::remove_file(sandbox.path("broken")).unwrap();
    sandbox.run(&format!("resume {id}")).await.ok();
    sandbox.run(&format!("worker --job {id}")).await.ok();
    data.raised_once(200).await;
}

const BRIEF: &str = "chunk.timeout = \"8s\"\nchunk.lease = \"2s\"\nchunk.items = 20\n";

#[tokio::test]
async fn a_service_that_hangs_suspends_the_job_type_and_fails_nothing() {
    let server = Server::start().await;
    server.put("stuck");
    // An empty batch hangs as well, so the service counts as unavailable.
    let jobs = by_service(&server.url("halt=stuck"), &format!("{BRIEF}{TWO_TRIES}"));
    let (data, sandbox) = with_accounts(60, &jobs).await;
    let id = sandbox.submit("RAISE").await;
    let _worker = sandbox.spawn("worker");
    let held = sandbox.until(&id, "the job waits for the service", is_held).await;
    assert!(text(&held["error"]).contains("did not respond in time"), "{held:#}");
    server.remove("stuck");
    let job = sandbox.completed(&id).await;
    assert_eq!(job["items"]["dead"], 0, "{job:#}");
    data.raised_once(60).await;
}

#[tokio::test]
async fn waiting_for_step_concurrency_costs_no_attempt() {
    let server = Server::start().await;
    // The last of ten slots waits longer than the timeout of its batch, a quarter of the chunk's.
    let more =
        "chunk.timeout = \"40s\"\nchunk.items = 20\nstep.concurrency = 1\nretry.attempts = 1\n";
    let jobs = by_service(&server.url("linger=1.5"), more);
    let (data, sandbox) = with_accounts(200, &jobs).await;
    let job = parse(&sandbox.run("run RAISE --concurrency 10 --json").await.ok());
    assert_eq!(job["chunks"]["failed"], 0, "{job:#}");
    data.raised_once(200).await;
}

#[tokio::test]
async fn a_worker_without_the_secret_pauses_the_job_and_one_with_it_completes_it() {
    let server = Server::start().await;
    let headers = "step.headers = { Authorization = \"Bearer ${TOKEN}\" }\n";
    let (data, sandbox) = with_accounts(20, &by_service(&server.url(""), headers)).await;
    let sandbox = sandbox.env("TOKEN", "abcdefgh");
    let id = sandbox.submit("RAISE").await;
    let whole = sandbox.read("windlass.toml");
    sandbox.write("windlass.toml", &whole.replace(headers, ""));
    let worked = sandbox.run(&format!("worker --job {id}")).await;
    assert_eq!(worked.code, Some(4), "{worked:?}");
    let error = text(&sandbox.job(&id).await["error"]);
    assert!(error.contains("Authorization"), "{error}");
    // A file with the header for another endpoint is refused too: the secret is not for this one.
    let elsewhere = whole.replace("http://127.0.0.1", "http://localhost");
    sandbox.write("windlass.toml", &elsewhere);
    sandbox.run(&format!("resume {id}")).await.ok();
    assert_eq!(sandbox.run(&format!("worker --job {id}")).await.code, Some(4));
    assert!(server.requests().is_empty(), "nothing was sent");
    sandbox.write("windlass.toml", &whole);
    sandbox.run(&format!("resume {id}")).await.ok();
    sandbox.run(&format!("worker --job {id}")).await.ok();
    data.raised_once(20).await;
}
