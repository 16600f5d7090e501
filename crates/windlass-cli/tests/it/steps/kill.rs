//! Workers and their programs are killed at random and repeatedly. Every row is raised exactly once.

use crate::common::seeded_rng::SeededRng;
use crate::common::{CliSandbox, Data};
use crate::steps::fixture::{by_command, by_service, programs, sandbox};
use crate::steps::server::Server;
use std::time::Duration;
use windlass_testkit::Running;

const ROWS: i64 = 20_000;
/// A kill costs its items a try, and must not make dead letters.
const MORE: &str = "chunk.items = 500\nchunk.commit = 50\nchunk.lease = \"1s\"\n\
                    retry = { attempts = 100, backoff = \"10ms\", max = \"100ms\" }\n";

#[tokio::test]
async fn every_row_is_raised_once_although_workers_and_programs_are_killed() {
    let data = Data::postgres().await.with_accounts(ROWS).await;
    let sandbox = sandbox(&data, &by_command("python3 raise.py 1", MORE));
    let id = sandbox.submit("RAISE").await;
    let enough = |hits: &Hits| hits.workers >= 3 && hits.programs >= 3;
    kill_until_completed(&sandbox, &id, enough, || sandbox.write("hurry", "")).await;
    is_right(&data, &sandbox, &id).await;
}

#[tokio::test]
async fn every_row_is_raised_once_although_workers_of_a_service_are_killed() {
    let data = Data::postgres().await.with_accounts(ROWS).await;
    let server = Server::start().await;
    // Each answer takes time.
    server.put("hold");
    let sandbox = sandbox(&data, &by_service(&server.url("gather=1&wait=hold"), MORE));
    let id = sandbox.submit("RAISE").await;
    let enough = |hits: &Hits| hits.workers >= 3;
    kill_until_completed(&sandbox, &id, enough, || server.remove("hold")).await;
    is_right(&data, &sandbox, &id).await;
}

async fn is_right(data: &Data, sandbox: &CliSandbox, id: &str) {
    let job = sandbox.job(id).await;
    assert_eq!(job["items"]["processed"], ROWS, "{job:#}");
    assert_eq!(job["items"]["dead"], 0, "{job:#}");
    data.raised_once(ROWS).await;
    sandbox.prove(id).await;
}

/// How many were killed while they worked.
#[derive(Debug, Default)]
struct Hits {
    workers: usize,
    programs: usize,
}

/// Keeps two workers running, and kills one of them or one of their programs until the job is completed. The job is too slow
/// to end before `enough` were killed; then `hurry` is called.
async fn kill_until_completed(
    sandbox: &CliSandbox,
    id: &str,
    enough: impl Fn(&Hits) -> bool,
    hurry: impl FnOnce(),
) {
    let mut hurry = Some(hurry);
    let mut rng = SeededRng::new(20_260_401);
    let worker = || sandbox.spawn("worker --concurrency 2");
    let mut running: Vec<Running> = vec![worker(), worker()];
    let mut hits = Hits::default();
    sandbox.until(id, "the job is planned", |job| job["phase"] == "working").await;
    loop {
        tokio::time::sleep(Duration::from_millis(rng.next_in(200..600))).await;
        let programs = programs(sandbox);
        if rng.next_in(0..2) == 0 && !programs.is_empty() {
            programs[rng.next_in(0..programs.len() as u64) as usize].kill9();
            hits.programs += 1;
        } else {
            let victim = &mut running[rng.next_in(0..2) as usize];
            victim.kill9();
            // After the kill, the chunks still name the dead worker.
            hits.workers += usize::from(!sandbox.held_by(id, victim.id()).await.is_empty());
            *victim = worker();
        }
        if enough(&hits)
            && let Some(hurry) = hurry.take()
        {
            hurry();
        }
        let job = sandbox.job(id).await;
        match job["status"].as_str() {
            Some("COMPLETED") => return assert!(enough(&hits), "{hits:?}"),
            Some("QUEUED" | "PROCESSING") => {}
            _ => panic!("{job:#}"),
        }
    }
}
