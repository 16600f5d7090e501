//! One round: processes, jobs, faults and operators for a while, then rest, then the verdict of the checker.

use super::bystander;
use super::checker::check;
use super::cluster::{Cluster, Kind};
use super::collect::{collect, status};
use super::history::Status;
use super::operators::Operators;
use super::processes::Processes;
use super::summary::Summary;
use crate::common::seeded_rng::SeededRng;
use crate::common::{CliSandbox, text};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use windlass_testkit::free_port;

/// The longest time until every job has ended, once nothing is disturbed any more. Leases of segments last 30 seconds.
const REST: Duration = Duration::from_secs(150);

/// Completed jobs that are audited in each round.
const AUDITS: usize = 12;

/// Runs a round with faults for this long. Returns what happened; the violations are in it.
pub(super) async fn run(kind: Kind, seed: u64, faults_for: Duration) -> Summary {
    let mut rng = SeededRng::new(seed);
    let cluster = Cluster::start(kind, seed).await;
    let port = free_port();
    let sandbox = Arc::new(cluster.sandbox(Processes::COUNT, port).await);
    turn_back_schedules(&cluster, &sandbox).await;
    let mut processes = Processes::start(sandbox.clone(), port);
    let data = cluster.data.clone();
    let mut operators = Operators::new(sandbox.clone(), data.clone());
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (data, stop) = (data.clone(), stop.clone());
        tokio::spawn(async move { bystander::write(&data, seed, &stop).await })
    };

    let mut summary = Summary::default();
    let started = Instant::now();
    while started.elapsed() < faults_for {
        tokio::time::sleep(Duration::from_millis(rng.next_in(50..300))).await;
        processes.tend();
        disturb(&cluster, &mut processes, &mut operators, &mut rng, &mut summary).await;
    }

    cluster.heal();
    processes.thaw();
    let notes = operators.finish().await;
    let (jobs, mut violations) = rest(&sandbox, &mut processes, &mut rng).await;
    stop.store(true, Ordering::Relaxed);
    let writes = writer.await.unwrap();
    violations.extend(processes.shut_down().await);
    let audits = audit(&sandbox, &jobs, &mut rng).await;
    let mut history = collect(&sandbox, &data, &jobs, notes, audits).await;
    history.writes = writes;
    violations.extend(check(&history));
    violations.extend(panics(&sandbox));
    summary.histories += 1;
    summary.jobs += history.jobs.len();
    for job in &history.jobs {
        summary.completed += usize::from(job.status == Status::Completed);
        summary.cancelled += usize::from(job.status == Status::Cancelled);
        summary.redrives += usize::from(job.is_redrive);
    }
    summary.commits += history.ledger.len();
    summary.writes += history.writes.len();
    summary.cuts = cluster.proxies.iter().map(|proxy| proxy.cuts()).sum();
    if !violations.is_empty() {
        let kept = keep(&sandbox, kind, seed, &format!("{violations:#?}\n{history:#?}"));
        violations
            .push(format!("{kind:?}, seed {seed}: logs and history are in {}", kept.display()));
    }
    summary.violations = violations;
    summary
}

/// One fault, or one command of an operator.
async fn disturb(
    cluster: &Cluster,
    processes: &mut Processes,
    operators: &mut Operators,
    rng: &mut SeededRng,
    summary: &mut Summary,
) {
    match rng.next_in(0..100) {
        0..30 => operators.submit(rng),
        30..42 => {
            processes.kill(rng);
            summary.kills += 1;
        }
        42..50 => {
            processes.freeze(rng);
            summary.freezes += 1;
        }
        50..57 => crash(cluster, rng, summary).await,
        57..78 => {
            if !cluster.disturb_network(rng).await {
                operators.steer(rng);
            }
        }
        78..80 => cluster.heal(),
        80..84 => {
            if !cluster.poolers.is_empty() {
                let pooler = rng.next_in(0..cluster.poolers.len() as u64) as usize;
                tokio::task::block_in_place(|| cluster.poolers[pooler].restart());
                summary.pooler_restarts += 1;
            }
        }
        84..87 => processes.restart_service(),
        _ => {
            operators.steer(rng);
            summary.commands += 1;
        }
    }
}

/// Crashes a server and starts it again after a moment, or fills the disk for a moment.
async fn crash(cluster: &Cluster, rng: &mut SeededRng, summary: &mut Summary) {
    let pause = Duration::from_millis(rng.next_in(10..1200));
    if let Some(disk) = &cluster.disk {
        disk.fill();
        tokio::time::sleep(pause).await;
        disk.free();
        summary.full_disks += 1;
    } else if !cluster.servers.is_empty() {
        let server = &cluster.servers[rng.next_in(0..cluster.servers.len() as u64) as usize];
        tokio::task::block_in_place(|| server.crash());
        tokio::time::sleep(pause).await;
        tokio::task::block_in_place(|| server.start_again());
        summary.crashes += 1;
    }
}

/// Makes the schedule due for the last minutes, as if no process had run.
async fn turn_back_schedules(cluster: &Cluster, sandbox: &CliSandbox) {
    sandbox.json("schedules").await;
    match cluster.store.strip_prefix("sqlite:") {
        Some(file) => {
            let store = rusqlite::Connection::open(sandbox.path(file)).unwrap();
            store.execute("UPDATE windlass_schedules SET next_at = next_at - 240000", ()).unwrap();
        }
        None => {
            let connected = tokio_postgres::connect(&cluster.store, tokio_postgres::NoTls).await;
            let (client, connection) = connected.unwrap();
            tokio::spawn(connection);
            let back = "UPDATE windlass_schedules SET next_at = next_at - interval '4 minutes'";
            client.batch_execute(back).await.unwrap();
        }
    }
}

/// Waits until every job has ended: resumes paused ones, and retries half of the failed ones. Returns the jobs.
async fn rest(
    sandbox: &CliSandbox,
    processes: &mut Processes,
    rng: &mut SeededRng,
) -> (Vec<Json>, Vec<String>) {
    let started = Instant::now();
    // An operator's own command to end a limit may have met a crashed server.
    for command in
        ["schedules pause TICK", "start RUN", "throughput ADD --concurrency default --rate default"]
    {
        sandbox.run(command).await.ok();
    }
    let mut retried = BTreeMap::new();
    let mut was_quiet = false;
    loop {
        processes.tend();
        let dependencies = sandbox.json("dependencies").await;
        let mut is_quiet = dependencies["due"].as_array().unwrap().is_empty();
        let listed = sandbox.json("jobs --limit 10000").await;
        let jobs = listed.as_array().unwrap().clone();
        for job in &jobs {
            let id = text(&job["id"]);
            let command = match job["status"].as_str() {
                Some("PAUSED") => "resume",
                Some("FAILED") if retried.insert(id.clone(), ()).is_none() => {
                    if rng.next_in(0..2) == 0 {
                        continue;
                    }
                    "retry"
                }
                _ => {
                    is_quiet &= status(job) != Status::Open;
                    continue;
                }
            };
            is_quiet = false;
            sandbox.run(&format!("{command} {id}")).await;
        }
        // Twice, because a parent may end between the two listings. A dependent job is due from then on until it is
        // submitted: after 30 seconds if the process that should submit it was killed.
        if is_quiet && was_quiet {
            return (jobs, Vec::new());
        }
        was_quiet = is_quiet;
        if started.elapsed() > REST {
            let open = jobs.iter().filter(|job| status(job) == Status::Open);
            let open = open.map(|job| format!("after {REST:?} a job has not ended: {job:#}"));
            let open = open.collect();
            return (jobs, open);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The verdicts about some completed jobs.
async fn audit(
    sandbox: &CliSandbox,
    jobs: &[Json],
    rng: &mut SeededRng,
) -> BTreeMap<String, String> {
    let mut audits = BTreeMap::new();
    let mut completed: Vec<_> =
        jobs.iter().filter(|job| status(job) == Status::Completed).collect();
    while audits.len() < AUDITS && !completed.is_empty() {
        let job = completed.swap_remove(rng.next_in(0..completed.len() as u64) as usize);
        let id = text(&job["id"]);
        let output = sandbox.run(&format!("audit {id} --json")).await;
        let audit: Json = serde_json::from_str(&output.stdout).unwrap_or_default();
        let verdict = match audit["verdict"].as_str() {
            Some("proven") => "proven".to_owned(),
            Some(verdict) => {
                format!("{verdict}: {} {}", audit["findings"], audit["notJudged"])
            }
            None => format!("no verdict: {output:?}"),
        };
        audits.insert(id, verdict);
    }
    audits
}

/// Panics in the logs of the processes.
fn panics(sandbox: &CliSandbox) -> Vec<String> {
    let mut found = Vec::new();
    for log in std::fs::read_dir(sandbox.path(".testkit")).unwrap() {
        let text = std::fs::read(log.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        found.extend(text.lines().filter(|line| line.contains("panicked")).map(str::to_owned));
    }
    found
}

/// Copies the folder of the round, with its logs, to a place that stays.
fn keep(sandbox: &CliSandbox, kind: Kind, seed: u64, report: &str) -> PathBuf {
    let name = format!("windlass-torture-{kind:?}-{seed}").to_lowercase();
    let kept = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&kept);
    let copied =
        std::process::Command::new("cp").arg("-r").arg(sandbox.path("")).arg(&kept).status();
    assert!(copied.is_ok_and(|status| status.success()), "failed to keep the logs");
    std::fs::write(kept.join("history.txt"), report).unwrap();
    kept
}
