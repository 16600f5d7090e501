//! The night by the functions and the state machine of deploy/terraform. moto interprets the state machine, and the
//! functions are the real binary on the Lambda runtime of the testkit.

use crate::common::{CliSandbox, eventually, text};
use crate::nightly::fixture::{DATE, NightlyFixture};
use crate::nightly::reading::totals;
use crate::redshift::nightly::RedshiftNight;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value as Json, json};
use std::time::Duration;
use windlass_testkit::aws::{Failure, Function, StateMachine};
use windlass_testkit::{Database, Moto, PgBouncer, PostgresServer, built_program};

/// What EventBridge Scheduler sends for the date: 03:00 in Tokyo.
const TIME: &str = "2026-01-30T18:00:00Z";
/// Invocations that work one job at the same time.
const WORKERS: usize = 3;
const ROWS: i64 = 100_000;

/// The function *worker* in the folder of the fixture, with this time per invocation and these variables.
fn function(fixture: &NightlyFixture, seconds: u64, has: impl Fn(&str) -> bool) -> Function {
    let variables = fixture.environment().filter(|(name, _)| has(name));
    let environment: Vec<(String, String)> =
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    function_in(&fixture.sandbox, &environment, seconds)
}

/// The function *worker* in this folder.
fn function_in(sandbox: &CliSandbox, environment: &[(String, String)], seconds: u64) -> Function {
    let binary = built_program("windlass-aws", "windlass-worker");
    let time = Duration::from_secs(seconds);
    Function::new(binary, &sandbox.path(""), environment, time, 2 * WORKERS + 2)
}

async fn deploy(function: &Function) -> StateMachine {
    let definition = include_str!("../../../../../deploy/terraform/state-machine-functions.json");
    let definition = definition.replace("${workers}", &WORKERS.to_string());
    StateMachine::deploy(Moto::shared(), &definition, function.clone()).await
}

/// The input that the schedule gives the state machine, for the time of a firing.
fn firing() -> Json {
    let schedule = include_str!("../../../../../deploy/terraform/schedule.tf");
    assert!(schedule.contains(r#"jsonencode({ time = "<aws.scheduler.scheduled-time>" })"#));
    json!({"time": TIME})
}

/// Submits a job type with the key of the night.
async fn submit(function: &Function, job_type: &str) -> String {
    let request = json!({"jobType": job_type, "params": {"date": DATE}, "idempotencyKey": TIME});
    text(&function.invoke(json!({"submit": request})).await.unwrap()["job"])
}

/// Kills functions at random moments while they work chunks.
async fn kill_at_work(store: &Database, function: &Function, kills: usize) {
    let mut rng = 20_261_117_u64;
    for _ in 0..kills {
        eventually("functions work chunks", async || {
            let leased = "SELECT count(*) FROM windlass_chunks WHERE status = 'PROCESSING'";
            let exists = "SELECT count(*) FROM pg_tables WHERE tablename = 'windlass_chunks'";
            store.one::<i64>(exists).await > 0
                && store.one::<i64>(leased).await >= 2
                && !function.at_work().is_empty()
        })
        .await;
        rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Any moment will do, so a pseudo-random one.
        tokio::time::sleep(Duration::from_millis((rng >> 33) % 300)).await;
        let at_work = function.at_work();
        if let Some(victim) = at_work.get((rng >> 40) as usize % at_work.len().max(1)) {
            let _ = kill(Pid::from_raw(i32::try_from(*victim).unwrap()), Signal::SIGKILL);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_night_has_the_banks_own_totals_although_functions_were_killed() {
    let fixture = NightlyFixture::in_a_bucket_with(Moto::shared(), ROWS).await;
    // Each row takes time, so that kills also happen within a statement.
    fixture.edit("WHERE {chunk} GROUP", "WHERE {chunk} AND SLEEP(0.0005) = 0 GROUP");
    // The store is behind a pooler that has fewer connections than there are functions.
    let pooler = PgBouncer::start(PostgresServer::shared());
    let secret = json!({"WAREHOUSE_URL": pooler.url(&fixture.warehouse)});
    let secret = Moto::shared().secret(&secret.to_string());
    let function = function(&fixture, 20, |name| name != "WAREHOUSE_URL");
    function.set("WINDLASS_SECRET", &secret);
    let machine = deploy(&function).await;
    let execution = machine.start(&firing());
    kill_at_work(&fixture.warehouse, &function, 6).await;
    let ended = machine.ended(&execution).await;
    assert_eq!(ended["status"], "SUCCEEDED", "{ended:#}");
    let notices = machine.notices();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0].0, format!("Night of {DATE} is complete"));
    assert!(notices[0].1.contains("100000 items, 0 dead letters"), "{notices:?}");

    fixture.totals_are_the_banks_own().await;
    let own = fixture.own_totals().await;
    assert_eq!(totals(&fixture.report().await), own);
    let export = submit(&function, "TRANSACTIONS_EXPORT").await;
    let parts = fixture.parts(&export).await;
    assert_eq!((&parts["count"], &parts["distinct"]), (&ROWS.into(), &ROWS.into()));
    assert_eq!(totals(&parts), own);

    // The same firing again is the same night: nothing is done twice.
    let jobs = fixture.sandbox.json("jobs").await;
    assert_eq!(jobs.as_array().unwrap().len(), 2, "{jobs:#}");
    let mut losses = 0;
    for job in jobs.as_array().unwrap() {
        let id = text(&job["id"]);
        let chunks = fixture.sandbox.chunks(&id).await;
        losses += chunks.iter().filter(|chunk| chunk["losses"] != 0).count();
        fixture.sandbox.prove(&id).await;
    }
    assert!(losses > 0, "no function was killed in a chunk");
    let again = machine.start(&firing());
    assert_eq!(machine.ended(&again).await["status"], "SUCCEEDED");
    assert_eq!(fixture.sandbox.json("jobs").await, jobs);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_night_is_loaded_into_redshift_although_functions_were_killed() {
    let night = RedshiftNight::new(ROWS, "functions").await;
    let config = night.sandbox.read("windlass.toml");
    let config = config
        .replace("WHERE {chunk} GROUP", "WHERE {chunk} AND SLEEP(0.0005) = 0 GROUP")
        .replace("chunk.items = 10000", "chunk.items = 2000")
        .replace("chunk.lease = \"10s\"", "chunk.lease = \"1s\"");
    night.sandbox.write("windlass.toml", &config);
    let function = function_in(&night.sandbox, &night.environment, 20);
    let machine = deploy(&function).await;
    let execution = machine.start(&firing());
    kill_at_work(&night.store, &function, 3).await;
    let ended = machine.ended(&execution).await;
    assert_eq!(ended["status"], "SUCCEEDED", "{ended:#}");
    night.totals_are_the_banks_own().await;
    for job in night.sandbox.json("jobs").await.as_array().unwrap() {
        night.sandbox.prove(&text(&job["id"])).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_hands_its_chunks_back_before_its_time_is_over() {
    let fixture = NightlyFixture::in_a_folder().await;
    // A stall of this machine must not lose a lease.
    fixture.edit("chunk.lease = \"1s\"", "chunk.lease = \"1m\"");
    // Each chunk takes half a second.
    fixture.edit("WHERE {chunk} GROUP", "WHERE {chunk} AND SLEEP(0.001) = 0 GROUP");
    let short = function(&fixture, 20, |_| true);
    let id = submit(&short, "DAILY_REPORT").await;
    let answer = short.invoke(json!({"job": id})).await.unwrap();
    assert_eq!((&answer["job"], &answer["status"]), (&json!(id), &json!("PROCESSING")));
    let (remaining, completed) = (answer["remaining"].as_i64(), answer["completed"].as_i64());
    assert!(remaining > Some(0) && completed > Some(0), "{answer:#}");
    // Nothing waits for a lease of the function.
    let job = fixture.sandbox.job(&id).await;
    assert_eq!(job["chunks"]["processing"], 0, "{job:#}");
    let chunks = fixture.sandbox.chunks(&id).await;
    assert!(chunks.iter().all(|chunk| chunk["losses"] == 0), "{chunks:#?}");

    // Others continue until the end, and the last one merges.
    let long = function(&fixture, 60, |_| true);
    let event = json!({"job": id});
    let answers = tokio::join!(long.invoke(event.clone()), long.invoke(event.clone()));
    for answer in [answers.0.unwrap(), answers.1.unwrap()] {
        assert_eq!((&answer["status"], &answer["remaining"]), (&json!("COMPLETED"), &json!(0)));
    }
    fixture.totals_are_the_banks_own().await;
    // A late invocation finds nothing to do.
    let late = long.invoke(event).await.unwrap();
    assert_eq!((&late["status"], &late["completed"]), (&json!("COMPLETED"), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_night_that_does_not_complete_is_announced_with_its_reason() {
    let fixture = NightlyFixture::in_a_folder().await;
    let function = function(&fixture, 60, |_| true);
    let id = submit(&function, "DAILY_REPORT").await;
    assert_eq!(submit(&function, "DAILY_REPORT").await, id, "the key is the same");
    fixture.sandbox.run(&format!("cancel {id}")).await.ok();
    let machine = deploy(&function).await;
    let execution = machine.start(&firing());
    let ended = machine.ended(&execution).await;
    assert_eq!((&ended["status"], &ended["error"]), (&json!("FAILED"), &json!("CANCELLED")));
    let notices = machine.notices();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0].0, format!("Night of {DATE} failed"));
    assert!(notices[0].1.contains(&format!("DAILY_REPORT {id}: ")), "{notices:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_event_is_refused_with_what_would_be_right() {
    let fixture = NightlyFixture::in_a_folder().await;
    let function = function(&fixture, 60, |_| true);
    let refused = async |event: Json, kind: &str, message: &str| {
        let Err(Failure::Error(error)) = function.invoke(event).await else { panic!("{message}") };
        assert_eq!(error["errorType"], kind, "{error}");
        assert!(text(&error["errorMessage"]).contains(message), "{error}");
    };
    refused(json!({"jobs": 1}), "WL0003", "unknown field `jobs`").await;
    refused(json!({}), "WL0003", "exactly one of `submit`, `job` and `status`").await;
    let unknown = "019a0000-0000-7000-8000-000000000000";
    for field in ["job", "status"] {
        refused(json!({field: unknown}), "WL0009", "there is no job").await;
    }
    refused(json!({"submit": {"jobType": "NIGHTLY"}}), "WL0002", "DAILY_REPORT").await;
}
